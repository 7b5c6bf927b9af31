"""A member of a consumer group in a process of its own: to be killed, frozen, and thawed again.

The program polls and prints what happens to it, one JSON line each: `{"told": "assigned",
"partitions": [["t", 0]]}`, `{"record": "17", "partition": 0, "offset": 17}`, `{"error":
"UNKNOWN_MEMBER_ID"}`. When its input ends, it closes its consumer and ends as well.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from mockbroker import Cluster

WAIT_TIMEOUT_S = 30.0
ROOT = Path(__file__).resolve().parents[2]

Line = dict[str, Any]


class MemberProcess:
    """A running member; a context manager that closes it the clean way.

    With `commits` it commits each record, once it has been printed, and waits for the answer.
    """

    def __init__(
        self, kafka: Cluster, group: str, *topics: str, commits: bool = False, **config: Any
    ) -> None:
        settings = {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "heartbeat.interval.ms": 50,
            "fetch.wait.max.ms": 20,
            "log_level": 0,
        } | {name.replace("_", "."): value for name, value in config.items()}
        settings = {name: value for name, value in settings.items() if value is not None}
        self.lines: list[Line] = []
        self._changed = threading.Condition()
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, json.dumps([settings, topics, commits])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self.lines.append(json.loads(line))
                self._changed.notify_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def wait_for(self, wanted: Callable[[list[Line]], bool]) -> list[Line]:
        """Wait until what it has printed is as wanted, and return that. Raises AssertionError."""
        with self._changed:
            if not self._changed.wait_for(lambda: wanted(self.lines), WAIT_TIMEOUT_S):
                raise AssertionError(
                    f"not within {WAIT_TIMEOUT_S:.0f} s; it said {self.lines[-20:]}"
                )
            return list(self.lines)

    def wait_for_partitions(self, count: int) -> set[tuple[str, int]]:
        """Wait until it owns so many partitions, and return them."""
        self.wait_for(lambda lines: len(_owned(lines)) == count)
        return self.owned

    def wait_for_records(self, count: int) -> list[str]:
        """Wait until it is done with so many records; return their values."""
        self.wait_for(lambda lines: sum("done" in line for line in lines) >= count)
        return self.values

    @property
    def owned(self) -> set[tuple[str, int]]:
        return _owned(self.lines)

    @property
    def values(self) -> list[str]:
        return [line["record"] for line in self.lines if "record" in line]

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def freeze(self) -> None:
        """Stop the whole process, its threads that heartbeat included."""
        self.signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it without a word to the cluster."""
        self._process.kill()
        self._end()

    def close(self) -> None:
        """Let it leave its group and end."""
        if self._process.poll() is None:
            self.thaw()
            assert self._process.stdin is not None
            self._process.stdin.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(WAIT_TIMEOUT_S)
            self._process.kill()
        self._end()

    def _end(self) -> None:
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


def _owned(lines: list[Line]) -> set[tuple[str, int]]:
    owned: set[tuple[str, int]] = set()
    for line in lines:
        partitions = {(topic, index) for topic, index in line.get("partitions", ())}
        owned = owned | partitions if line.get("told") == "assigned" else owned - partitions
    return owned


# ---------------------------------------------------------------------------------- in the process


def main() -> None:
    from confluent_kafka import Consumer, KafkaException

    settings, topics, commits = json.loads(sys.argv[1])
    consumer = Consumer(settings)

    def say(**line: object) -> None:
        os.write(1, json.dumps(line).encode() + b"\n")

    def tell(kind: str) -> Callable[[Any, list[Any]], None]:
        return lambda _, found: say(told=kind, partitions=[(p.topic, p.partition) for p in found])

    consumer.subscribe(
        topics, on_assign=tell("assigned"), on_revoke=tell("revoked"), on_lost=tell("lost")
    )
    while not select.select([sys.stdin], [], [], 0)[0]:
        consumer.memberid()  # wakes the thread that heartbeats
        message = consumer.poll(0.01)
        if message is None:
            continue
        error = message.error()
        if error is not None:
            say(error=error.name())
            continue
        say(record=message.value().decode(), partition=message.partition(), offset=message.offset())
        try:
            if commits:
                consumer.commit(message, asynchronous=False)
        except KafkaException as refused:
            say(error=refused.args[0].name())
        say(done=message.offset())
    consumer.close()


if __name__ == "__main__":
    main()
