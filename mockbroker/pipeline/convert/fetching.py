"""Fetches and deliveries: what answers brought to consumers.

A delivery is what a consumer makes of the bytes: records of whole batches, from the offset that was
asked for on, without markers, and under read_committed without those of the aborted transactions
that the answer lists (as Fetcher's CompletedFetch does).

In an incremental session (KIP-227) a request names only what has changed; what is asked of the
other partitions is remembered here, as the broker does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mockbroker.core.journal.exchange import error_name
from mockbroker.pipeline.convert.batches import BatchOpener, Numbers
from mockbroker.pipeline.convert.groups import Groups
from mockbroker.pipeline.convert.rows import Rows
from mockbroker.pipeline.convert.stretches import Stretches
from mockbroker.pipeline.convert.watermarks import READ_COMMITTED, Watermarks
from mockbroker.pipeline.convert.world import Exchange, Place, World
from mockbroker_protocol.records import (
    BatchHeader,
    ControlType,
    RecordsError,
    parse_control_type,
    read_control,
    split_batches,
)

NO_EPOCH = -1  # a request outside of any session
FIRST_EPOCH = 0


class Brought(NamedTuple):
    """What one partition of an answer brought: offsets and hashes by batch, and where to go on."""

    offsets: list[Numbers]
    hashes: list[Numbers]
    next_offset: int

    @property
    def records(self) -> int:
        return sum(map(len, self.offsets))


class Fetching:
    """Makes `fetches` and `deliveries`."""

    def __init__(
        self,
        rows: Rows,
        world: World,
        groups: Groups,
        stretches: Stretches,
        watermarks: Watermarks,
        opener: BatchOpener,
    ) -> None:
        self._rows = rows
        self._world = world
        self._groups = groups
        self._stretches = stretches
        self._watermarks = watermarks
        self._opener = opener
        # (broker, session id) -> what is asked of each partition of the session.
        self._sessions: dict[tuple[int, int], dict[Place, int]] = {}

    def forget(self) -> None:
        """Entries are missing: what sessions ask for is not known any more."""
        self._sessions.clear()

    # -- asking ------------------------------------------------------------------------------------

    def asked(self, exchange: Exchange) -> None:
        """A Fetch came: note what it asks for."""
        message = exchange.message
        if message is None or _is_follower(message):
            return
        named = {
            self._world.place(topic.topic, topic.topic_id, each.partition): each.fetch_offset
            for topic in message.topics
            for each in topic.partitions
        }
        broker = exchange.asked.node_id
        if message.session_epoch in (NO_EPOCH, FIRST_EPOCH):
            if message.session_id:
                self._sessions.pop((broker, message.session_id), None)
            exchange.asked_offsets = named
            return
        session = self._sessions.get((broker, message.session_id))
        if session is None:
            exchange.asked_offsets = named  # of the others nothing is known
            return
        for topic in message.forgotten_topics_data:
            for partition in topic.partitions:
                place = self._world.place(topic.topic, topic.topic_id, partition)
                session.pop(place, None)
        session.update(named)
        exchange.asked_offsets = session

    # -- answered ----------------------------------------------------------------------------------

    def ended(self, exchange: Exchange) -> None:
        """A Fetch was answered, or never will be."""
        message, response = exchange.message, exchange.response
        asked, response_seq = exchange.asked_offsets, exchange.response_seq
        if response is None or asked is None:
            return
        if message.session_epoch == FIRST_EPOCH and response.session_id:
            self._sessions[exchange.asked.node_id, response.session_id] = asked
        if response_seq is None:
            return
        for topic in response.responses:
            for each in topic.partitions:
                place = self._world.place(topic.topic, topic.topic_id, each.partition_index)
                offset = asked.get(place)
                if offset is not None:
                    self._partition(exchange, response_seq, place, offset, each)

    def _partition(
        self, exchange: Exchange, response_seq: int, place: Place, offset: int, data: Any
    ) -> None:
        isolation = exchange.message.isolation_level
        brought = self._brought(data, offset, committed=isolation == READ_COMMITTED)
        holder = self._groups.holder(exchange, place)
        failed = bool(data.error_code)
        stretch = self._stretches.of(exchange, place, offset, holder, failed=failed)
        if not failed:
            stretch.expected = brought.next_offset
        answer = exchange.answer
        assert answer is not None
        self._rows.add(
            "fetches",
            {
                "seq": exchange.asked.seq,
                "response_seq": response_seq,
                "virtual_ms": answer.virtual_ms,
                "real_ns": answer.real_ns,
                "broker": answer.node_id,
                "connection": answer.connection_id,
                "client_id": exchange.header.client_id,
                "group": None if holder is None else holder.group,
                "member": None if holder is None else holder.member,
                **place.columns(),
                "assignment": stretch.number,
                "start": stretch.begun(),
                "isolation_level": isolation,
                "fetch_offset": offset,
                "next_offset": brought.next_offset,
                "delivered": brought.records,
                "log_start_offset": _told(data.log_start_offset),
                "last_stable_offset": _told(data.last_stable_offset),
                "high_watermark": _told(data.high_watermark),
                "error": error_name(data.error_code) if failed else None,
                "rules": exchange.rules,
            },
        )
        position = 0
        for offsets, hashes in zip(brought.offsets, brought.hashes, strict=True):
            self._rows.deliveries.add_deliveries(response_seq, place, position, offsets, hashes)
            position += len(offsets)
        if not failed:
            self._watermarks.answer(
                exchange,
                place,
                "fetch",
                log_start_offset=data.log_start_offset,
                last_stable_offset=data.last_stable_offset,
                high_watermark=data.high_watermark,
            )

    def _brought(self, data: Any, asked: int, *, committed: bool) -> Brought:
        offsets: list[Numbers] = []
        hashes: list[Numbers] = []
        next_offset = asked
        aborted = _Aborted(data.aborted_transactions if committed else None)
        try:
            for header, batch in split_batches(data.records or b""):
                next_offset = max(next_offset, header.next_offset)
                if aborted.hides(header, batch) or header.is_control:
                    continue
                opened = self._opener.open(header, batch)
                if not len(opened):
                    continue
                places = opened.deltas + header.base_offset
                values = opened.value_hashes
                if header.base_offset < asked:
                    wanted = places >= asked
                    places, values = places[wanted], values[wanted]
                offsets.append(np.asarray(places))
                hashes.append(values)
        except RecordsError:
            pass  # a rule may have damaged them: the consumer stops here, too
        return Brought(offsets, hashes, next_offset)


class _Aborted:
    """Which batches belong to aborted transactions, as an answer lists them."""

    def __init__(self, listed: Any) -> None:
        self._coming = sorted(listed or (), key=lambda each: each.first_offset, reverse=True)
        self._producers: set[int] = set()

    def hides(self, header: BatchHeader, batch: memoryview) -> bool:
        """Whether a consumer passes over this batch, the next one of the answer."""
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


def _is_follower(message: Any) -> bool:
    follower: bool = message.replica_id >= 0 or message.replica_state.replica_id >= 0
    return follower


def _told(offset: int) -> int | None:
    return None if offset < 0 else offset
