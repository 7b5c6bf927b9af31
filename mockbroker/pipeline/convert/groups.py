"""Groups: their states, assignments and commits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mockbroker.core.events import GroupMoved, OffsetCommitted, OffsetRemoved
from mockbroker.core.journal.entries import EventEntry
from mockbroker.core.journal.messages import error_name
from mockbroker.pipeline.convert.cluster_state import (
    ConvertedExchange,
    Place,
    RunState,
    times,
)
from mockbroker.pipeline.convert.readers import GroupReaders
from mockbroker.pipeline.convert.rows import Rows
from mockbroker.pipeline.convert.transactions import Transactions
from mockbroker_protocol.consumer_protocol import decode_assignment
from mockbroker_protocol.exceptions import DecodeError

CONSUMER = "consumer"
STABLE = "Stable"
NO_GENERATION = -1


class GroupTables:
    """Makes `groups`, `assignments` and `commits`."""

    def __init__(
        self, rows: Rows, cluster: RunState, transactions: Transactions, readers: GroupReaders
    ) -> None:
        self._rows = rows
        self._cluster = cluster
        self._readers = readers
        # Offsets that wait for their transaction to end.
        self._waiting: dict[str, list[dict[str, object]]] = {}
        transactions.on_end.append(self._transaction_ended)
        self._transactions = transactions

    # -- assignments -------------------------------------------------------------------------------

    def _assign(
        self,
        exchange: ConvertedExchange,
        group: str,
        member: str,
        generation: int,
        places: set[Place],
    ) -> None:
        answer = exchange.answer
        assert answer is not None
        client = exchange.client
        self._readers.give(exchange, group, member, generation, places)
        self._cluster.rebalances[client] = self._cluster.rebalances.get(client, 0) + 1
        for place in sorted(places, key=lambda each: (each.topic or "", each.partition)):
            self._rows.add(
                "assignments",
                {
                    **times(answer),
                    "group": group,
                    "generation": generation,
                    "member": member,
                    "client_id": client.client_id,
                    **place.columns(),
                },
            )

    def _left(self, group: str, member: str) -> None:
        known = self._readers.known(group, member)
        if known is not None:
            self._readers.left(known)

    def moved(self, entry: EventEntry, event: GroupMoved) -> None:
        """The state of a group changed."""
        self._rows.add(
            "groups",
            {
                **times(entry),
                "broker": event.node_id,
                "group": event.group,
                "protocol": event.protocol,
                "former": event.former,
                "state": event.state,
                "generation": event.generation,
                "members": event.members,
                "reason": event.reason or None,
            },
        )
        if event.protocol != CONSUMER and event.former == STABLE:
            # Members of older generations than the one that ends here are gone.
            for member in self._readers.members_of(event.group):
                if member.generation < event.generation - (event.state == STABLE):
                    self._readers.end(member)

    def synced(self, exchange: ConvertedExchange) -> None:
        """SyncGroup was answered (classic groups)."""
        message, response = exchange.message, exchange.response
        if response is None or response.error_code:
            return
        if (message.protocol_type or CONSUMER) != CONSUMER:
            return
        try:
            assignment = decode_assignment(response.assignment) if response.assignment else None
        except DecodeError:
            return  # the leader's bytes may be invalid
        places = set() if assignment is None else set(_assigned(self._cluster, assignment))
        group, member = message.group_id, message.member_id
        self._assign(exchange, group, member, message.generation_id, places)

    def left(self, exchange: ConvertedExchange) -> None:
        """LeaveGroup was answered."""
        message, response = exchange.message, exchange.response
        if response is not None and not response.error_code:
            for member in (message.member_id, *(each.member_id for each in message.members)):
                self._left(message.group_id, member)

    def heartbeat(self, exchange: ConvertedExchange) -> None:
        """ConsumerGroupHeartbeat was answered (KIP-848)."""
        message, response = exchange.message, exchange.response
        if response is None or response.error_code:
            return
        group, member = message.group_id, response.member_id or message.member_id
        if message.member_epoch < 0:
            self._left(group, member)
            return
        if response.assignment is None:
            return
        places = {
            self._cluster.place("", topic.topic_id, partition)
            for topic in response.assignment.topic_partitions
            for partition in topic.partitions
        }
        known = self._readers.known(group, member)
        if known is None or known.places != places:
            self._assign(exchange, group, member, response.member_epoch, places)

    # -- committing --------------------------------------------------------------------------------

    def committed(self, exchange: ConvertedExchange) -> None:
        """Handle the end of an OffsetCommit, with or without an answer."""
        message = exchange.message
        if message is not None:
            generation = message.generation_id_or_member_epoch
            for row in self._commits(exchange, generation):
                self._rows.add("commits", row)

    def sent_to_transaction(self, exchange: ConvertedExchange) -> None:
        """Handle the end of a TxnOffsetCommit: its offsets count once the transaction ends."""
        message = exchange.message
        if message is None:
            return
        for row in self._commits(exchange, message.generation_id):
            if row["applied"]:
                self._transactions.wrote(message.producer_id)
            transaction = self._transactions.current(message.producer_id)
            row["transaction"] = transaction
            if row["applied"] and transaction is not None:
                self._waiting.setdefault(transaction, []).append(row)
            else:
                self._rows.add("commits", row)

    def _transaction_ended(self, transaction: str, committed: bool) -> None:
        for row in self._waiting.pop(transaction, ()):
            row["applied"] = committed
            self._rows.add("commits", row)

    def finish(self) -> None:
        """The end of the run: open transactions have committed nothing."""
        for transaction in list(self._waiting):
            self._transaction_ended(transaction, False)

    def _commits(self, exchange: ConvertedExchange, generation: int) -> Iterator[dict[str, object]]:
        message, request = exchange.message, exchange.request
        errors = _errors(self._cluster, exchange.response)
        by_member = bool(message.member_id) or generation != NO_GENERATION
        for topic in message.topics:
            for each in topic.partitions:
                topic_id = getattr(topic, "topic_id", b"")
                place = self._cluster.place(topic.name, topic_id, each.partition_index)
                error = errors.get(place)
                yield {
                    **times(request),
                    "response_seq": exchange.response_seq,
                    "broker": request.node_id,
                    "group": message.group_id,
                    "member": message.member_id or None if by_member else None,
                    "generation": generation if by_member else None,
                    "client_id": exchange.header.client_id,
                    "connection": request.connection_id,
                    **place.columns(),
                    "offset": each.committed_offset,
                    "applied": _applied(exchange, place),
                    "reset": not by_member,
                    "error": error_name(error) if error else None,
                }

    def offset_committed(
        self, entry: EventEntry, event: OffsetCommitted, exchange: ConvertedExchange | None
    ) -> None:
        """Handle a written offset; its row follows at the end of its request."""
        if exchange is not None:
            exchange.committed.add((event.topic, event.partition))
        elif not event.transactional:
            # The request ended before, with its connection: its row has no value in `applied`.
            self._offset(entry, event, offset=event.offset, reset=False)

    def offset_removed(self, entry: EventEntry, event: OffsetRemoved) -> None:
        """An offset expired or was deleted."""
        self._offset(entry, event, offset=None, reset=True)

    def _offset(
        self,
        entry: EventEntry,
        event: OffsetCommitted | OffsetRemoved,
        *,
        offset: int | None,
        reset: bool,
    ) -> None:
        row = {
            "broker": event.node_id,
            "group": event.group,
            "offset": offset,
            "applied": True,
            "reset": reset,
        }
        place = self._cluster.named(event.topic, event.partition)
        self._rows.add("commits", {**times(entry), **place.columns(), **row})


def _assigned(cluster: RunState, assignment: Any) -> Iterator[Place]:
    for topic in assignment.assigned_partitions:
        for partition in topic.partitions:
            yield cluster.named(topic.topic, partition)


def _errors(cluster: RunState, response: Any) -> dict[Place, int]:
    if response is None:
        return {}
    return {
        cluster.place(topic.name, getattr(topic, "topic_id", b""), each.partition_index): (
            each.error_code
        )
        for topic in response.topics
        for each in topic.partitions
    }


def _applied(exchange: ConvertedExchange, place: Place) -> bool | None:
    """Whether the coordinator applied it; None if unknown because of a missing answer."""
    if (place.topic, place.partition) in exchange.committed:
        return True
    return None if exchange.answer is None else False
