"""A Java program of ours behind a pipe of JSON lines (`tests/java/src/common`)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tests.support import maven

SOURCES = maven.ROOT / "tests" / "java" / "src"

Json = dict[str, Any]


class JavaError(Exception):
    """What Java threw: `name` is the simple name of its class."""

    def __init__(self, name: str, message: str | None) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name


class JavaPipe:
    """One JVM that runs `main`, compiled from `tests/java/src/<folder>`, on the jars of a pom."""

    def __init__(self, main: str, folders: Sequence[str], pom: str) -> None:
        self.pom = pom
        jars = maven.jars(pom)
        sources = [
            file for name in ("common", *folders) for file in (SOURCES / name).rglob("*.java")
        ]
        classes = maven.javac(sources, jars, f"{folders[0]}-{pom}")
        self._process = maven.java(
            [classes, *jars],
            main,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def ask(self, op: str, items: Iterable[Json], at_once: int = 200) -> list[Json]:
        """Return one result per item, in order; `at_once` items share a line of the pipe.

        An item at which Java threw comes back as `{"error": class, "message": …}`.
        """
        results: list[Json] = []
        for chunk in _chunks(items, at_once):
            results += self._exchange({"op": op, "items": chunk})
        return results

    def ask_one(self, op: str, **item: Any) -> Json:
        """Return the result of one item. Raises JavaError with what Java threw."""
        (result,) = self.ask(op, [item])
        if "error" in result:
            raise JavaError(result["error"], result.get("message"))
        return result

    def _exchange(self, question: Json) -> list[Json]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the JVM on {self.pom} ended with {self._process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        results: list[Json] = answer["results"]
        return results

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> JavaPipe:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _chunks(items: Iterable[Json], size: int) -> Iterator[list[Json]]:
    chunk: list[Json] = []
    for item in items:
        chunk.append(item)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
