"""Batches and records that producers sent, and producers that partitions forgot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mockbroker.core.events import ProducersExpired
from mockbroker.core.journal.entries import AppendEntry, EventEntry
from mockbroker.core.journal.messages import error_name
from mockbroker.pipeline.convert.batches import BatchOpener
from mockbroker.pipeline.convert.cluster_state import ConvertedExchange, Place, RunState, times
from mockbroker.pipeline.convert.identity import Identities
from mockbroker.pipeline.convert.rows import Rows
from mockbroker.pipeline.convert.transactions import Transactions
from mockbroker.pipeline.convert.watermarks import Watermarks
from mockbroker_protocol.records import BatchHeader, RecordsError, split_batches


class Producing:
    """Makes `batches`, `records` and `expirations`."""

    def __init__(
        self,
        rows: Rows,
        cluster: RunState,
        transactions: Transactions,
        watermarks: Watermarks,
        opener: BatchOpener,
        identities: Identities,
    ) -> None:
        self._rows = rows
        self._cluster = cluster
        self._transactions = transactions
        self._watermarks = watermarks
        self._opener = opener
        self._identities = identities
        self._written_in: dict[int, str | None] = {}  # append -> its transaction

    def appended(self, entry: AppendEntry, exchange: ConvertedExchange | None) -> None:
        """Handle the append of a batch; its bytes are in the request."""
        place = self._cluster.appended_to(entry)
        self._watermarks.appended(entry, place)
        if exchange is None:
            return
        exchange.appended.append((entry, place))
        if entry.transactional and entry.producer_id >= 0:
            self._transactions.wrote(entry.producer_id)
            self._written_in[entry.seq] = self._transactions.current(entry.producer_id)
        for each, header, batch in _batches(self._cluster, exchange.message):
            if each.partition == entry.partition and each.topic == entry.topic:
                opened = self._opener.open(header, batch)
                opened = self._identities.identified(place.topic, opened, header, batch)
                self._rows.records.add_records(entry.seq, place, entry.first_offset, opened)
                return

    def ended(self, exchange: ConvertedExchange) -> None:
        """Handle the end of a Produce, with or without an answer."""
        answers = _answers(self._cluster, exchange.response)
        appends = {
            (append.topic, append.partition): (append, at) for append, at in exchange.appended
        }
        message, request = exchange.message, exchange.request
        for place, header, batch in _batches(self._cluster, message):
            answer = answers.get(place)
            row: dict[str, object] = {
                **times(request),
                "response_seq": exchange.response_seq,
                "broker": request.node_id,
                "connection": request.connection_id,
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
            appended = appends.get((place.topic or "", place.partition))
            if appended is not None:
                append, at = appended
                row |= at.columns()
                row["append_seq"] = append.seq
                row["leader_epoch"] = append.leader_epoch
                row["base_offset"] = append.first_offset
                row["last_offset"] = append.last_offset
                row["transaction"] = self._written_in.pop(append.seq, None)
            elif answer is not None and not answer.error_code and answer.base_offset >= 0:
                row["base_offset"] = answer.base_offset
                row["last_offset"] = answer.base_offset + header.last_offset_delta
                if header.is_transactional:
                    row["transaction"] = self._transactions.current(header.producer_id)
            self._rows.add("batches", row)

    def expired(self, entry: EventEntry, event: ProducersExpired) -> None:
        """A partition forgot producers: a row for each."""
        for producer_id in event.producer_ids:
            self._rows.add(
                "expirations",
                {
                    **times(entry),
                    "broker": event.node_id,
                    "topic": event.topic,
                    "topic_id": event.topic_id,
                    "partition": event.partition,
                    "producer_id": producer_id,
                },
            )


def _producer(header: BatchHeader) -> dict[str, object]:
    if header.producer_id < 0:
        return {}
    return {
        "producer_id": header.producer_id,
        "producer_epoch": header.producer_epoch,
        "base_sequence": header.base_sequence,
    }


def _batches(cluster: RunState, message: Any) -> Iterator[tuple[Place, BatchHeader, memoryview]]:
    """The batches of a Produce with their partitions."""
    if message is None:
        return
    for topic in message.topic_data:
        for data in topic.partition_data:
            if data.records is None:
                continue
            try:
                for header, batch in split_batches(data.records):
                    yield cluster.place(topic.name, topic.topic_id, data.index), header, batch
            except RecordsError:
                continue


def _answers(cluster: RunState, response: Any) -> dict[Place, Any]:
    if response is None:
        return {}
    return {
        cluster.place(topic.name, topic.topic_id, each.index): each
        for topic in response.responses
        for each in topic.partition_responses
    }
