"""Deliveries: the records that answers to Fetches bring to consumers.

A consumer skips markers and records before its fetch offset, and under read_committed the batches
of the aborted transactions that the answer lists.

Source: Kafka's CompletedFetch and FetchSessionHandler.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, Generic, TypeVar

from mockbroker_protocol.records import (
    BatchHeader,
    ControlType,
    RecordsError,
    parse_control_type,
    read_control,
    split_batches,
)

READ_COMMITTED = 1
SESSIONLESS_EPOCH = -1
INITIAL_EPOCH = 0
# A client may open a session with each Fetch, and brokers do not report which ones they evict: of
# one connection the oldest go beyond this number.
SESSIONS_MAX = 100

P = TypeVar("P", bound=Hashable)


class FetchOffsets(Generic[P]):
    """The fetch offsets of consumers, also of partitions that only the session of an incremental
    Fetch has (KIP-227). Requests and answers come in the journal's order.

    A session is forgotten with its connection: clients begin another one after a disconnect
    (FetchSessionHandler.handleError).

    `place` makes a key of a topic's name or id and a partition.
    """

    def __init__(self, place: Callable[[str, bytes, int], P]) -> None:
        self._place = place
        # connection -> session id -> offset of each partition of the session.
        self._sessions: dict[int, dict[int, dict[P, int]]] = {}

    def __len__(self) -> int:
        """The number of known sessions."""
        return sum(map(len, self._sessions.values()))

    def clear(self) -> None:
        """Entries are missing: the offsets of sessions are unknown."""
        self._sessions.clear()

    def connection_closed(self, connection_id: int) -> None:
        """Forget the sessions of a connection."""
        self._sessions.pop(connection_id, None)

    def request(self, connection_id: int, request: Any) -> None:
        """Handle a Fetch that arrived on a connection."""
        sessions = self._sessions.get(connection_id)
        if sessions is None:
            return
        if request.session_epoch in (SESSIONLESS_EPOCH, INITIAL_EPOCH):
            sessions.pop(request.session_id, None)
            return
        session = sessions.get(request.session_id)
        if session is None:
            return
        for topic in request.forgotten_topics_data:
            for partition in topic.partitions:
                session.pop(self._place(topic.topic, topic.topic_id, partition), None)
        session.update(self._named(request))

    def response(
        self, connection_id: int, request: Any, response: Any
    ) -> list[tuple[P, int | None, Any]]:
        """The partitions of the answer to a consumer's Fetch: key, fetch offset, data.

        The offset is None if the request, or the beginning of its session, is unknown. Fetches of
        followers give no partitions.
        """
        offsets: dict[P, int] = {}
        if request is not None:
            if request.replica_id >= 0 or request.replica_state.replica_id >= 0:
                return []
            session = self._sessions.get(connection_id, {}).get(request.session_id)
            is_incremental = request.session_epoch > INITIAL_EPOCH
            offsets = session if is_incremental and session else self._named(request)
            if request.session_epoch == INITIAL_EPOCH and response.session_id:
                self._open(connection_id, response.session_id, offsets)
        return [
            (place, offsets.get(place), data)
            for topic in response.responses
            for data in topic.partitions
            for place in (self._place(topic.topic, topic.topic_id, data.partition_index),)
        ]

    def _open(self, connection_id: int, session_id: int, offsets: dict[P, int]) -> None:
        sessions = self._sessions.setdefault(connection_id, {})
        sessions[session_id] = offsets
        if len(sessions) > SESSIONS_MAX:
            del sessions[next(iter(sessions))]

    def _named(self, request: Any) -> dict[P, int]:
        return {
            self._place(topic.topic, topic.topic_id, each.partition): each.fetch_offset
            for topic in request.topics
            for each in topic.partitions
        }


class VisibleBatches:
    """The batches of a partition in an answer with records for the consumer, in order.

    After the iteration `next_offset` is the consumer's next fetch offset: behind the last whole
    batch, or `fetch_offset` without one. A batch may begin before `fetch_offset`. An unreadable
    batch ends the iteration.
    """

    def __init__(self, data: Any, fetch_offset: int, isolation_level: int) -> None:
        self.next_offset = self._fetch_offset = fetch_offset
        self._records = data.records or b""
        committed = isolation_level == READ_COMMITTED
        self._aborted = _Aborted(data.aborted_transactions if committed else None)

    def __iter__(self) -> Iterator[tuple[BatchHeader, memoryview]]:
        try:
            for header, batch in split_batches(self._records):
                self.next_offset = max(self.next_offset, header.next_offset)
                hidden = self._aborted.hides(header, batch) or header.is_control
                if not hidden and header.next_offset > self._fetch_offset:
                    yield header, batch
        except RecordsError:
            return  # a rule may have damaged the batch: the consumer stops here, too


class _Aborted:
    """The batches of aborted transactions, as an answer lists them."""

    def __init__(self, listed: Any) -> None:
        self._coming = sorted(listed or (), key=lambda each: each.first_offset, reverse=True)
        self._producers: set[int] = set()

    def hides(self, header: BatchHeader, batch: memoryview) -> bool:
        """Whether a consumer skips this batch, the next one of the answer."""
        while self._coming and self._coming[-1].first_offset <= header.last_offset:
            self._producers.add(self._coming.pop().producer_id)
        if header.producer_id not in self._producers:
            return False
        if header.is_control:
            if _is_abort(header, batch):
                self._producers.discard(header.producer_id)
            return False
        return header.is_transactional


def _is_abort(header: BatchHeader, batch: memoryview) -> bool:
    try:
        return parse_control_type(read_control(header, batch).key) is ControlType.ABORT
    except RecordsError:
        return False
