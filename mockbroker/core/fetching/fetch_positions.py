"""How far clients that commit nothing have come: where their last Fetch went on.

Spark keeps its progress in its own checkpoint, so the broker sees no offsets but those of Fetches.
Each run of a query has a group of its own, which it never joins, and which the client ids of its
consumers name: `consumer-<group>-executor-<n>` (KafkaSourceProvider.kafkaParamsForExecutors, and
ConsumerConfig, which makes a client id of the group's).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mockbroker_protocol.messages.fetch import FetchRequest

# What is in the client ids of Spark's consumers, and in hardly any other's.
EXECUTOR = "-executor-"
_CONSUMER = "consumer-"

# The oldest entry makes way for a new one: queries come and go, and nobody says that one is over.
POSITIONS_MAX = 10_000

# (group, topic or its id, partition)
PositionKey = tuple[str, str | bytes, int]


class FetchPositions:
    """The farthest offset that each partition was fetched from at one broker, by group."""

    __slots__ = ("_positions",)

    def __init__(self) -> None:
        self._positions: dict[PositionKey, int] = {}

    def heard(self, client_id: str, request: FetchRequest, *, by_id: bool) -> None:
        """A Fetch has come; its session may leave out partitions whose position is as before."""
        group = client_id.removeprefix(_CONSUMER).rpartition(EXECUTOR)[0]
        positions = self._positions
        for topic in request.topics:
            topic_key = topic.topic_id if by_id else topic.topic
            for partition in topic.partitions:
                key = (group, topic_key, partition.partition)
                # Taken out, because the newest stands last. A task that is tried again, or a second
                # reader of the same run, takes nothing back.
                positions[key] = max(positions.pop(key, 0), partition.fetch_offset)
        while len(positions) > POSITIONS_MAX:
            del positions[next(iter(positions))]

    def __iter__(self) -> Iterator[tuple[PositionKey, int]]:
        return iter(self._positions.items())
