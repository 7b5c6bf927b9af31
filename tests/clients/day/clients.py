"""Writers and readers of three libraries behind one face, each in a thread of its own.

A *writer* sends records by the chunk and waits for what it is told of each. A *reader* reads until
it is ended; as a *member* it commits after each poll.

aiokafka forgets the addresses it began with: when all brokers that it knows are gone it is lost,
and while two of three are down, it knows one. So it looks for brokers often, and `Acquaintances`
tells whether it knows them all.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AsyncPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import KafkaError as AsyncKafkaError
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from mockbroker.core.metadata.topic import Topic
from mockbroker.handlers.base import EncodedResponse, RequestContext
from mockbroker_protocol import ApiKey
from mockbroker_protocol.codec import response_codec
from mockbroker_protocol.messages.fetch import FetchRequest
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.clients.day.ledger import Got, Ledger, Outcome
from tests.clients.java.steps import Peer, Steps
from tests.support import librdkafka
from tests.support.java_pipe import JavaError
from tests.support.tour import Tour

CHUNK = 10
POLL_S = 0.05
ENDED_TIMEOUT_S = 60.0
METADATA_AGE_MS = 300

T = TypeVar("T")


class Report(NamedTuple):
    """What a client said of one record: its offset, or the name of an error."""

    offset: int
    error: str | None


class Acquaintances:
    """Which brokers each client was last told of, and what it fetches: a cluster's `trace`."""

    def __init__(self) -> None:
        self.known: dict[str, set[int]] = {}
        self._fetching: dict[tuple[str, str | bytes, int], int] = {}

    def __call__(
        self, context: RequestContext, request: object, response: object, elapsed_ns: int
    ) -> None:
        if isinstance(request, FetchRequest):
            for topic in request.topics:
                for each in topic.partitions:
                    key = (context.client_id, topic.topic or topic.topic_id, each.partition)
                    self._fetching[key] = each.fetch_offset
        if not isinstance(request, MetadataRequest):
            return
        if isinstance(response, EncodedResponse):
            codec = response_codec(ApiKey.METADATA, context.api_version)
            response, _ = codec.decode(memoryview(b"".join(response.parts)))
        assert isinstance(response, MetadataResponse)
        self.known[context.client_id] = {broker.node_id for broker in response.brokers}

    def fetches(self, client_id: str, topic: Topic, partition: int) -> int:
        """The offset that the client asked for last, -1 before it did."""
        by_name = self._fetching.get((client_id, topic.name, partition), -1)
        return self._fetching.get((client_id, topic.topic_id, partition), by_name)

    def know(self, client_ids: Iterable[str], brokers: int) -> bool:
        return all(len(self.known.get(each, ())) == brokers for each in client_ids)


class Java:
    """A JVM with Java's clients; the threads that share it take turns."""

    def __init__(self, bootstrap: str) -> None:
        self._tour = Tour("4.3.1")
        self._steps = Steps(self._tour, Peer("mockbroker", bootstrap, 3))
        self._turn = threading.Lock()

    def __call__(self, act: Callable[[Steps], Any]) -> Any:
        with self._turn:
            return act(self._steps)

    def close(self) -> None:
        with self._turn:
            self._steps.close_all()
            self._tour.close()


PAUSE_S = 0.02


def until(condition: Callable[[], bool], what: str, timeout_s: float = ENDED_TIMEOUT_S) -> None:
    """Ask now and then whether `condition` holds; the clients' threads need the time in between.

    Raises AssertionError when it does not within `timeout_s`.
    """
    deadline = time.monotonic() + timeout_s
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout_s:.0f} s: {what}"
        pause.wait(PAUSE_S)


# -- writers ---------------------------------------------------------------------------------------


class Writer(ABC):
    """Writes to one topic, in turn to its partitions or to one of them."""

    library: str

    def __init__(self, ledger: Ledger, topic: str, partitions: int, **config: Any) -> None:
        self.ledger, self.topic, self.partitions = ledger, topic, partitions
        self.config = config
        self.acks = str(config["acks"])
        self.idempotent = bool(config.get("enable_idempotence", False))
        self.name = f"{self.library}-{topic}"
        self.written = 0

    def write(self, count: int, partition: int | None = None) -> None:
        """Send `count` records and put down what became of each."""
        while count > 0:
            chunk = min(CHUNK, count)
            count -= chunk
            values = self.ledger.values(self.name, chunk)
            first = self.written
            indexes = [
                (first + i) % self.partitions if partition is None else partition
                for i in range(chunk)
            ]
            reports = self.send(list(zip(values, indexes, strict=True)))
            for value, index, report in zip(values, indexes, reports, strict=True):
                self._tell(value, index, report)
            self.written += chunk

    def _tell(self, value: str, index: int, report: Report) -> None:
        if report.error is None:
            outcome = Outcome.ACKNOWLEDGED
        elif _plain(report.error) in REFUSALS:
            outcome = Outcome.REFUSED
        else:
            outcome = Outcome.UNKNOWN
        partition = (self.topic, index)
        how = {"acks": self.acks, "idempotent": self.idempotent}
        self.ledger.tell(value, partition, outcome, report.offset, **how)  # type: ignore[arg-type]

    @abstractmethod
    def send(self, records: Sequence[tuple[str, int]]) -> list[Report]:
        """Send values to partitions and wait for the reports, in the records' order."""

    @abstractmethod
    def close(self) -> None: ...


# Their names for NOT_ENOUGH_REPLICAS, before anything is appended.
REFUSALS = ("notenoughreplicas",)


def _plain(error: str) -> str:
    name = error.lower().replace("_", "")
    return name.removesuffix("exception").removesuffix("error")


class JavaWriter(Writer):
    library = "java"

    def __init__(self, java: Java, ledger: Ledger, topic: str, partitions: int, **config: Any):
        super().__init__(ledger, topic, partitions, **config)
        self._java = java
        self._producer: str = java(lambda steps: steps.producer(linger_ms=0, **config))

    def send(self, records: Sequence[tuple[str, int]]) -> list[Report]:
        items = [{"value": value, "partition": index} for value, index in records]
        sent = self._java(lambda steps: steps.send(self._producer, *items, topic=self.topic))
        return [Report(each.get("offset", -1), each.get("error")) for each in sent]

    def close(self) -> None:
        self._java(lambda steps: steps.close(self._producer))


class NativeWriter(Writer):
    library = "librdkafka"

    def __init__(self, bootstrap: str, ledger: Ledger, topic: str, partitions: int, **config: Any):
        super().__init__(ledger, topic, partitions, **config)
        self._producer = Producer(librdkafka.settings(bootstrap, linger_ms=0, **config))

    def send(self, records: Sequence[tuple[str, int]]) -> list[Report]:
        reports: dict[int, Report] = {}
        for number, (value, index) in enumerate(records):

            def delivered(error: Any, message: Any, number: int = number) -> None:
                named = None if error is None else error.name()
                reports[number] = Report(-1 if error else message.offset(), named)

            self._producer.produce(self.topic, value, partition=index, on_delivery=delivered)
        assert self._producer.flush(ENDED_TIMEOUT_S) == 0
        return [reports[number] for number in range(len(records))]

    def close(self) -> None:
        self._producer.flush(ENDED_TIMEOUT_S)


class AsyncWriter(Writer):
    """aiokafka's producer, in an event loop that always runs."""

    library = "aiokafka"

    def __init__(self, bootstrap: str, ledger: Ledger, topic: str, partitions: int, **config: Any):
        super().__init__(ledger, topic, partitions, **config)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._producer: AIOKafkaProducer = self._do(self._open(bootstrap))

    def _do(self, what: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(ENDED_TIMEOUT_S)

    async def _open(self, bootstrap: str) -> AIOKafkaProducer:
        config = {"client_id": self.name, "metadata_max_age_ms": METADATA_AGE_MS} | self.config
        producer = AIOKafkaProducer(bootstrap_servers=bootstrap, **config)
        await producer.start()
        return producer

    def send(self, records: Sequence[tuple[str, int]]) -> list[Report]:
        return self._do(self._send(records))

    async def _send(self, records: Sequence[tuple[str, int]]) -> list[Report]:
        futures = [
            await self._producer.send(self.topic, value.encode(), partition=index)
            for value, index in records
        ]
        outcomes = await asyncio.gather(*futures, return_exceptions=True)
        return [
            Report(-1, type(each).__name__)
            if isinstance(each, BaseException)
            else Report(each.offset, None)
            for each in outcomes
        ]

    def close(self) -> None:
        self._do(self._producer.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(ENDED_TIMEOUT_S)
        self._loop.close()


class Load:
    """Writers at work at the same time, while something is done to the cluster."""

    def __init__(self, writers: Sequence[Writer], count: int) -> None:
        self._errors: list[BaseException] = []
        self._begun = threading.Semaphore(0)
        self._threads = [
            threading.Thread(target=self._run, args=(writer, count)) for writer in writers
        ]

    def _run(self, writer: Writer, count: int) -> None:
        try:
            writer.write(CHUNK)
            self._begun.release()
            writer.write(count - CHUNK)
        except BaseException as error:
            self._errors.append(error)
            self._begun.release()

    def __enter__(self) -> Load:
        """Return when each writer has written a first few records."""
        for thread in self._threads:
            thread.start()
        for _ in self._threads:
            assert self._begun.acquire(timeout=ENDED_TIMEOUT_S)
        return self

    def __exit__(self, *exc: object) -> None:
        for thread in self._threads:
            thread.join(ENDED_TIMEOUT_S)
            assert not thread.is_alive(), "a writer never came to its end"
        if self._errors:
            raise self._errors[0]


# -- readers ---------------------------------------------------------------------------------------


class Reader(ABC):
    """Reads a topic until it is ended; a member of `group` with an instance id, or by itself."""

    library: str

    def __init__(
        self, ledger: Ledger, topic: str, partitions: int, group: str | None = None
    ) -> None:
        self.ledger, self.topic, self.partitions, self.group = ledger, topic, partitions, group
        self.name = f"{self.library}-{group or 'alone'}-{topic}"
        self.instance = f"{self.library}-instance"
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=self.name)

    def start(self) -> Reader:
        self._thread.start()
        return self

    def _run(self) -> None:
        try:
            self.work()
        except BaseException as error:
            self._error = error

    def end(self) -> None:
        """Close the client and wait for that. Raises what went wrong in the thread."""
        self._ended.set()
        self._thread.join(ENDED_TIMEOUT_S)
        assert not self._thread.is_alive(), f"{self.name} does not end"
        if self._error is not None:
            raise self._error

    @property
    def working(self) -> bool:
        return not self._ended.is_set()

    def take(self, partition: int, offset: int, value: str) -> None:
        self.ledger.take(self.name, Got((self.topic, partition), offset, value))

    @abstractmethod
    def work(self) -> None:
        """Read, note and commit while `working`; then close."""


class JavaReader(Reader):
    library = "java"

    def __init__(self, java: Java, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._java = java

    def work(self) -> None:
        consumer: str = self._java(self._open)
        try:
            while self.working:
                self._java(lambda steps: self._turn(steps, consumer))
        finally:
            self._java(lambda steps: steps.close(consumer))

    def _open(self, steps: Steps) -> str:
        if self.group is None:
            consumer = steps.consumer(client_id=self.name)
            names = [f"{self.topic}-{index}" for index in range(self.partitions)]
            steps("assign", consumer, partitions=names)
        else:
            consumer = steps.consumer(
                self.group, group_instance_id=self.instance, client_id=self.name
            )
            steps("subscribe", consumer, topics=[self.topic])
        return consumer

    def _turn(self, steps: Steps, consumer: str) -> None:
        records = steps.poll(consumer, 1, timeout_ms=20)
        for record in records:
            self.take(record["partition"], record["offset"], record["value"])
        if self.group is not None and records:
            with contextlib.suppress(JavaError):  # a rebalance came between; read again then
                steps("commit", consumer)


class NativeReader(Reader):
    library = "librdkafka"

    def __init__(self, bootstrap: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._bootstrap = bootstrap

    def work(self) -> None:
        config: dict[str, Any] = {
            "group_id": self.group or "nobody",
            "client_id": self.name,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "fetch_wait_max_ms": 100,
            "heartbeat_interval_ms": 100,
            "topic_metadata_refresh_interval_ms": 200,
        }
        if self.group is not None:
            config["group_instance_id"] = self.instance
        consumer = Consumer(librdkafka.settings(self._bootstrap, **config))
        every = [TopicPartition(self.topic, index, 0) for index in range(self.partitions)]
        if self.group is None:
            consumer.assign(every)
        else:
            consumer.subscribe([self.topic])
        try:
            while self.working:
                self._turn(consumer)
        finally:
            consumer.close()

    def _turn(self, consumer: Consumer) -> None:
        consumer.memberid()  # which wakes its main thread, and that looks after the heartbeats
        messages = [each for each in consumer.consume(100, POLL_S) if each.error() is None]
        for message in messages:
            value, partition, offset = message.value(), message.partition(), message.offset()
            assert value is not None
            assert partition is not None
            assert offset is not None
            self.take(partition, offset, value.decode())
        if self.group is not None and messages:
            with contextlib.suppress(KafkaException):
                consumer.commit(asynchronous=False)


class AsyncReader(Reader):
    library = "aiokafka"

    def __init__(self, bootstrap: str, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._bootstrap = bootstrap

    def work(self) -> None:
        asyncio.run(self._work())

    async def _work(self) -> None:
        config: dict[str, Any] = {
            "bootstrap_servers": self._bootstrap,
            "client_id": self.name,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "fetch_max_wait_ms": 100,
            "metadata_max_age_ms": METADATA_AGE_MS,
        }
        if self.group is not None:
            config |= {
                "group_id": self.group,
                "group_instance_id": self.instance,
                "heartbeat_interval_ms": 100,
                "session_timeout_ms": 45_000,
                "partition_assignment_strategy": [RangePartitionAssignor],
            }
        topics = [] if self.group is None else [self.topic]
        async with AIOKafkaConsumer(*topics, **config) as consumer:
            if self.group is None:
                consumer.assign(
                    [AsyncPartition(self.topic, index) for index in range(self.partitions)]
                )
            while self.working:
                await self._turn(consumer)

    async def _turn(self, consumer: AIOKafkaConsumer) -> None:
        batches = await consumer.getmany(timeout_ms=int(POLL_S * 1000))
        for partition, records in batches.items():
            for record in records:
                self.take(partition.partition, record.offset, (record.value or b"").decode())
        if self.group is not None and batches:
            with contextlib.suppress(AsyncKafkaError):
                await consumer.commit()
