"""Jars from Maven and the JVMs that run them.

A pom in `tests/java/poms/` names what a suite needs. Its jars are kept in `.cache/`, as told in
`mockbroker.spark.jars`.
"""

from __future__ import annotations

import functools
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mockbroker.spark.errors import MavenError
from mockbroker.spark.jars import once, resolve, tool

__all__ = ["CACHE", "JVM_FLAGS", "ROOT", "MavenError", "hash_of", "jars", "java", "javac", "once"]

ROOT = Path(__file__).resolve().parents[2]
POMS = ROOT / "tests" / "java" / "poms"
CACHE = ROOT / ".cache"

# Two cores serve every suite: a JVM that compiles little and collects on one thread starts sooner.
JVM_FLAGS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-Xshare:auto")


@functools.cache
def jars(name: str) -> list[Path]:
    """Return the jars of `tests/java/poms/<name>.xml`, resolving them on first use.

    Raises MavenError when the pom, Maven or an artifact is missing.
    """
    pom = POMS / f"{name}.xml"
    if not pom.is_file():
        known = ", ".join(sorted(path.stem for path in POMS.glob("*.xml")))
        raise MavenError(f"no pom {name!r}; there are {known}")
    return resolve(name, pom.read_text(encoding="utf-8"), CACHE)


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
    # Libraries that a JVM unpacks stay behind where it is killed; it does not look at TMPDIR.
    temporary = f"-Djava.io.tmpdir={tempfile.gettempdir()}"
    command = [tool("java"), *jvm, temporary, "-cp", joined(classpath), main, *args]
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
                    *(tool("javac"), *(f"-J{flag}" for flag in JVM_FLAGS)),
                    *("--release", "17", "-Xlint:all,-processing,-classfile"),
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
