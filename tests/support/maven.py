"""Jars from Maven and the JVMs that run them.

A pom in `tests/java/poms/` names what a suite needs. Its jars are copied once into
`.cache/jars/<name>-<hash of the pom>/`; whoever comes later, in this process or another, finds
them there. Poms name no repository: Maven's own settings decide where artifacts come from.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
POMS = ROOT / "tests" / "java" / "poms"
CACHE = ROOT / ".cache"

# Two cores serve every suite: a JVM that compiles little and collects on one thread starts sooner.
JVM_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-Xshare:auto")

MAVEN_TIMEOUT_S = 900


class MavenError(RuntimeError):
    """Maven, or Java, is missing or did not do what was asked; the message says which and why."""


@functools.cache
def jars(name: str) -> list[Path]:
    """Return the jars of `tests/java/poms/<name>.xml`, resolving them on first use.

    Raises MavenError when the pom, Maven or an artifact is missing.
    """
    pom = POMS / f"{name}.xml"
    if not pom.is_file():
        known = ", ".join(sorted(path.stem for path in POMS.glob("*.xml")))
        raise MavenError(f"no pom {name!r}; there are {known}")
    target = CACHE / "jars" / f"{name}-{hash_of([pom])}"
    with once(target) as scratch:
        if scratch is not None:
            _copy_dependencies(pom, scratch)
    return sorted(target.glob("*.jar"))


def _copy_dependencies(pom: Path, into: Path) -> None:
    maven = _tool("mvn")
    done = subprocess.run(
        [
            *(maven, "-q", "-B", "-f", str(pom), "dependency:copy-dependencies"),
            *(f"-DoutputDirectory={into}", "-DincludeScope=runtime"),
        ],
        capture_output=True,
        text=True,
        timeout=MAVEN_TIMEOUT_S,
        check=False,
    )
    if done.returncode != 0:
        raise MavenError(f"mvn failed on {pom}:\n{done.stdout}{done.stderr}")
    if not any(into.glob("*.jar")):
        raise MavenError(f"mvn copied no jar for {pom}:\n{done.stdout}{done.stderr}")


def java(
    classpath: Iterable[Path | str],
    main: str,
    *args: str,
    jvm: Iterable[str] = JVM_FLAGS,
    **popen: Any,
) -> subprocess.Popen[Any]:
    """Start `main` on the classpath; keyword arguments go to Popen. The caller ends it.

    Raises MavenError when there is no Java.
    """
    command = [_tool("java"), *jvm, "-cp", joined(classpath), main, *args]
    return subprocess.Popen(command, **popen)


def javac(sources: Iterable[Path], classpath: Iterable[Path | str], name: str) -> Path:
    """Compile the sources and return the folder of their classes, `.cache/classes/<name>-<hash>`.

    Raises MavenError with the compiler's words when they do not compile.
    """
    files = sorted(sources)
    entries = [str(entry) for entry in classpath]
    target = CACHE / "classes" / f"{name}-{hash_of(files, *entries)}"
    with once(target) as scratch:
        if scratch is not None:
            done = subprocess.run(
                [
                    *(_tool("javac"), "--release", "17", "-Xlint:all,-processing,-classfile"),
                    *("-d", str(scratch), "-cp", joined(entries)),
                    *map(str, files),
                ],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode != 0:
                raise MavenError(f"javac failed on {name}:\n{done.stdout}{done.stderr}")
    return target


def joined(classpath: Iterable[Path | str]) -> str:
    return os.pathsep.join(str(entry) for entry in classpath)


def hash_of(files: Iterable[Path], *words: str) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    for word in words:
        digest.update(word.encode())
    return digest.hexdigest()[:12]


@contextmanager
def once(target: Path) -> Iterator[Path | None]:
    """Fill a folder once, however many processes ask: yield a scratch folder, or None if filled.

    The lock is on a file beside the target and the rename is atomic, so that a reader never sees
    half a folder and a killed writer leaves nothing that looks whole.
    """
    if target.is_dir():
        yield None
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with (target.parent / f".{target.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.is_dir():
            yield None
            return
        scratch = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
        try:
            yield scratch
            scratch.chmod(0o755)
            scratch.rename(target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _tool(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        package = "maven" if name == "mvn" else "a Java 17 JDK"
        raise MavenError(f"{name} is not on the PATH; these tests need {package}")
    return path
