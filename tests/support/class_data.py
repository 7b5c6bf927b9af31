"""The classes of a JVM, loaded and verified once for all that follow (class data sharing, JEP 350).

A real broker loads thousands of classes before it listens. With an archive of them it takes half
the processor time until then. The archive is kept in `.cache/`, for these jars and this Java.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.support.maven import CACHE, hash_of, jars, once, tool

Run = Callable[[Sequence[str]], None]
"""Starts the JVM with further flags and lets it end in an orderly way; its archive comes last."""

# A JVM that cannot use the archive goes on without it, and warns where others read its output.
_QUIET = "-Xlog:disable"


def class_data(pom: str, run: Run) -> tuple[str, ...]:
    """The flags with which a JVM on the jars of `pom` takes their classes from the archive.

    `run` writes the archive the first time. There are no flags where Java has no `release` file.
    """
    archive = _archive(pom, run)
    return () if archive is None else (f"-XX:SharedArchiveFile={archive}", _QUIET)


@functools.cache
def _archive(pom: str, run: Run) -> Path | None:
    release = Path(tool("java")).resolve().parents[1] / "release"
    if not release.is_file():
        return None
    target = CACHE / "class-data" / f"{pom}-{hash_of([release], *map(str, jars(pom)))}"
    with once(target) as scratch:
        if scratch is not None:
            run([f"-XX:ArchiveClassesAtExit={scratch / 'classes.jsa'}"])
    archive = target / "classes.jsa"
    return archive if archive.is_file() else None
