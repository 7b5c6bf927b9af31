"""Batches and records: what was produced, and what became of it at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mockbroker.core.journal.exchange import error_name
from mockbroker.pipeline.convert.batches import BatchOpener
from mockbroker.pipeline.convert.rows import Rows
from mockbroker.pipeline.convert.transactions import Transactions
from mockbroker.pipeline.convert.watermarks import Watermarks
from mockbroker.pipeline.convert.world import Exchange, Place, World
from mockbroker.pipeline.spool.notes import Appended
from mockbroker_protocol.records import BatchHeader, RecordsError, split_batches


class Producing:
    """Makes `batches` and `records`."""

    def __init__(
        self,
        rows: Rows,
        world: World,
        transactions: Transactions,
        watermarks: Watermarks,
        opener: BatchOpener,
    ) -> None:
        self._rows = rows
        self._world = world
        self._transactions = transactions
        self._watermarks = watermarks
        self._opener = opener
        self._written_in: dict[int, str | None] = {}  # append -> its transaction

    def appended(self, note: Appended, exchange: Exchange | None) -> None:
        """A batch got its place; its bytes are in the request."""
        place = self._world.named(note.topic, note.partition)
        self._watermarks.appended(note, place)
        if exchange is None:
            return
        exchange.appended.append(note)
        if note.transactional and note.producer_id >= 0:
            self._transactions.wrote(note.producer_id)
            self._written_in[note.seq] = self._transactions.current(note.producer_id)
        for each, header, batch in _batches(self._world, exchange.message):
            if each.partition == note.partition and each.topic == note.topic:
                opened = self._opener.open(header, batch)
                self._rows.records.add_records(note.seq, place, note.first_offset, opened)
                return

    def ended(self, exchange: Exchange) -> None:
        """A Produce was answered, or never will be."""
        told = _answers(self._world, exchange.response)
        appended = {(note.topic, note.partition): note for note in exchange.appended}
        message, asked = exchange.message, exchange.asked
        for place, header, batch in _batches(self._world, message):
            answer = told.get(place)
            row: dict[str, object] = {
                "seq": asked.seq,
                "response_seq": exchange.response_seq,
                "virtual_ms": asked.virtual_ms,
                "real_ns": asked.real_ns,
                "broker": asked.node_id,
                "connection": asked.connection_id,
                "client_id": exchange.header.client_id,
                **place.columns(),
                "records": header.count,
                "bytes": len(batch),
                "transactional_id": message.transactional_id,
                "acks": message.acks,
                "rules": exchange.rules,
                "acknowledged": False,
                **_producer(header),
            }
            if answer is not None and exchange.response_seq is not None:
                row["acknowledged"] = not answer.error_code
                row["error"] = error_name(answer.error_code) if answer.error_code else None
            note = appended.get((place.topic or "", place.partition))
            if note is not None:
                row["append_seq"] = note.seq
                row["base_offset"] = note.first_offset
                row["last_offset"] = note.first_offset + note.last_offset_delta
                row["transaction"] = self._written_in.pop(note.seq, None)
            elif answer is not None and not answer.error_code and answer.base_offset >= 0:
                row["base_offset"] = answer.base_offset
                row["last_offset"] = answer.base_offset + header.last_offset_delta
                if header.is_transactional:
                    row["transaction"] = self._transactions.current(header.producer_id)
            self._rows.add("batches", row)


def _producer(header: BatchHeader) -> dict[str, object]:
    if header.producer_id < 0:
        return {}
    return {
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
    }


def _batches(world: World, message: Any) -> Iterator[tuple[Place, BatchHeader, memoryview]]:
    """The batches of a Produce, with the partitions that they are for."""
    if message is None:
        return
    for topic in message.topic_data:
        for data in topic.partition_data:
            if data.records is None:
                continue
            try:
                for header, batch in split_batches(data.records):
                    yield world.place(topic.name, topic.topic_id, data.index), header, batch
            except RecordsError:
                continue


def _answers(world: World, response: Any) -> dict[Place, Any]:
    if response is None:
        return {}
    return {
        world.place(topic.name, topic.topic_id, each.index): each
        for topic in response.responses
        for each in topic.partition_responses
    }
