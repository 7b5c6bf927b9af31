"""Spark with its Kafka source: one session in a child process, which takes orders line by line.

    python -m bench.drivers.spark

Each line of standard input is a JSON object with an `op`: `read` counts what a batch read of a
topic brings, `batches` times micro-batches, from when records were acknowledged until a query is
through with them. The answer to each is one line of JSON.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.model import UnavailableError
from tests.support.maven import ROOT

RECORDS_A_BATCH = 100


class Spark:
    """The session as the workloads see it; started when it is first needed."""

    def __init__(self) -> None:
        self._child: subprocess.Popen[str] | None = None

    def prepare(self) -> None:
        """Start the session. Raises UnavailableError, with the reason."""
        if self._child is not None:
            return
        self._child = subprocess.Popen(
            [sys.executable, "-m", "bench.drivers.spark"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
        )
        ready = self._answer()
        if "error" in ready:
            raise UnavailableError(str(ready["error"]))

    def ask(self, **order: object) -> dict[str, Any]:
        """What the session says to an order. Raises RuntimeError if it failed."""
        assert self._child is not None
        assert self._child.stdin is not None
        self._child.stdin.write(json.dumps(order) + "\n")
        self._child.stdin.flush()
        answer = self._answer()
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def _answer(self) -> dict[str, Any]:
        assert self._child is not None
        assert self._child.stdout is not None
        line = self._child.stdout.readline()
        if not line:
            return {"error": "the Spark session ended"}
        answer: dict[str, Any] = json.loads(line)
        return answer


# -- in the child ----------------------------------------------------------------------------------


def serve() -> None:
    """Answer orders until standard input ends."""
    from mockbroker.spark.errors import SparkSetupError
    from mockbroker_fixtures.spark import spark_session

    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        try:
            session = stack.enter_context(spark_session(Path(folder)))
        except SparkSetupError as error:
            _say(error=str(error))
            return
        session.sparkContext.setLogLevel("OFF")
        _say(ready=True)
        for number, line in enumerate(sys.stdin):
            order = json.loads(line)
            job = {"read": _read, "batches": _batches}[order.pop("op")]
            try:
                _say(**job(session, Path(folder) / str(number), **order))
            except Exception as error:  # told to whoever gave the order
                _say(error=f"{type(error).__name__}: {error}")


def _say(**answer: object) -> None:
    print(json.dumps(answer), flush=True)


def _read(session: Any, _folder: Path, bootstrap: str, topic: str) -> dict[str, float]:
    source = session.read.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    begun = time.perf_counter()
    [row] = source.option("subscribe", topic).load().selectExpr("count(value)").collect()
    return {"seconds": time.perf_counter() - begun, "records": row[0]}


def _batches(
    session: Any, folder: Path, bootstrap: str, topic: str, count: int
) -> dict[str, list[float]]:
    from confluent_kafka import Producer

    source = session.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap)
    frame = source.option("subscribe", topic).option("startingOffsets", "earliest").load()
    query = (
        frame.writeStream.format("noop").option("checkpointLocation", str(folder / "cp")).start()
    )
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    times = []
    with _stopping(query):
        for _ in range(count):
            for _ in range(RECORDS_A_BATCH):
                producer.produce(topic, b"x" * 100)
            producer.flush()
            begun = time.perf_counter()
            query.processAllAvailable()
            times.append(time.perf_counter() - begun)
    return {"seconds": times[1:]}  # the first one plans and compiles


@contextlib.contextmanager
def _stopping(query: Any) -> Iterator[None]:
    try:
        yield
    finally:
        query.stop()


if __name__ == "__main__":
    serve()
