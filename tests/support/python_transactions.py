"""The transactional producers of the Python clients behind one face.

    for make in PRODUCERS:
        with make(bootstrap_servers, "my-id") as producer:
            producer.begin(); producer.send("orders", "v"); producer.commit()

Opening one initialises it. Raises `Fenced` where a client says that another one has taken over, and
`Failed` for whatever else goes wrong.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from tests.support.python_clients import TIMEOUT_S

T = TypeVar("T")
FENCED_CODES = (47, 90)


class Failed(Exception):  # noqa: N818 - an outcome
    """A call of the client failed."""


class Fenced(Failed):
    """Another producer has taken over the transactional id, or the coordinator the transaction."""


class TransactionalProducer(Protocol):
    """A producer with a transactional id; a context manager that closes it."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    def begin(self) -> None: ...

    def send(self, topic: str, value: str, partition: int = 0) -> int:
        """Send, wait for the answer, and return the offset."""

    def send_offset(self, group: str, topic: str, offset: int) -> None:
        """Commit an offset of partition 0 within the transaction."""

    def commit(self) -> None: ...

    def abort(self) -> None: ...


class _Closing:
    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        raise NotImplementedError


class ConfluentKafka(_Closing):
    """confluent-kafka, which is librdkafka."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        from confluent_kafka import Producer

        self._bootstrap = bootstrap
        config = {
            "bootstrap.servers": bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": timeout_ms,
            "socket.timeout.ms": min(timeout_ms, 10_000),
            "message.timeout.ms": timeout_ms,
            "linger.ms": 0,
            "log_level": 0,
        }
        self._producer = Producer(config)
        self._call(self._producer.init_transactions, TIMEOUT_S)

    def _call(self, call: Callable[..., T], *args: object) -> T:
        from confluent_kafka import KafkaError, KafkaException

        try:
            return call(*args)
        except KafkaException as failed:
            error = failed.args[0]
            fenced = error.code() in (*FENCED_CODES, KafkaError._FENCED)
            raise (Fenced if fenced else Failed)(str(error)) from None

    def begin(self) -> None:
        self._call(self._producer.begin_transaction)

    def send(self, topic: str, value: str, partition: int = 0) -> int:
        from confluent_kafka import KafkaError

        delivered: list[Any] = []
        self._call(
            lambda: self._producer.produce(
                topic,
                value,
                partition=partition,
                on_delivery=lambda *report: delivered.append(report),
            )
        )
        assert self._producer.flush(TIMEOUT_S) == 0
        error, message = delivered[0]
        if error is not None:
            fenced = error.code() in (*FENCED_CODES, KafkaError._FENCED)
            raise (Fenced if fenced else Failed)(str(error))
        return int(message.offset())

    def send_offset(self, group: str, topic: str, offset: int) -> None:
        from confluent_kafka import Consumer, TopicPartition

        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": group})
        metadata = consumer.consumer_group_metadata()
        consumer.close()
        offsets = [TopicPartition(topic, 0, offset)]
        self._call(self._producer.send_offsets_to_transaction, offsets, metadata, TIMEOUT_S)

    def commit(self) -> None:
        self._call(self._producer.commit_transaction, TIMEOUT_S)

    def abort(self) -> None:
        self._call(self._producer.abort_transaction, TIMEOUT_S)

    def close(self) -> None:
        """librdkafka closes with its last reference."""


class KafkaPython(_Closing):
    """kafka-python."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        from kafka import KafkaProducer

        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            enable_idempotence=True,
            retry_backoff_ms=20,
        )
        self._call(self._producer.init_transactions)

    def _call(self, call: Callable[..., T], *args: object) -> T:
        """Make the call on a thread of its own: commit and abort have no time limit."""
        from kafka.errors import KafkaError

        outcome: Future[T] = Future()

        def run() -> None:
            try:
                outcome.set_result(call(*args))
            except BaseException as error:  # the caller gets whatever it is
                outcome.set_exception(error)

        threading.Thread(target=run, name="kafka-python call", daemon=True).start()
        try:
            return outcome.result(TIMEOUT_S)
        except FutureTimeout:
            raise Failed(f"no answer in {TIMEOUT_S} s") from None
        except KafkaError as failed:
            text = f"{type(failed).__name__}: {failed}"
            raise (Fenced if _says_fenced(text) else Failed)(text) from None

    def begin(self) -> None:
        self._call(self._producer.begin_transaction)

    def send(self, topic: str, value: str, partition: int = 0) -> int:
        def send() -> int:
            sent = self._producer.send(topic, value.encode(), partition=partition)
            return int(sent.get(TIMEOUT_S).offset)

        return self._call(send)

    def send_offset(self, group: str, topic: str, offset: int) -> None:
        from kafka import TopicPartition
        from kafka.structs import OffsetAndMetadata

        offsets = {TopicPartition(topic, 0): OffsetAndMetadata(offset, "", -1)}
        self._call(self._producer.send_offsets_to_transaction, offsets, group)

    def commit(self) -> None:
        self._call(self._producer.commit_transaction)

    def abort(self) -> None:
        self._call(self._producer.abort_transaction)

    def close(self) -> None:
        self._producer.close(timeout=1)


class Aiokafka(_Closing):
    """aiokafka, on an event loop that only runs while it is called."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int = 60_000) -> None:
        from aiokafka import AIOKafkaProducer

        self._loop = asyncio.new_event_loop()

        async def make() -> AIOKafkaProducer:
            return AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
            )

        self._producer = self._loop.run_until_complete(make())
        self._call(self._producer.start())

    def _call(self, call: Coroutine[Any, Any, T]) -> T:
        from aiokafka.errors import KafkaError

        try:
            return self._loop.run_until_complete(asyncio.wait_for(call, TIMEOUT_S))
        except KafkaError as failed:
            text = f"{type(failed).__name__}: {failed}"
            raise (Fenced if _says_fenced(text) else Failed)(text) from None

    def begin(self) -> None:
        self._call(self._producer.begin_transaction())

    def send(self, topic: str, value: str, partition: int = 0) -> int:
        sent = self._producer.send_and_wait(topic, value.encode(), partition=partition)
        return int(self._call(sent).offset)

    def send_offset(self, group: str, topic: str, offset: int) -> None:
        from aiokafka import TopicPartition

        offsets = {TopicPartition(topic, 0): offset}
        self._call(self._producer.send_offsets_to_transaction(offsets, group))

    def commit(self) -> None:
        self._call(self._producer.commit_transaction())

    def abort(self) -> None:
        self._call(self._producer.abort_transaction())

    def close(self) -> None:
        with contextlib.suppress(Failed):  # it may be fenced, and say so once more
            self._call(self._producer.stop())
        self._loop.close()


def _says_fenced(text: str) -> bool:
    return any(word in text for word in ("Fenced", "InvalidProducerEpoch", "ProducerFenced"))


Make = Callable[..., TransactionalProducer]

PRODUCERS: dict[str, Make] = {
    "confluent-kafka": ConfluentKafka,
    "kafka-python": KafkaPython,
    "aiokafka": Aiokafka,
}
