"""Fetches and deliveries: the records that answers brought to consumers.

A delivery is a record that the consumer gets from an answer (see `journal.deliveries`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mockbroker.core.journal.deliveries import FetchOffsets, VisibleBatches
from mockbroker.core.journal.messages import error_name
from mockbroker.pipeline.convert.batches import BatchOpener, Numbers
from mockbroker.pipeline.convert.cluster_state import ConvertedExchange, Place, RunState, times
from mockbroker.pipeline.convert.read_spans import ReadSpans
from mockbroker.pipeline.convert.readers import GroupReaders, columns
from mockbroker.pipeline.convert.rows import Rows
from mockbroker.pipeline.convert.watermarks import Watermarks


class DeliveredBatches(NamedTuple):
    """The deliveries of one partition of an answer, offsets and hashes by batch, and the next
    offset.
    """

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
        cluster: RunState,
        readers: GroupReaders,
        spans: ReadSpans,
        watermarks: Watermarks,
        opener: BatchOpener,
    ) -> None:
        self._rows = rows
        self._cluster = cluster
        self._readers = readers
        self._spans = spans
        self._watermarks = watermarks
        self._opener = opener
        self._sessions = FetchOffsets(cluster.place)

    def forget(self) -> None:
        """Entries are missing: the offsets of sessions are unknown."""
        self._sessions.clear()

    def closed(self, connection_id: int) -> None:
        """A connection ended, and its sessions with it."""
        self._sessions.connection_closed(connection_id)

    def requested(self, exchange: ConvertedExchange) -> None:
        """A broker received a Fetch."""
        self._sessions.request(exchange.request.connection_id, exchange.message)
        self._readers.requested(exchange)

    def ended(self, exchange: ConvertedExchange) -> None:
        """Handle the end of a Fetch, with or without an answer."""
        if exchange.response is None:
            return
        connection_id = exchange.request.connection_id
        fetched = self._sessions.response(connection_id, exchange.message, exchange.response)
        response_seq = exchange.response_seq
        if response_seq is not None:
            for place, offset, data in fetched:
                if offset is not None:
                    self._partition(exchange, response_seq, place, offset, data)

    def _partition(
        self, exchange: ConvertedExchange, response_seq: int, place: Place, offset: int, data: Any
    ) -> None:
        isolation = exchange.message.isolation_level
        brought = self._brought(data, offset, isolation)
        reader = self._readers.reader(exchange, place)
        failed = bool(data.error_code)
        span = self._spans.of(exchange, place, offset, reader, failed=failed)
        if not failed:
            span.expected = brought.next_offset
        answer = exchange.answer
        assert answer is not None
        self._rows.add(
            "fetches",
            {
                **times(answer),
                "seq": exchange.request.seq,
                "response_seq": response_seq,
                "broker": answer.node_id,
                "connection": answer.connection_id,
                "client_id": exchange.header.client_id,
                **columns(reader),
                **place.columns(),
                "read_span": span.number,
                "start": span.begun(),
                "isolation_level": isolation,
                "fetch_offset": offset,
                "next_offset": brought.next_offset,
                "delivered": brought.records,
                "log_start_offset": _known(data.log_start_offset),
                "last_stable_offset": _known(data.last_stable_offset),
                "high_watermark": _known(data.high_watermark),
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

    def _brought(self, data: Any, fetch_offset: int, isolation_level: int) -> DeliveredBatches:
        offsets: list[Numbers] = []
        hashes: list[Numbers] = []
        batches = VisibleBatches(data, fetch_offset, isolation_level)
        for header, batch in batches:
            opened = self._opener.open(header, batch)
            if not len(opened):
                continue
            places = opened.deltas + header.base_offset
            values = opened.value_hashes
            if header.base_offset < fetch_offset:
                wanted = places >= fetch_offset
                places, values = places[wanted], values[wanted]
            offsets.append(np.asarray(places))
            hashes.append(values)
        return DeliveredBatches(offsets, hashes, batches.next_offset)


def _known(offset: int) -> int | None:
    return None if offset < 0 else offset
