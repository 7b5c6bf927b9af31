"""Fetch positions of clients that commit no offsets, such as Spark's executors.

Spark keeps its progress in its own checkpoint, so the broker sees only the offsets of Fetches. Each
run of a query has its own group id, which appears only in the client ids of its consumers:
`consumer-<group>-executor-<n>` (KafkaSourceProvider.kafkaParamsForExecutors, ConsumerConfig).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockbroker_protocol.messages.fetch import FetchRequest

# Part of the client ids of Spark's consumers.
EXECUTOR = "-executor-"
_CONSUMER = "consumer-"

# A new entry evicts the oldest one, because the end of a query is not reported.
POSITIONS_MAX = 10_000

# (group, topic or its id, partition)
PositionKey = tuple[str, str | bytes, int]


class FetchPositions:
    """The farthest offset that each partition was fetched from at one broker, by group."""

    __slots__ = ("_positions",)

    def __init__(self) -> None:
        self._positions: dict[PositionKey, int] = {}

    def record(self, client_id: str, request: FetchRequest, *, by_id: bool) -> None:
        """Record the fetch offsets in a request; its session may omit unchanged partitions."""
        group = client_id.removeprefix(_CONSUMER).rpartition(EXECUTOR)[0]
        positions = self._positions
        for topic in request.topics:
            topic_key = topic.topic_id if by_id else topic.topic
            for partition in topic.partitions:
                key = (group, topic_key, partition.partition)
                # Popped, so that the newest entry is the last. The position never decreases: a
                # retried task or a second reader of the same run may fetch earlier offsets.
                positions[key] = max(positions.pop(key, 0), partition.fetch_offset)
        while len(positions) > POSITIONS_MAX:
            del positions[next(iter(positions))]

    def __iter__(self) -> Iterator[tuple[PositionKey, int]]:
        return iter(self._positions.items())
