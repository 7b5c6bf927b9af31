"""Read spans: sequences of Fetches, and the reasons why a new span begins.

Within a span each Fetch continues behind the last answer. A span begins on a new connection, after
a rebalance of the group, and with a Fetch of another offset. That is a reset if the consumer looked
up offsets before, and a jump otherwise.
"""

from __future__ import annotations

from typing import Any

from mockbroker.pipeline.convert.cluster_state import ConvertedExchange, Place, RunClient, RunState
from mockbroker.pipeline.convert.readers import ReaderIdentity
from mockbroker.pipeline.convert.recent import Recent


class ReadSpan:
    """One span; `expected` is the offset of its next Fetch."""

    __slots__ = ("_start", "expected", "fetch_seq", "number", "rebalances")

    def __init__(self, number: int, start: str, expected: int, rebalances: int) -> None:
        self.number = number
        self.expected = expected
        self.rebalances = rebalances
        self.fetch_seq = 0
        self._start: str | None = start

    def begun(self) -> str | None:
        """The reason of its beginning; None after the first call."""
        start, self._start = self._start, None
        return start


class ReadSpans:
    """The open spans, by connection and partition."""

    def __init__(self, cluster: RunState) -> None:
        self._cluster = cluster
        self._count = 0
        self._under_way: dict[tuple[int, Place], ReadSpan] = {}
        self._places: dict[int, set[Place]] = {}  # of each connection
        self._first_fetch_seqs: dict[int, int] = {}  # connection -> its first Fetch
        # The last look-up of offsets: of a partition, or (None) of all.
        self._look_ups: Recent[RunClient, dict[Place | None, int]] = Recent()

    def of(
        self,
        exchange: ConvertedExchange,
        place: Place,
        offset: int,
        reader: ReaderIdentity,
        *,
        failed: bool,
    ) -> ReadSpan:
        """The span of a Fetch."""
        connection = exchange.request.connection_id
        seq = exchange.request.seq
        first = self._first_fetch_seqs.setdefault(connection, seq)
        span = self._under_way.get((connection, place))
        why: str | None = None
        if span is None:
            why = "connection"
            if first != seq and reader.group is not None and exchange.rebalances > 1:
                why = "rebalance"
        elif span.rebalances != exchange.rebalances:
            why = "rebalance"
        elif offset != span.expected:
            why = "reset" if self._looked_up(exchange.client, place, span.fetch_seq) else "jump"
        if why is not None:
            self._count += 1
            span = ReadSpan(self._count, why, offset, exchange.rebalances)
            self._under_way[connection, place] = span
            self._places.setdefault(connection, set()).add(place)
        assert span is not None
        if not failed:
            span.fetch_seq = seq
        return span

    def _looked_up(self, client: RunClient, place: Place, since_seq: int) -> bool:
        found = self._look_ups.get(client)
        if found is None:
            return False
        return max(found.get(place, 0), found.get(None, 0)) > since_seq

    def closed(self, connection: int) -> None:
        """A connection was closed, and its spans end."""
        self._first_fetch_seqs.pop(connection, None)
        for place in self._places.pop(connection, ()):
            del self._under_way[connection, place]

    # -- look-ups ----------------------------------------------------------------------------------

    def listed(self, exchange: ConvertedExchange) -> None:
        """A consumer sent ListOffsets or OffsetForLeaderEpoch."""
        message = exchange.message
        if message is None or message.replica_id >= 0:
            return
        for topic in message.topics:
            name = getattr(topic, "name", None) or topic.topic
            for each in topic.partitions:
                index = getattr(each, "partition_index", None)
                self._note(exchange, name, each.partition if index is None else index)

    def fetched_offsets(self, exchange: ConvertedExchange) -> None:
        """A consumer sent OffsetFetch."""
        message = exchange.message
        if message is None:
            return
        asked: list[Any] = list(message.groups) or [message]
        for group in asked:
            if not group.topics:  # of all partitions with a committed offset
                self._looks(exchange)[None] = exchange.request.seq
                continue
            for topic in group.topics:
                name = topic.name or self._cluster.place("", topic.topic_id, 0).topic
                for partition in topic.partition_indexes:
                    self._note(exchange, name or "", partition)

    def _note(self, exchange: ConvertedExchange, topic: str, partition: int) -> None:
        place = self._cluster.named(topic, partition)
        self._looks(exchange)[place] = exchange.request.seq

    def _looks(self, exchange: ConvertedExchange) -> dict[Place | None, int]:
        found = self._look_ups.get(exchange.client, {})
        self._look_ups[exchange.client] = found
        return found
