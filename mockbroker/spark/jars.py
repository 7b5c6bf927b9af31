"""Jars from Maven, each set fetched once and cached.

The jars of a pom are copied into `<cache>/jars/<name>-<hash of the pom>/`, for this process and all
others. Poms name no repository: Maven's own settings decide where artifacts come from. The cache is
the directory in `MOCKBROKER_CACHE`, or `mockbroker` among the user's caches.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from mockbroker.spark.errors import MavenError
from mockbroker.spark.settings import FAST_JVM

CACHE_ENVIRONMENT = "MOCKBROKER_CACHE"
MAVEN_TIMEOUT_S = 900
# The shown lines of Maven's output after a failure, from the first error on.
OUTPUT_LINES_MAX = 12

_POM = """<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>mockbroker</groupId>
  <artifactId>jars</artifactId>
  <version>1</version>
  <packaging>pom</packaging>
  <dependencies>
{dependencies}
  </dependencies>
</project>
"""
# Without transitive dependencies: every jar is named.
_DEPENDENCY = """    <dependency>
      <groupId>{group}</groupId>
      <artifactId>{name}</artifactId>
      <version>{version}</version>
      <exclusions>
        <exclusion>
          <groupId>*</groupId>
          <artifactId>*</artifactId>
        </exclusion>
      </exclusions>
    </dependency>"""


class Artifact(NamedTuple):
    """One jar by its Maven coordinates."""

    group: str
    name: str
    version: str

    @property
    def file_name(self) -> str:
        return f"{self.name}-{self.version}.jar"


def cache_dir() -> Path:
    """The directory of the cache, which may not exist yet."""
    given = os.environ.get(CACHE_ENVIRONMENT)
    if given:
        return Path(given)
    caches = os.environ.get("XDG_CACHE_HOME")
    return (Path(caches) if caches else Path.home() / ".cache") / "mockbroker"


def pom_of(artifacts: Iterable[Artifact]) -> str:
    """A pom with exactly these artifacts, without their dependencies."""
    dependencies = "\n".join(_DEPENDENCY.format(**each._asdict()) for each in artifacts)
    return _POM.format(dependencies=dependencies)


def resolve(name: str, pom: str, cache: Path | None = None) -> list[Path]:
    """The jars of a pom, from the cache, or from Maven the first time.

    Raises MavenError when Maven or an artifact is missing.
    """
    digest = hashlib.sha256(pom.encode()).hexdigest()[:12]
    target = (cache or cache_dir()) / "jars" / f"{name}-{digest}"
    with once(target) as scratch:
        if scratch is not None:
            _copy_dependencies(name, pom, scratch)
    return sorted(target.glob("*.jar"))


def _copy_dependencies(name: str, pom: str, into: Path) -> None:
    maven = tool("mvn")
    with tempfile.TemporaryDirectory(prefix="mockbroker-pom-") as folder:
        file = Path(folder) / "pom.xml"
        file.write_text(pom, encoding="utf-8")
        command = [
            *(maven, "-q", "-B", "-f", str(file), "dependency:copy-dependencies"),
            *(f"-DoutputDirectory={into}", "-DincludeScope=runtime"),
        ]
        try:
            done = subprocess.run(
                command,
                env={"MAVEN_OPTS": FAST_JVM, **os.environ},
                capture_output=True,
                text=True,
                timeout=MAVEN_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise MavenError(f"mvn found no jars for {name} in {MAVEN_TIMEOUT_S} s") from None
    said = f"{done.stdout}{done.stderr}".splitlines()[:OUTPUT_LINES_MAX]
    if done.returncode != 0:
        raise MavenError("\n".join([f"mvn could not get the jars of {name}:", *said]))
    if not any(into.glob("*.jar")):
        raise MavenError("\n".join([f"mvn copied no jar for {name}:", *said]))


def tool(name: str) -> str:
    """The path of a program. Raises MavenError that names its package."""
    path = shutil.which(name)
    if path is None:
        package = "maven" if name == "mvn" else "a Java 17 JDK"
        raise MavenError(f"{name} is not on the PATH: install {package}")
    return path


@contextmanager
def once(target: Path) -> Iterator[Path | None]:
    """Fill a folder once for all processes: yields a scratch folder, or None if it is filled.

    The lock is on a file beside the target, and the rename is atomic. Therefore no reader sees a
    part of a folder, and a killed writer leaves none.
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
