"""The Java oracle: Kafka's own classes, asked over a pipe (`tests/java/src/oracle`)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator
from typing import Any

from tests.support import maven

SOURCES = maven.ROOT / "tests" / "java" / "src"

Json = dict[str, Any]


class OracleError(RuntimeError):
    """The oracle did not answer, or an item failed; the message carries Java's own words."""


class Oracle:
    """One JVM with the classes of some jars on its path.

    `ask` sends many items at once and returns one result for each; an item that Kafka refuses comes
    back as `{"error": "…"}`.
    """

    def __init__(self, *poms: str) -> None:
        jars = [jar for pom in poms for jar in maven.jars(pom)]
        self.name = poms[0]
        folders = ["oracle"]
        # 3.9 keeps the record classes in another package, and reads the same batches.
        if any("kafka-clients-4" in jar.name for jar in jars):
            folders.append("oracle-records")
        sources = [file for name in folders for file in (SOURCES / name).rglob("*.java")]
        classes = maven.javac(sources, jars, f"oracle-{self.name}")
        self._process = maven.java(
            [classes, *jars],
            "mockbroker.oracle.Oracle",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def ask(self, op: str, items: Iterable[Json], at_once: int = 200) -> list[Json]:
        """Return one result per item, in order. `at_once` items share a line of the pipe."""
        results: list[Json] = []
        for chunk in _chunks(items, at_once):
            results += self._exchange({"op": op, "items": chunk})
        return results

    def ask_one(self, op: str, **item: Any) -> Json:
        """Return the result of one item. Raises OracleError when Kafka refuses it."""
        (result,) = self.ask(op, [item])
        if "error" in result:
            raise OracleError(f"{op} {item}: {result['error']}")
        return result

    def _exchange(self, question: Json) -> list[Json]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise OracleError(f"the oracle {self.name} ended with {self._process.wait()}")
        answer = json.loads(line)
        if "error" in answer:
            raise OracleError(answer["error"])
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

    def __enter__(self) -> Oracle:
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
