"""Share groups without a share coordinator: a persister in memory, and requests in a few words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mockbroker.core.errors import ApiError
from mockbroker.core.share.acknowledgement import AcknowledgementBatch as AckedBatch
from mockbroker.core.share.acknowledgement import acknowledge
from mockbroker.core.share.acquisition import AcquireRequest, acquire
from mockbroker.core.share.manager import SharePartitionManager
from mockbroker.core.share.operations import READ
from mockbroker.core.share.partition import SharePartition
from mockbroker.core.share.persisted import SharePartitionKey
from mockbroker.core.share.sessions import ShareTarget
from mockbroker.core.share.states import AcquireMode, RecordState
from mockbroker.handlers.base import ConnectionInfo, RequestContext
from mockbroker.handlers.share_acknowledge import share_acknowledge
from mockbroker.handlers.share_fetch import share_fetch
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages import read_share_group_state as reading
from mockbroker_protocol.messages import share_acknowledge as acknowledging
from mockbroker_protocol.messages import write_share_group_state as writing
from mockbroker_protocol.messages.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ShareFetchRequest,
    ShareFetchResponse,
)
from tests.support.requests import Node

GROUP = "g"
MEMBER = "m1"

Batch = tuple[int, int, int, int]  # first and last offset, delivery state, delivery count
Range = tuple[int, int, int]  # first and last offset, delivery count


class MemoryPersister:
    """Keeps the state of share partitions. With `holds`, writes wait for `answer`.

    `error` is the answer to each request, if it is not 0. A share partition without a state begins
    where its group's config says.
    """

    def __init__(self) -> None:
        self.holds = False
        self.holds_reads = False
        self.error: int = 0
        self.message: str | None = None
        self.states: dict[SharePartitionKey, tuple[int, int, dict[int, tuple[int, int]]]] = {}
        self.writes: list[writing.WriteShareGroupStateRequest] = []
        self._held: list[Callable[[int], None]] = []

    def put(self, key: SharePartitionKey, start: int, *batches: Batch, epoch: int = 0) -> None:
        """Set the state of a share partition."""
        offsets = {
            offset: (state, count)
            for first, last, state, count in batches
            for offset in range(first, last + 1)
        }
        self.states[key] = (epoch, start, offsets)

    def answer(self, error: int = 0) -> None:
        """Answer the oldest request that waits."""
        self._held.pop(0)(error)

    def resume(self) -> None:
        """Nothing is overdue."""

    def unload(self) -> None:
        """Nothing is lost: a broker's process has none of it."""

    @property
    def waiting(self) -> int:
        return len(self._held)

    def send(self, operation: object, request: Any, then: Callable[[Any], None]) -> None:
        (self._read if operation is READ else self._write)(request, then)

    def _read(
        self,
        request: reading.ReadShareGroupStateRequest,
        then: Callable[[reading.ReadShareGroupStateResponse], None],
    ) -> None:
        (topic,) = request.topics
        (partition,) = topic.partitions
        topic_id = topic.topic_id

        def answer(error: int) -> None:
            result = reading.PartitionResult(partition.partition, error, self.message)
            if not error:
                key = request.group_id, topic_id, partition.partition
                epoch, start, offsets = self.states.get(key, (0, -1, {}))
                result.state_epoch, result.start_offset = epoch, start
                result.state_batches = [
                    reading.StateBatch(first, last, state, count)
                    for first, last, state, count in _ranges(offsets)
                ]
            then(reading.ReadShareGroupStateResponse([reading.ReadStateResult(topic_id, [result])]))

        self._take(answer, held=self.holds_reads)

    def _write(
        self,
        request: writing.WriteShareGroupStateRequest,
        then: Callable[[writing.WriteShareGroupStateResponse], None],
    ) -> None:
        self.writes.append(request)
        (topic,) = request.topics
        (data,) = topic.partitions
        topic_id = topic.topic_id

        def answer(error: int) -> None:
            if not error:
                key = request.group_id, topic_id, data.partition
                _, _, offsets = self.states.get(key, (0, -1, {}))
                for batch in data.state_batches:
                    for offset in range(batch.first_offset, batch.last_offset + 1):
                        offsets[offset] = batch.delivery_state, batch.delivery_count
                kept = {at: each for at, each in offsets.items() if at >= data.start_offset}
                self.states[key] = (data.state_epoch, data.start_offset, kept)
            result = writing.PartitionResult(data.partition, error, self.message)
            then(
                writing.WriteShareGroupStateResponse([writing.WriteStateResult(topic_id, [result])])
            )

        self._take(answer, held=self.holds)

    def _take(self, answer: Callable[[int], None], *, held: bool) -> None:
        if held:
            self._held.append(answer)
        else:
            answer(self.error)


def _ranges(offsets: dict[int, tuple[int, int]]) -> list[Batch]:
    found: list[Batch] = []
    for offset in sorted(offsets):
        state, count = offsets[offset]
        if found and found[-1][1:] == (offset - 1, state, count):
            found[-1] = (found[-1][0], offset, state, count)
        else:
            found.append((offset, offset, state, count))
    return found


class ShareNode(Node):
    """A node whose brokers keep the state of share partitions in one memory.

    Groups read from the start of a partition, unless `reset` says otherwise.
    """

    def __init__(self, *, reset: str = "earliest", **more: Any) -> None:
        super().__init__(**more)
        self.persister = MemoryPersister()
        for broker in self.cluster.brokers.values():
            broker._share_persister = self.persister  # type: ignore[assignment]
        self.group_config("share.auto.offset.reset", reset)
        self.connections: dict[str, ConnectionInfo] = {}

    def group_config(self, name: str, value: str, group: str = GROUP) -> None:
        self.cluster.configs.groups.setdefault(group, {})[name] = value
        self.cluster.configs.changed()

    @property
    def manager(self) -> SharePartitionManager:
        return self.cluster.brokers[1].share_partitions

    def share(self, topic: str = "t", index: int = 0, group: str = GROUP) -> SharePartition:
        """The share partition, which is created and initialized if needed."""
        topic_id = self.cluster.topics[topic].topic_id
        share = self.manager.get_or_create(group, ShareTarget(topic_id, index, topic))
        share.initialize(lambda _: None)
        return share

    def share_ctx(
        self, key: ApiKey, version: int, *, client: str = MEMBER, broker: int = 1
    ) -> RequestContext:
        ctx = self.ctx(version, key=key, broker=broker)
        number = len(self.connections) + 1
        ctx.connection = self.connections.setdefault(
            f"{client}/{broker}", ConnectionInfo(number, "127.0.0.1", 50000)
        )
        return ctx

    def share_fetch(
        self,
        epoch: int,
        *topics: FetchTopic,
        member: str | None = MEMBER,
        group: str | None = GROUP,
        version: int = 2,
        broker: int = 1,
        **fields: Any,
    ) -> Any:
        """The handler's answer to a ShareFetch; fields of the request by name."""
        fields = {"max_records": 500, "batch_size": 500, "min_bytes": 1, **fields}
        request = ShareFetchRequest(group, member, epoch, topics=list(topics), **fields)
        ctx = self.share_ctx(ApiKey.SHARE_FETCH, version, client=member or "", broker=broker)
        return share_fetch(ctx, request)

    def share_acknowledge(
        self,
        epoch: int,
        *topics: acknowledging.AcknowledgeTopic,
        member: str | None = MEMBER,
        group: str | None = GROUP,
        version: int = 2,
        renew: bool = False,
        broker: int = 1,
    ) -> Any:
        """The handler's answer to a ShareAcknowledge."""
        request = acknowledging.ShareAcknowledgeRequest(
            group, member, epoch, renew, topics=list(topics)
        )
        ctx = self.share_ctx(ApiKey.SHARE_ACKNOWLEDGE, version, client=member or "", broker=broker)
        return share_acknowledge(ctx, request)

    def close(self, member: str = MEMBER, broker: int = 1) -> None:
        """Close a member's connection."""
        self.cluster.brokers[broker].connection_closed(self.connections[f"{member}/{broker}"])

    def wanted(
        self, *indexes: int, topic: str = "t", acks: Sequence[tuple[int, int, Sequence[int]]] = ()
    ) -> FetchTopic:
        """Partitions of a topic for a ShareFetch; `acks` are for each of them."""
        batches = [AcknowledgementBatch(first, last, list(types)) for first, last, types in acks]
        partitions = [FetchPartition(index, batches) for index in indexes or (0,)]
        return FetchTopic(self.topic_id(topic), partitions)

    def forgotten(self, *indexes: int, topic: str = "t") -> ForgottenTopic:
        return ForgottenTopic(self.topic_id(topic), list(indexes))

    def acks(
        self, *acks: tuple[int, int, Sequence[int]], index: int = 0, topic: str = "t"
    ) -> acknowledging.AcknowledgeTopic:
        """Acknowledgements of one partition for a ShareAcknowledge."""
        batches = [
            acknowledging.AcknowledgementBatch(first, last, list(types))
            for first, last, types in acks
        ]
        return acknowledging.AcknowledgeTopic(
            self.topic_id(topic), [acknowledging.AcknowledgePartition(index, batches)]
        )

    def topic_id(self, topic: str) -> bytes:
        known = self.cluster.topics.get(topic)
        return known.topic_id if known else b"\x09" * 16


def rows_of(response: Any) -> dict[int, Any]:
    """The rows of an answer about one topic, by partition."""
    return {
        getattr(data, "partition_index"): data  # noqa: B009
        for topic in response.responses
        for data in topic.partitions
    }


def row_of(response: ShareFetchResponse) -> PartitionData:
    """The only row of an answer."""
    (topic,) = response.responses
    (row,) = topic.partitions
    return row


def ranges_of(row: PartitionData) -> list[Range]:
    """The acquired ranges of a row."""
    return [
        (each.first_offset, each.last_offset, each.delivery_count) for each in row.acquired_records
    ]


def states_of(share: SharePartition) -> dict[int, tuple[RecordState, int]]:
    """The state and the delivery count of each offset in flight."""
    return {
        offset: (batch.state_at(offset).state, batch.state_at(offset).delivery_count)
        for batch in share.batches
        for offset in range(batch.first_offset, batch.last_offset + 1)
    }


def error_of(code: int) -> ErrorCode:
    return {int(each): each for each in ErrorCode}[code]


def acquired(
    node: ShareNode,
    member: str = MEMBER,
    *,
    most: int = 500,
    batch_size: int = 500,
    mode: AcquireMode = AcquireMode.BATCH_OPTIMIZED,
    bytes_max: int = 1 << 20,
    offset: int | None = None,
    share: SharePartition | None = None,
) -> list[Range]:
    """What a fetch from the next fetch offset, or from `offset`, acquires."""
    share = share or node.share()
    at = share.next_fetch_offset() if offset is None else offset
    log, upper = share.partition.log, share.partition.high_watermark
    _, size = log.read(at, upper, bytes_max, at_least_one=True)
    request = AcquireRequest(member, mode, batch_size, most)
    found = acquire(share, request, at, log.batches_read(at, size))
    ranges = [(each.first_offset, each.last_offset, each.delivery_count) for each in found.ranges]
    assert found.offsets == sum(last - first + 1 for first, last, _ in ranges)
    return ranges


def acknowledged(
    share: SharePartition,
    *batches: tuple[int, int, Sequence[int]],
    member: str = MEMBER,
) -> tuple[ErrorCode, str | None] | None:
    """The error of an acknowledgement and its message; None if there is none."""
    told: list[ApiError | None] = []
    acknowledge(share, member, [AckedBatch(*each) for each in batches], told.append)
    (error,) = told
    return None if error is None else (error.error, error.message)


def summary(share: SharePartition) -> str:
    """The records in flight in short: `0-4:acquired/1 5:archived/1`."""
    found: list[tuple[int, int, str]] = []
    for offset, (state, count) in states_of(share).items():
        text = f"{state.name.lower()}/{count}"
        if found and found[-1][1:] == (offset - 1, text):
            found[-1] = (found[-1][0], offset, text)
        else:
            found.append((offset, offset, text))
    return " ".join(
        f"{first}:{text}" if first == last else f"{first}-{last}:{text}"
        for first, last, text in found
    )
