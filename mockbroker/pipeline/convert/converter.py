"""The converter: notes in, rows of all tables out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mockbroker.pipeline.convert.batches import BatchOpener
from mockbroker.pipeline.convert.fetching import Fetching
from mockbroker.pipeline.convert.groups import Groups
from mockbroker.pipeline.convert.happenings import CLUSTER_EVENTS, Happenings
from mockbroker.pipeline.convert.producing import Producing
from mockbroker.pipeline.convert.requests import add_request
from mockbroker.pipeline.convert.rows import Rows, Sink
from mockbroker.pipeline.convert.stretches import Stretches
from mockbroker.pipeline.convert.transactions import Transactions
from mockbroker.pipeline.convert.watermarks import Watermarks
from mockbroker.pipeline.convert.world import Exchange, World
from mockbroker.pipeline.spool.notes import (
    Answered,
    Appended,
    Asked,
    Begin,
    End,
    Fact,
    Lost,
    Note,
    Peer,
)
from mockbroker_protocol import ApiKey
from mockbroker_protocol.codec import request_codec, response_codec
from mockbroker_protocol.exceptions import DecodeError, UnknownVersionError
from mockbroker_protocol.headers import RequestHeader, decode_request_header

RESTORED = "restore"  # the action after which the cluster is what it was once

OnExchange = Callable[[Exchange], None]
OnFact = Callable[[Fact], None]


class Converter:
    """Takes the notes of one run in their order; `finish` after the last."""

    def __init__(self, writer: Sink) -> None:
        self.ended = False
        self.last_seq = 0
        self._writer = writer
        self._rows = rows = Rows(writer)
        self._world = world = World()
        self._pending: dict[int, Exchange] = {}
        self._of_connection: dict[int, set[int]] = {}
        opener = BatchOpener()
        watermarks = Watermarks(rows, world)
        transactions = Transactions(rows)
        happenings = Happenings(rows, world)
        self._groups = groups = Groups(rows, world, transactions)
        self._stretches = stretches = Stretches(world)
        self._producing = Producing(rows, world, transactions, watermarks, opener)
        self._fetching = fetching = Fetching(rows, world, groups, stretches, watermarks, opener)
        self._on_asked: dict[int, OnExchange] = {int(ApiKey.FETCH): fetching.asked}
        self._on_ended: dict[int, tuple[OnExchange, ...]] = {
            int(ApiKey.PRODUCE): (self._producing.ended,),
            int(ApiKey.FETCH): (fetching.ended,),
            int(ApiKey.LIST_OFFSETS): (watermarks.listed, stretches.listed),
            int(ApiKey.OFFSET_FOR_LEADER_EPOCH): (stretches.listed,),
            int(ApiKey.OFFSET_FETCH): (stretches.fetched_offsets,),
            int(ApiKey.OFFSET_COMMIT): (groups.committed,),
            int(ApiKey.TXN_OFFSET_COMMIT): (groups.sent_to_transaction,),
            int(ApiKey.OFFSET_DELETE): (groups.deleted_offsets,),
            int(ApiKey.DELETE_GROUPS): (groups.deleted_groups,),
            int(ApiKey.SYNC_GROUP): (groups.synced,),
            int(ApiKey.LEAVE_GROUP): (groups.left,),
            int(ApiKey.CONSUMER_GROUP_HEARTBEAT): (groups.heartbeat,),
            int(ApiKey.INIT_PRODUCER_ID): (transactions.initialized,),
        }
        self._on_event: dict[str, tuple[OnFact, ...]] = {
            "RecordsRemoved": (happenings.removed,),
            "MarkerWritten": (transactions.marker,),
            "TransactionMoved": (transactions.moved,),
            "GroupMoved": (groups.moved,),
            "WatermarkMoved": (watermarks.moved,),
            **dict.fromkeys(CLUSTER_EVENTS, (world.fact, happenings.event)),
        }
        self._on_note: dict[type, Callable[[Any], None]] = {
            Begin: self._begin,
            Asked: self._asked,
            Answered: self._answered,
            Appended: self._appended,
            Fact: self._fact,
            Peer: self._peer,
            Lost: self._lost,
            End: self._end,
        }
        self._on_event["LogTruncated"] += (happenings.truncated,)
        self._happenings = happenings

    def take(self, note: Note) -> None:
        """The next note."""
        self._on_note[type(note)](note)

    def flush(self) -> None:
        """Hand over what is known by now, so that the writer can roll its files."""
        self._rows.flush()

    def finish(self) -> None:
        """No more notes come: what waits for an answer gets none."""
        for seq in list(self._pending):
            self._close(self._pending[seq])
        self._groups.finish()
        self._rows.flush()

    # -- notes -------------------------------------------------------------------------------------

    def _begin(self, note: Begin) -> None:
        self._world.begin(note)
        self.last_seq = note.last_seq
        self._writer.tell(
            cluster_id=note.cluster_id,
            started_virtual_ms=note.virtual_ms,
            started_real_ns=note.real_ns,
        )

    def _asked(self, note: Asked) -> None:
        self._at(note)
        header, message = _opened(note)
        client = self._world.client(header, note.connection_id)
        rebalances = self._world.rebalances.get(client, 0)
        exchange = Exchange(note, header, message, client, rebalances)
        self._pending[note.seq] = exchange
        self._of_connection.setdefault(note.connection_id, set()).add(note.seq)
        on_asked = self._on_asked.get(header.api_key)
        if on_asked is not None:
            on_asked(exchange)

    def _answered(self, note: Answered) -> None:
        self._at(note)
        exchange = self._pending.get(note.request_seq)
        if exchange is None:
            return  # the request is missing
        exchange.answer = note
        exchange.response = _response(note)
        self._close(exchange)

    def _close(self, exchange: Exchange) -> None:
        asked = exchange.asked
        del self._pending[asked.seq]
        self._of_connection[asked.connection_id].discard(asked.seq)
        add_request(self._rows, self._world, exchange)
        if exchange.message is not None:
            for part in self._on_ended.get(exchange.header.api_key, ()):
                part(exchange)

    def _appended(self, note: Appended) -> None:
        self._at(note)
        self._producing.appended(note, self._pending.get(note.request_seq))
        self._happenings.appended(note)

    def _fact(self, note: Fact) -> None:
        self._at(note)
        if note.kind == "event":
            for part in self._on_event.get(note.name, ()):
                part(note)
        elif note.kind == "connection":
            if note.fact.get("change") == "closed":
                self._closed(note.fact["connection"])
        else:
            self._happenings.fault(note)
            if note.fact.get("change") == RESTORED and note.kind == "action":
                self._gap(note.seq, note.seq, "the cluster was put back to what it was once")

    def _closed(self, connection: int) -> None:
        for seq in sorted(self._of_connection.get(connection, ())):
            self._close(self._pending[seq])
        self._of_connection.pop(connection, None)
        self._stretches.closed(connection)
        self._world.peers.pop(connection, None)

    def _peer(self, note: Peer) -> None:
        self._world.peers[note.connection_id] = note

    def _lost(self, note: Lost) -> None:
        self._gap(note.first_seq, note.last_seq, note.reason)
        self.last_seq = max(self.last_seq, note.last_seq)

    def _gap(self, first: int, last: int, reason: str) -> None:
        self._fetching.forget()
        self._groups.forget()
        self._rows.add("gaps", {"first_seq": first, "last_seq": last, "reason": reason})

    def _end(self, note: End) -> None:
        self.ended = True
        self.last_seq = note.last_seq
        self._writer.at(note.last_seq, note.virtual_ms, note.real_ns)

    def _at(self, note: Asked | Answered | Appended | Fact) -> None:
        self.last_seq = note.seq
        self._writer.at(note.seq, note.virtual_ms, note.real_ns)


def _opened(note: Asked) -> tuple[RequestHeader, Any]:
    view = memoryview(note.frame)
    try:
        header, position = decode_request_header(view)
    except DecodeError:
        return RequestHeader(-1, -1, -1, None), None
    if note.hidden:
        return header, None
    try:
        codec = request_codec(ApiKey(header.api_key), header.api_version)
        message, _ = codec.decode(view, position)
    except (DecodeError, UnknownVersionError, ValueError):
        return header, None
    return header, message


def _response(note: Answered) -> Any:
    if note.body is None or note.errors is not None:
        return None
    body = note.body[0] if len(note.body) == 1 else b"".join(note.body)
    try:
        codec = response_codec(ApiKey(note.api_key), note.api_version)
        message, _ = codec.decode(memoryview(body), 0)
    except (DecodeError, UnknownVersionError, ValueError):
        return None
    return message
