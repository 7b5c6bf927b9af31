"""The converter: entries in, rows of all tables out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from mockbroker.core import events
from mockbroker.core.journal.entries import (
    AppendEntry,
    EventEntry,
    FactEntry,
    HopEntry,
    JournalEntry,
    RequestEntry,
    ResponseEntry,
)
from mockbroker.core.journal.journal import Gap
from mockbroker.core.journal.messages import decode_request, decode_response
from mockbroker.core.journal.tracking import Tracking
from mockbroker.pipeline.convert.batches import BatchOpener
from mockbroker.pipeline.convert.cluster_events import ClusterEvents
from mockbroker.pipeline.convert.cluster_state import ConvertedExchange, RunState
from mockbroker.pipeline.convert.fetching import Fetching
from mockbroker.pipeline.convert.groups import GroupTables
from mockbroker.pipeline.convert.identity import Identities
from mockbroker.pipeline.convert.producing import Producing
from mockbroker.pipeline.convert.read_spans import ReadSpans
from mockbroker.pipeline.convert.readers import GroupReaders
from mockbroker.pipeline.convert.requests import add_request
from mockbroker.pipeline.convert.rows import Rows, Sink
from mockbroker.pipeline.convert.shares import ShareTables, StreamsTables
from mockbroker.pipeline.convert.transactions import Transactions
from mockbroker.pipeline.convert.watermarks import Watermarks
from mockbroker.pipeline.spool.format import ClientIdentified, RunEnded, RunStarted, SpoolEntry
from mockbroker_protocol import ApiKey

RESTORED = "restore"  # the action that restores a snapshot
TRACKED = "track"  # the action that sets the identity of a topic's records

OnExchange = Callable[[ConvertedExchange], None]


class Converter:
    """Converts the entries of one run in their order; call `finish` after the last."""

    def __init__(self, writer: Sink) -> None:
        self.ended = False
        self._writer = writer
        self._rows = rows = Rows(writer)
        self._cluster = cluster = RunState()
        self._pending: dict[int, ConvertedExchange] = {}
        self._of_connection: dict[int, set[int]] = {}
        opener = BatchOpener()
        watermarks = Watermarks(rows, cluster)
        transactions = Transactions(rows)
        cluster_events = ClusterEvents(rows, cluster)
        self._readers = readers = GroupReaders(cluster)
        self._groups = groups = GroupTables(rows, cluster, transactions, readers)
        self._spans = spans = ReadSpans(cluster)
        shares, streams = ShareTables(rows, cluster), StreamsTables(rows)
        self._identities = Identities()
        self._producing = Producing(
            rows, cluster, transactions, watermarks, opener, self._identities
        )
        self._fetching = fetching = Fetching(rows, cluster, readers, spans, watermarks, opener)
        # Called with a request when it was received.
        self._on_requested: dict[int, OnExchange] = {
            int(ApiKey.FETCH): fetching.requested,
            int(ApiKey.FIND_COORDINATOR): readers.looked_for_coordinator,
            int(ApiKey.JOIN_GROUP): readers.spoke,
            int(ApiKey.SYNC_GROUP): readers.spoke,
            int(ApiKey.HEARTBEAT): readers.spoke,
            int(ApiKey.OFFSET_COMMIT): readers.spoke,
            int(ApiKey.CONSUMER_GROUP_HEARTBEAT): readers.spoke,
        }
        self._on_ended: dict[int, tuple[OnExchange, ...]] = {
            int(ApiKey.PRODUCE): (self._producing.ended,),
            int(ApiKey.FETCH): (fetching.ended,),
            int(ApiKey.LIST_OFFSETS): (watermarks.listed, spans.listed),
            int(ApiKey.OFFSET_FOR_LEADER_EPOCH): (spans.listed,),
            int(ApiKey.OFFSET_FETCH): (spans.fetched_offsets,),
            int(ApiKey.OFFSET_COMMIT): (groups.committed,),
            int(ApiKey.TXN_OFFSET_COMMIT): (groups.sent_to_transaction,),
            int(ApiKey.SYNC_GROUP): (groups.synced,),
            int(ApiKey.LEAVE_GROUP): (groups.left,),
            int(ApiKey.CONSUMER_GROUP_HEARTBEAT): (groups.heartbeat,),
            int(ApiKey.INIT_PRODUCER_ID): (transactions.initialized,),
        }
        # Called with an entry and its event; other events have rows only in the table `cluster`.
        self._on_event: dict[type[events.Event], tuple[Callable[[EventEntry, Any], None], ...]] = {
            events.RecordsRemoved: (cluster_events.removed,),
            events.MarkerWritten: (transactions.marker,),
            events.ProducersExpired: (self._producing.expired,),
            events.TransactionMoved: (transactions.moved,),
            events.GroupMoved: (groups.moved,),
            events.ShareRecordsMoved: (shares.records,),
            events.ShareStartMoved: (shares.start,),
            events.ShareSessionChanged: (shares.session,),
            events.StreamsTasksMoved: (streams.tasks,),
            events.StreamsStatusSent: (streams.status,),
            events.OffsetCommitted: (self._offset_committed,),
            events.OffsetRemoved: (groups.offset_removed,),
            events.WatermarkMoved: (watermarks.moved,),
            events.TopicsChanged: (
                cluster.topics_changed,
                cluster_events.topics,
                watermarks.topics_changed,
            ),
            events.ConfigsChanged: (cluster_events.configs,),
            events.LeaderChanged: (cluster.leader_changed, cluster_events.event),
            events.FollowerFetched: (),
            events.LogTruncated: (
                cluster_events.event,
                cluster_events.truncated,
                watermarks.truncated,
            ),
        }
        self._on_entry: dict[type, Callable[[Any], None]] = {
            RunStarted: self._run_started,
            RequestEntry: self._request,
            ResponseEntry: self._response,
            AppendEntry: self._append,
            HopEntry: self._at,  # the cluster's events have the consequences of hops
            EventEntry: self._event,
            FactEntry: self._fact,
            ClientIdentified: self._client_identified,
            Gap: self._lost,
            RunEnded: self._run_ended,
        }
        self._cluster_events = cluster_events

    def convert(self, entry: SpoolEntry) -> None:
        """Convert the next entry."""
        self._on_entry[type(entry)](entry)

    def flush(self) -> None:
        """Pass all finished rows to the writer, so that it can roll its files."""
        self._rows.flush()

    def finish(self) -> None:
        """End the run: open requests get no answer."""
        for seq in list(self._pending):
            self._close(self._pending[seq])
        self._groups.finish()
        self._rows.flush()

    # -- entries -----------------------------------------------------------------------------------

    def _run_started(self, entry: RunStarted) -> None:
        self._cluster.begin(entry)
        self._identities.begin(entry.tracked)
        self._writer.describe(
            cluster_id=entry.cluster_id,
            started_virtual_ms=entry.virtual_ms,
            started_real_ns=entry.real_ns,
        )

    def _request(self, entry: RequestEntry) -> None:
        self._at(entry)
        header, message, _ = decode_request(entry.frame)
        client = self._cluster.client(header, entry.connection_id)
        rebalances = self._cluster.rebalances.get(client, 0)
        exchange = ConvertedExchange(entry, header, message, client, rebalances)
        self._pending[entry.seq] = exchange
        self._of_connection.setdefault(entry.connection_id, set()).add(entry.seq)
        on_requested = self._on_requested.get(header.api_key)
        if on_requested is not None and message is not None:
            on_requested(exchange)

    def _response(self, entry: ResponseEntry) -> None:
        self._at(entry)
        exchange = self._pending.get(entry.request_seq)
        if exchange is None:
            return  # the request is missing
        exchange.answer = entry
        exchange.response = decode_response(entry)
        self._close(exchange)

    def _close(self, exchange: ConvertedExchange) -> None:
        request = exchange.request
        del self._pending[request.seq]
        self._of_connection[request.connection_id].discard(request.seq)
        add_request(self._rows, self._cluster, exchange)
        if exchange.message is not None:
            for part in self._on_ended.get(exchange.header.api_key, ()):
                part(exchange)

    def _append(self, entry: AppendEntry) -> None:
        self._at(entry)
        self._producing.appended(entry, self._pending.get(entry.request_seq))
        self._cluster_events.appended(entry)

    def _event(self, entry: EventEntry) -> None:
        self._at(entry)
        for part in self._on_event.get(type(entry.event), (self._cluster_events.event,)):
            part(entry, entry.event)

    def _fact(self, entry: FactEntry) -> None:
        self._at(entry)
        if entry.kind == "connection":
            if entry.facts["change"] == "closed":
                self._closed(entry.facts["connection"])
            return
        self._cluster_events.fault(entry)
        if entry.kind == "action" and entry.facts["change"] == RESTORED:
            self._gap(entry.seq, entry.seq, "the cluster was restored from a snapshot")
        elif entry.kind == "action" and entry.facts["change"] == TRACKED:
            self._identities.track(msgspec.convert(entry.facts["arguments"], Tracking))

    def _offset_committed(self, entry: EventEntry, event: events.OffsetCommitted) -> None:
        self._groups.offset_committed(entry, event, self._pending.get(event.request_seq))

    def _closed(self, connection: int) -> None:
        for seq in sorted(self._of_connection.get(connection, ())):
            self._close(self._pending[seq])
        self._of_connection.pop(connection, None)
        self._spans.closed(connection)
        self._readers.closed(connection)
        self._fetching.closed(connection)
        self._cluster.clients.pop(connection, None)

    def _client_identified(self, entry: ClientIdentified) -> None:
        self._cluster.clients[entry.id] = entry

    def _lost(self, gap: Gap) -> None:
        self._gap(gap.first_seq, gap.last_seq, gap.reason)

    def _gap(self, first: int, last: int, reason: str) -> None:
        self._fetching.forget()
        self._readers.forget()
        self._rows.add("gaps", {"first_seq": first, "last_seq": last, "reason": reason})

    def _run_ended(self, entry: RunEnded) -> None:
        self.ended = True
        self._writer.at(entry.last_seq, entry.virtual_ms, entry.real_ns)

    def _at(self, entry: JournalEntry) -> None:
        self._writer.at(entry.seq, entry.virtual_ms, entry.real_ns)
