"""Transactions: how many a second, and what those that are open or aborted cost everybody else."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from bench import process, raw, swarm
from bench.drivers import TRANSACTING_DRIVERS, TransactingDriver
from bench.model import PER_SECOND, TIMES, Figures, Measure, Running, Scale, Workload
from bench.workloads.support import fresh_topic
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.end_txn import EndTxnRequest
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.init_producer_id import InitProducerIdRequest
from mockbroker_protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from mockbroker_protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from mockbroker_protocol.records import Record, build_batch

RECORDS = (1, 10, 100)
RECORD_BYTES = 100
TRANSACTION = 1
READ_COMMITTED = 1
LATEST = -1
TIMEOUT_MS = 900_000
CHUNKS = 20
# The newest versions that every peer has; with this Produce leaders add their partitions.
FIND_COORDINATOR, INIT, METADATA, PRODUCE, END, LIST_OFFSETS, FETCH = 4, 4, 9, 12, 5, 5, 11
PLAIN_PRODUCE = 8


class Transactions:
    """Commit transactions of some records one after the other, to one partition."""

    fresh = False
    excluded: Mapping[str, str] = {
        "librdkafka-mock": "ends transactions without writing markers",
    }

    def __init__(self, driver: TransactingDriver, records: int) -> None:
        self.name = f"transactions-{driver.name}-{records}"
        self._driver, self._records = driver, records
        each = "1 record" if records == 1 else f"{records} records"
        title = f"transactions of {each}, {driver.title}"
        self.measures: tuple[Measure, ...] = (Measure(self.name, title, PER_SECOND),)

    def prepare(self) -> None:
        self._driver.prepare()

    def run(self, running: Running, scale: Scale) -> Figures:
        bootstrap = running.bootstrap_servers
        with fresh_topic(running) as topic:
            seconds = self._driver.transact(bootstrap, topic, scale.transactions, self._records)
        return {self.name: scale.transactions / seconds}


def transaction_workloads() -> list[Workload]:
    return [Transactions(driver, records) for driver in TRANSACTING_DRIVERS for records in RECORDS]


class _Beside:
    """CPU of requests in a cluster with many transactions, against those in an empty one.

    Both run at once and take turns, so that a bad minute of the machine is in both figures.
    """

    fresh = True
    excluded: Mapping[str, str] = {
        "real": "takes minutes to make the transactions",
        "librdkafka-mock": "ends transactions without writing markers",
    }

    def prepare(self) -> None:
        """Nothing to build."""


class OpenTransactions(_Beside):
    """Produce, ListOffsets and Fetch where 5,000 transactions are open, and where none is."""

    name = "open-transactions"
    measures: tuple[Measure, ...] = (
        Measure(name, "CPU of a request, 5,000 open transactions against none", TIMES),
    )

    def run(self, running: Running, scale: Scale) -> Figures:
        with (
            running.peer.start() as empty,
            fresh_topic(empty) as plain,
            fresh_topic(running) as topic,
            raw.RawConnection(_leader(empty.address, plain)) as before,
            raw.RawConnection(_leader(running.address, topic)) as connection,
        ):
            ids = [f"{topic}-{number}" for number in range(scale.open_transactions)]
            producers = _init_all(_coordinators(running.address, ids))
            for transactional_id, (producer_id, epoch) in producers.items():
                _accepted(connection, _batch(topic, transactional_id, producer_id, epoch))
            sides = (
                _Side(empty, before, [_plain(plain), _list_offsets(plain), _fetch(plain)]),
                _Side(running, connection, [_plain(topic), _list_offsets(topic), _fetch(topic)]),
            )
            return {self.name: _ratio(*sides, scale.round_trips)}


class AbortedTransactions(_Beside):
    """A read_committed Fetch near the end, behind 10,000 aborted transactions and behind 10."""

    name = "aborted-transactions"
    measures: tuple[Measure, ...] = (
        Measure(name, "CPU of a Fetch, 10,000 aborted transactions against 10", TIMES),
    )
    few = 10

    def run(self, running: Running, scale: Scale) -> Figures:
        with (
            running.peer.start() as other,
            _aborted(other, self.few) as few,
            _aborted(running, scale.aborted_transactions) as many,
        ):
            return {self.name: _ratio(few, many, scale.round_trips)}


class _Side(NamedTuple):
    """One of two clusters that are compared, and what it is asked in each round."""

    running: Running
    connection: raw.RawConnection
    requests: Sequence[bytes]

    def cost(self, rounds: int) -> float:
        """CPU seconds of one round."""
        before = process.cpu_seconds(self.running.pids)
        for _ in range(rounds):
            for request in self.requests:
                self.connection.round_trip(request)
        return (process.cpu_seconds(self.running.pids) - before) / rounds


def _ratio(base: _Side, other: _Side, count: int) -> float:
    """What a round of the other costs, as a multiple of the base's; in chunks, by turns.

    Of the chunks the cheapest count: what else goes on in a process, as collecting garbage, is in
    some of them only.
    """
    rounds = max(1, count // CHUNKS // len(base.requests))
    costs = [(base.cost(rounds), other.cost(rounds)) for _ in range(CHUNKS)]
    return min(cost for _, cost in costs) / min(cost for cost, _ in costs)


@contextmanager
def _aborted(running: Running, count: int) -> Iterator[_Side]:
    """A partition with so many aborted transactions, and a Fetch of the last of them."""
    with fresh_topic(running) as topic:
        (coordinator,) = _coordinators(running.address, [topic]).values()
        with (
            raw.RawConnection(_leader(running.address, topic)) as leader,
            raw.RawConnection(coordinator) as coordinating,
        ):
            _abort(leader, coordinating, topic, count)
            answer = leader.round_trip(_list_offsets(topic))
            listed = raw.answer(ApiKey.LIST_OFFSETS, LIST_OFFSETS, answer)
            last = listed.topics[0].partitions[0].offset - 2  # its record; then comes the marker
            yield _Side(running, leader, [_fetch(topic, last)])


def _abort(
    leader: raw.RawConnection, coordinator: raw.RawConnection, topic: str, count: int
) -> None:
    """Abort so many transactions of one record, each of them under an epoch of its own."""
    producer_id, epoch = _initialised(coordinator.round_trip(_init(topic)))
    for _ in range(count):
        _accepted(leader, _batch(topic, topic, producer_id, epoch))
        request = EndTxnRequest(topic, producer_id, epoch, committed=False)
        frame = raw.request(ApiKey.END_TXN, END, request)
        ended = raw.answer(ApiKey.END_TXN, END, coordinator.round_trip(frame))
        if ended.error_code:
            raise RuntimeError(f"EndTxn: {ended.error_code}")
        producer_id, epoch = ended.producer_id, ended.producer_epoch


def _init_all(
    coordinators: Mapping[str, swarm.Address],
) -> dict[str, tuple[int, int]]:
    """Producer id and epoch of each transactional id."""
    found: dict[str, tuple[int, int]] = {}
    by_address: dict[swarm.Address, list[str]] = {}
    for transactional_id, address in coordinators.items():
        by_address.setdefault(address, []).append(transactional_id)
    for address, ids in by_address.items():
        with raw.RawConnection(address) as connection:
            for each in ids:
                found[each] = _initialised(connection.round_trip(_init(each)))
    return found


def _initialised(answer: bytes | memoryview) -> tuple[int, int]:
    told = raw.answer(ApiKey.INIT_PRODUCER_ID, INIT, answer)
    if told.error_code:
        raise RuntimeError(f"InitProducerId: {told.error_code}")
    return told.producer_id, told.producer_epoch


def _accepted(connection: raw.RawConnection, request: bytes) -> None:
    """Produce; again while an earlier end is not complete. Raises RuntimeError."""
    concurrent = 51
    while True:
        answer = raw.answer(ApiKey.PRODUCE, PRODUCE, connection.round_trip(request))
        error = answer.responses[0].partition_responses[0].error_code
        if error != concurrent:
            break
    if error:
        raise RuntimeError(f"Produce: {error}")


def _leader(address: swarm.Address, topic: str) -> swarm.Address:
    """The broker that leads partition 0."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    frame = raw.request(ApiKey.METADATA, METADATA, request)
    with raw.RawConnection(address) as connection:
        found = raw.answer(ApiKey.METADATA, METADATA, connection.round_trip(frame))
    [leader] = [each.leader_id for each in found.topics[0].partitions]
    [broker] = [each for each in found.brokers if each.node_id == leader]
    return broker.host, broker.port


def _coordinators(address: swarm.Address, ids: Sequence[str]) -> dict[str, swarm.Address]:
    """Who coordinates each transactional id; asked until all are known and ready."""
    request = FindCoordinatorRequest(key_type=TRANSACTION, coordinator_keys=list(ids))
    frame = raw.request(ApiKey.FIND_COORDINATOR, FIND_COORDINATOR, request)
    deadline = time.monotonic() + swarm.PATIENCE_S
    with raw.RawConnection(address, buffer_bytes=1 << 22) as connection:
        while time.monotonic() < deadline:
            answer = connection.round_trip(frame)
            found = raw.answer(ApiKey.FIND_COORDINATOR, FIND_COORDINATOR, answer).coordinators
            if not any(each.error_code for each in found):
                return {each.key: (each.host, each.port) for each in found}
    raise RuntimeError("the coordinators cannot be found")


def _init(transactional_id: str) -> bytes:
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=TIMEOUT_MS
    )
    return raw.request(ApiKey.INIT_PRODUCER_ID, INIT, request)


def _produce(topic: str, version: int, batch: bytes, transactional_id: str | None = None) -> bytes:
    data = TopicProduceData(topic, partition_data=[PartitionProduceData(index=0, records=batch)])
    request = ProduceRequest(transactional_id, acks=-1, timeout_ms=10_000, topic_data=[data])
    return raw.request(ApiKey.PRODUCE, version, request)


def _batch(topic: str, transactional_id: str, producer_id: int, epoch: int) -> bytes:
    """One record in a transaction."""
    batch = build_batch(
        [Record(timestamp=time.time_ns() // 1_000_000, value=bytes(RECORD_BYTES))],
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=0,
        transactional=True,
    )
    return _produce(topic, PRODUCE, bytes(batch), transactional_id)


def _plain(topic: str) -> bytes:
    record = Record(timestamp=time.time_ns() // 1_000_000, value=bytes(RECORD_BYTES))
    return _produce(topic, PLAIN_PRODUCE, bytes(build_batch([record])))


def _list_offsets(topic: str) -> bytes:
    listed = ListOffsetsTopic(topic, [ListOffsetsPartition(timestamp=LATEST)])
    request = ListOffsetsRequest(isolation_level=READ_COMMITTED, topics=[listed])
    return raw.request(ApiKey.LIST_OFFSETS, LIST_OFFSETS, request)


def _fetch(topic: str, offset: int = 0) -> bytes:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=1)
    request = FetchRequest(
        max_bytes=1,
        isolation_level=READ_COMMITTED,
        topics=[FetchTopic(topic=topic, partitions=[partition])],
    )
    return raw.request(ApiKey.FETCH, FETCH, request)
