"""Java's and franz-go's transactional producers behind the face of `python_transactions`.

Java's run in one JVM for each version, which `Tours` starts when it is first needed.
"""

from __future__ import annotations

import itertools
from types import TracebackType
from typing import Any, Self

from tests.support import golang
from tests.support.java_pipe import JavaError
from tests.support.json_lines import JsonLines, StepError
from tests.support.python_transactions import Failed, Fenced
from tests.support.tour import Tour

_FENCED = ("ProducerFenced", "InvalidProducerEpoch", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
_NUMBERS = itertools.count(1)


def _failure(text: str) -> Failed:
    return (Fenced if any(word in text for word in _FENCED) else Failed)(text)


class Tours:
    """The JVMs of a test session, one for each version of the Java clients."""

    def __init__(self) -> None:
        self._open: dict[str, Tour] = {}

    def __getitem__(self, version: str) -> Tour:
        if version not in self._open:
            self._open[version] = Tour(version)
        return self._open[version]

    def close(self) -> None:
        for tour in self._open.values():
            tour.close()


class Java:
    """A KafkaProducer with a transactional id, initialised; a context manager that closes it."""

    def __init__(
        self, tour: Tour, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000
    ) -> None:
        self._tour = tour
        self._name = f"transactional-{next(_NUMBERS)}"
        config = {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": str(timeout_ms),
            "retry.backoff.ms": "20",
        }
        self._call("open", config=config)
        self._call("initTransactions")

    def _call(self, op: str, **item: Any) -> Any:
        try:
            return self._tour(f"producer.{op}", name=self._name, **item)
        except JavaError as error:
            raise _failure(str(error)) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._call("close")

    def begin(self) -> None:
        self._call("begin")

    def send(self, topic: str, value: str, partition: int = 0) -> int:
        records = [{"topic": topic, "value": value, "partition": partition}]
        (sent,) = self._call("send", records=records)
        if "error" in sent:
            raise _failure(f"{sent['error']}: {sent.get('message')}")
        return int(sent["offset"])

    def send_offset(self, group: str, topic: str, offset: int) -> None:
        self._call("sendOffsets", offsets={f"{topic}-0": offset}, group=group)

    def commit(self) -> None:
        self._call("commit")

    def abort(self) -> None:
        self._call("abort")


class FranzGo:
    """A franz-go client with a transactional id in a process of its own, initialised."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        self._steps = JsonLines(golang.tour())
        self._began = False
        self._call("connect", bootstrap=bootstrap.split(","))
        self._call("txn_open", transactional_id=transactional_id, timeout_ms=timeout_ms)

    def _call(self, op: str, **fields: Any) -> Any:
        try:
            return self._steps(op, name="p", **fields)
        except StepError as error:
            raise _failure(str(error)) from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._steps.__exit__(kind, error, trace)

    def begin(self) -> None:
        """With the first record: a step of its own would say nothing to a broker."""
        self._began = True

    def send(self, topic: str, value: str, partition: int = 0) -> int:
        began, self._began = self._began, False
        records = [{"value": value, "partition": partition}]
        (sent,) = self._call("txn_send", topic=topic, records=records, commit=began)
        return int(sent["offset"])

    def send_offset(self, group: str, topic: str, offset: int) -> None:
        raise NotImplementedError("its GroupTransactSession does that, see the step `transform`")

    def commit(self) -> None:
        self._call("txn_end", commit=True)

    def abort(self) -> None:
        self._call("txn_end", commit=False)
