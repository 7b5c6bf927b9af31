"""Reading records: the offsets to start at, and an iterator over many partitions.

Each leader has one Fetch in flight, and the first response is read first, so a quiet partition
delays no other. Nothing is committed: the iterator has no group.
"""

from __future__ import annotations

import select
import time
from collections.abc import Generator, Iterable, Iterator

import msgspec

from mockbroker.client.connection import Connection
from mockbroker.client.errors import BrokerError, ClientError, UnknownTopicError, check
from mockbroker.client.router import BACKOFF_S, Router
from mockbroker.client.visible import visible_records
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from mockbroker_protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from mockbroker_protocol.records import Record

CONSUMER_REPLICA_ID = -1
READ_UNCOMMITTED = 0
READ_COMMITTED = 1

# Special timestamps of ListOffsets.
LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3

MAX_WAIT_MS = 500
FETCH_BYTES_MAX = 50 * 1024 * 1024
PARTITION_BYTES_MAX = 1024 * 1024


class ListedOffset(msgspec.Struct, frozen=True):
    """The result of ListOffsets; offset -1 without a record at or after the timestamp."""

    offset: int
    timestamp: int
    leader_epoch: int


class ConsumedRecord(msgspec.Struct, frozen=True):
    """A record with its partition."""

    topic: str
    partition: int
    record: Record


class Consumer:
    """Reads topics without being in a group."""

    def __init__(self, router: Router) -> None:
        self._router = router

    def list_offsets(
        self,
        topic: str,
        timestamp: int,
        partitions: Iterable[int] | None = None,
        *,
        isolation_level: int = READ_UNCOMMITTED,
    ) -> dict[int, ListedOffset]:
        """The offset at `timestamp` (ms, or EARLIEST, LATEST, MAX_TIMESTAMP) of each partition."""
        indexes = self._router.partitions(topic) if partitions is None else list(partitions)

        def one(index: int) -> ListedOffset:
            return self._router.retrying(
                lambda: self._list_offset(topic, index, timestamp, isolation_level)
            )

        return {index: one(index) for index in indexes}

    def _list_offset(
        self, topic: str, partition: int, timestamp: int, isolation_level: int
    ) -> ListedOffset:
        request = ListOffsetsRequest(
            replica_id=CONSUMER_REPLICA_ID,
            isolation_level=isolation_level,
            topics=[
                ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
                    ],
                )
            ],
        )
        leader = self._router.leader(topic, partition)
        response: ListOffsetsResponse = self._router.node(leader).send(request)
        answer = response.topics[0].partitions[0]
        check(answer.error_code, f"offsets of {topic}-{partition}")
        return ListedOffset(answer.offset, answer.timestamp, answer.leader_epoch)

    def fetch(
        self,
        topic: str,
        partition: int,
        offset: int,
        *,
        max_wait_ms: int = MAX_WAIT_MS,
        isolation_level: int = READ_UNCOMMITTED,
    ) -> list[Record]:
        """The records of one Fetch at `offset`; empty when none came within `max_wait_ms`.

        Raises `BrokerError`, for instance OFFSET_OUT_OF_RANGE.
        """
        position = Position(topic, partition, offset)
        request = _fetch_request([position], max_wait_ms, isolation_level)

        def attempt() -> list[Record]:
            leader = self._router.leader(topic, partition)
            response: FetchResponse = self._router.node(leader).send(request)
            check(response.error_code, f"fetch from {topic}")
            return position.advance(response.responses[0].partitions[0], isolation_level)

        return self._router.retrying(attempt)

    def consume(
        self,
        topic: str,
        offsets: dict[int, int],
        *,
        until: dict[int, int] | None = None,
        idle_timeout_s: float | None = None,
        isolation_level: int = READ_UNCOMMITTED,
        max_wait_ms: int = MAX_WAIT_MS,
    ) -> Generator[ConsumedRecord, None, None]:
        """Records from `offsets` (partition -> offset) on, those of one partition in order.

        Ends once each partition has reached its offset in `until` (a partition without one never
        ends), or after `idle_timeout_s` without a record. Without either it never ends. Raises
        `BrokerError` for a non-retriable error.
        """
        positions = [Position(topic, index, offset) for index, offset in offsets.items()]
        stream = FetchStream(self._router, positions, until or {}, isolation_level, max_wait_ms)
        idle_since = time.monotonic()
        try:
            while not stream.finished():
                remaining_s = None
                if idle_timeout_s is not None:
                    remaining_s = idle_since + idle_timeout_s - time.monotonic()
                    if remaining_s <= 0:
                        return
                for found in stream.poll(remaining_s):
                    yield found
                    idle_since = time.monotonic()
        finally:
            stream.close()


class Position:
    """The next offset to read of one partition."""

    __slots__ = ("offset", "partition", "topic")

    def __init__(self, topic: str, partition: int, offset: int) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset

    def advance(self, data: PartitionData, isolation_level: int) -> list[Record]:
        """The records at or after the position; the position moves behind them."""
        check(data.error_code, f"fetch from {self.topic}-{self.partition} at {self.offset}")
        records, self.offset = visible_records(
            data, self.offset, read_committed=isolation_level == READ_COMMITTED
        )
        return records


class FetchStream:
    """Fetches of many partitions, with at most one in flight to each leader."""

    def __init__(
        self,
        router: Router,
        positions: list[Position],
        until: dict[int, int],
        isolation_level: int,
        max_wait_ms: int,
    ) -> None:
        self._router = router
        self._positions = positions
        self._until = until
        self._isolation_level = isolation_level
        self._max_wait_ms = max_wait_ms
        # Connection -> the positions of its Fetch, by topic and partition.
        self._pending: dict[Connection, dict[tuple[str, int], Position]] = {}

    def _unfinished(self) -> list[Position]:
        return [
            position
            for position in self._positions
            if position.offset < self._until.get(position.partition, position.offset + 1)
        ]

    def finished(self) -> bool:
        return not self._unfinished()

    def poll(self, timeout_s: float | None) -> Iterator[ConsumedRecord]:
        """The records of the first responses that arrive within the timeout."""
        self._router.retrying(self._send_fetches)
        readable, _, _ = select.select(list(self._pending), [], [], timeout_s)
        for connection in readable:
            positions = self._pending.pop(connection)
            for position, record in self._receive(connection, positions):
                if record.offset < self._until.get(position.partition, record.offset + 1):
                    yield ConsumedRecord(position.topic, position.partition, record)

    def _send_fetches(self) -> None:
        """Send a Fetch to every leader that has none in flight."""
        # A connection that broke while another was written to has been closed by the router.
        self._pending = {c: p for c, p in self._pending.items() if c.fileno() >= 0}
        in_flight = {id(p) for positions in self._pending.values() for p in positions.values()}
        by_leader: dict[int, list[Position]] = {}
        for position in self._unfinished():
            if id(position) not in in_flight:
                leader = self._router.leader(position.topic, position.partition)
                by_leader.setdefault(leader, []).append(position)
        for leader, positions in by_leader.items():
            connection = self._router.node(leader)
            if connection in self._pending:
                continue  # its response comes first; the next Fetch has all positions
            request = _fetch_request(positions, self._max_wait_ms, self._isolation_level)
            connection.write(request, connection.version_of(ApiKey.FETCH))
            self._pending[connection] = {(p.topic, p.partition): p for p in positions}

    def _receive(
        self, connection: Connection, positions: dict[tuple[str, int], Position]
    ) -> list[tuple[Position, Record]]:
        def read() -> list[tuple[Position, Record]]:
            response: FetchResponse = connection.read(
                ApiKey.FETCH, connection.version_of(ApiKey.FETCH)
            )
            check(response.error_code, "fetch")
            found = []
            for topic in response.responses:
                for data in topic.partitions:
                    position = positions[topic.topic, data.partition_index]
                    records = position.advance(data, self._isolation_level)
                    found += [(position, record) for record in records]
            return found

        try:
            return read()
        except ClientError as error:
            if not error.retriable or getattr(error, "code", 0) == ErrorCode.CORRUPT_MESSAGE:
                raise
            if not isinstance(error, BrokerError):
                self._router.drop(connection)
        self._router.forget()
        time.sleep(BACKOFF_S)
        return []

    def close(self) -> None:
        """Close the connections whose responses nobody will read."""
        for connection in self._pending:
            self._router.drop(connection)
        self._pending.clear()


def _fetch_request(
    positions: list[Position], max_wait_ms: int, isolation_level: int
) -> FetchRequest:
    topics: dict[str, FetchTopic] = {}
    for position in positions:
        topic = topics.setdefault(position.topic, FetchTopic(topic=position.topic, partitions=[]))
        topic.partitions.append(
            FetchPartition(
                partition=position.partition,
                fetch_offset=position.offset,
                partition_max_bytes=PARTITION_BYTES_MAX,
            )
        )
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=FETCH_BYTES_MAX,
        isolation_level=isolation_level,
        topics=list(topics.values()),
    )


def start_offsets(
    consumer: Consumer, topic: str, partitions: list[int], start: int
) -> dict[int, int]:
    """The first offsets: an offset ≥ 0 for all partitions, or EARLIEST, or LATEST."""
    if start >= 0:
        return dict.fromkeys(partitions, start)
    listed = consumer.list_offsets(topic, start, partitions)
    return {index: offset.offset for index, offset in listed.items()}


def check_partitions(router: Router, topic: str, partitions: list[int] | None) -> list[int]:
    """All partitions of a topic, or those given if they exist. Raises `UnknownTopicError`."""
    known = router.partitions(topic)
    for index in partitions or []:
        if index not in known:
            raise UnknownTopicError(
                f"topic {topic} has no partition {index}, only 0-{len(known) - 1}"
            )
    return partitions or known
