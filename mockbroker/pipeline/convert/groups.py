"""Groups: their states, what members were given, what was committed, and who holds a partition.

A Fetch does not say for which group it reads. It is a member's where exactly one member with the
client id and host of whoever asks holds the partition.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from mockbroker.core.journal.exchange import error_name
from mockbroker.pipeline.convert.rows import Rows
from mockbroker.pipeline.convert.transactions import Transactions
from mockbroker.pipeline.convert.world import Client, Exchange, Place, World
from mockbroker.pipeline.spool.notes import Fact
from mockbroker_protocol.consumer_protocol import decode_assignment
from mockbroker_protocol.exceptions import DecodeError

CONSUMER = "consumer"
STABLE = "Stable"
NO_GENERATION = -1


class Holder(NamedTuple):
    """A member that holds a partition."""

    group: str
    member: str


class _Member:
    __slots__ = ("client", "generation", "places")

    def __init__(self, client: Client, generation: int, places: frozenset[Place]) -> None:
        self.client = client
        self.generation = generation
        self.places = places


class Groups:
    """Makes `groups`, `assignments` and `commits`."""

    def __init__(self, rows: Rows, world: World, transactions: Transactions) -> None:
        self._rows = rows
        self._world = world
        self._members: dict[str, dict[str, _Member]] = {}
        self._holders: dict[tuple[Client, Place], set[Holder]] = {}
        self._committed: dict[str, set[Place]] = {}  # by group: what has an offset
        # Offsets that wait for their transaction to end.
        self._waiting: dict[str, list[dict[str, object]]] = {}
        transactions.on_end.append(self._transaction_ended)
        self._transactions = transactions

    # -- who holds what ----------------------------------------------------------------------------

    def holder(self, exchange: Exchange, place: Place) -> Holder | None:
        """Whose Fetch it is, if that is certain."""
        client = exchange.client
        if self._world.rebalances.get(client, 0) != exchange.rebalances:
            return None  # it was given something else while it waited
        found = self._holders.get((client, place))
        return next(iter(found)) if found is not None and len(found) == 1 else None

    def forget(self) -> None:
        """Entries are missing: who is a member is not known any more."""
        self._members.clear()
        self._holders.clear()

    def _give(
        self, exchange: Exchange, group: str, member: str, generation: int, places: set[Place]
    ) -> None:
        answer = exchange.answer
        assert answer is not None
        client = exchange.client
        self._take(group, member)
        known = _Member(client, generation, frozenset(places))
        self._members.setdefault(group, {})[member] = known
        for place in places:
            self._holders.setdefault((client, place), set()).add(Holder(group, member))
        self._world.rebalances[client] = self._world.rebalances.get(client, 0) + 1
        for place in sorted(places, key=lambda each: (each.topic or "", each.partition)):
            self._rows.add(
                "assignments",
                {
                    "seq": answer.seq,
                    "virtual_ms": answer.virtual_ms,
                    "real_ns": answer.real_ns,
                    "group": group,
                    "generation": generation,
                    "member": member,
                    "client_id": client.client_id,
                    **place.columns(),
                },
            )

    def _take(self, group: str, member: str) -> None:
        known = self._members.get(group, {}).pop(member, None)
        if known is not None:
            for place in known.places:
                self._holders[known.client, place].discard(Holder(group, member))

    def moved(self, note: Fact) -> None:
        """A group went to another state."""
        told = note.fact
        group = told["group"]
        self._rows.add(
            "groups",
            {
                "seq": note.seq,
                "virtual_ms": note.virtual_ms,
                "real_ns": note.real_ns,
                "group": group,
                "protocol": told["protocol"],
                "former": told["former"],
                "state": told["state"],
                "generation": told["generation"],
                "members": told["members"],
                "reason": told["reason"] or None,
            },
        )
        if told["protocol"] != CONSUMER and told["former"] == STABLE:
            # Who was not in the generation that ends here is a member no longer.
            for member, known in list(self._members.get(group, {}).items()):
                if known.generation < told["generation"] - (told["state"] == STABLE):
                    self._take(group, member)

    def synced(self, exchange: Exchange) -> None:
        """SyncGroup was answered (classic groups)."""
        message, response = exchange.message, exchange.response
        if response is None or response.error_code:
            return
        if (message.protocol_type or CONSUMER) != CONSUMER:
            return
        try:
            assignment = decode_assignment(response.assignment) if response.assignment else None
        except DecodeError:
            return  # what the leader gave is its own business
        places = set() if assignment is None else set(_assigned(self._world, assignment))
        group, member = message.group_id, message.member_id
        self._give(exchange, group, member, message.generation_id, places)

    def left(self, exchange: Exchange) -> None:
        """LeaveGroup was answered."""
        message, response = exchange.message, exchange.response
        if response is not None and not response.error_code:
            for member in (message.member_id, *(each.member_id for each in message.members)):
                self._take(message.group_id, member)

    def heartbeat(self, exchange: Exchange) -> None:
        """ConsumerGroupHeartbeat was answered (KIP-848)."""
        message, response = exchange.message, exchange.response
        if response is None or response.error_code:
            return
        group, member = message.group_id, response.member_id or message.member_id
        if message.member_epoch < 0:
            self._take(group, member)
            return
        if response.assignment is None:
            return
        places = {
            self._world.place("", topic.topic_id, partition)
            for topic in response.assignment.topic_partitions
            for partition in topic.partitions
        }
        known = self._members.get(group, {}).get(member)
        if known is None or known.places != places:
            self._give(exchange, group, member, response.member_epoch, places)

    # -- committing --------------------------------------------------------------------------------

    def committed(self, exchange: Exchange) -> None:
        """OffsetCommit was answered, or never will be."""
        message = exchange.message
        if message is not None:
            generation = message.generation_id_or_member_epoch
            for row in self._commits(exchange, generation):
                self._add_commit(row)

    def sent_to_transaction(self, exchange: Exchange) -> None:
        """TxnOffsetCommit was answered, or never will be: it counts once the transaction ends."""
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
                self._add_commit(row)

    def _transaction_ended(self, transaction: str, committed: bool) -> None:
        for row in self._waiting.pop(transaction, ()):
            row["applied"] = committed
            self._add_commit(row)

    def finish(self) -> None:
        """The run is over: transactions that are open have committed nothing."""
        for transaction in list(self._waiting):
            self._transaction_ended(transaction, False)

    def _commits(self, exchange: Exchange, generation: int) -> Iterator[dict[str, object]]:
        message, asked = exchange.message, exchange.asked
        errors = _errors(self._world, exchange.response)
        by_member = bool(message.member_id) or generation != NO_GENERATION
        for topic in message.topics:
            for each in topic.partitions:
                topic_id = getattr(topic, "topic_id", b"")
                place = self._world.place(topic.name, topic_id, each.partition_index)
                error = errors.get(place)
                yield {
                    "seq": asked.seq,
                    "response_seq": exchange.response_seq,
                    "virtual_ms": asked.virtual_ms,
                    "real_ns": asked.real_ns,
                    "group": message.group_id,
                    "member": message.member_id or None if by_member else None,
                    "generation": generation if by_member else None,
                    "client_id": exchange.header.client_id,
                    "connection": asked.connection_id,
                    **place.columns(),
                    "offset": each.committed_offset,
                    "applied": None if error is None else _applied(exchange, error),
                    "reset": not by_member,
                    "error": error_name(error) if error else None,
                }

    def _add_commit(self, row: dict[str, object]) -> None:
        self._rows.add("commits", row)
        if row["applied"]:
            group, partition = row["group"], row["partition"]
            assert isinstance(group, str)
            assert isinstance(partition, int)
            place = Place(row["topic"], row["topic_id"], partition)  # type: ignore[arg-type]
            self._committed.setdefault(group, set()).add(place)

    def deleted_offsets(self, exchange: Exchange) -> None:
        """OffsetDelete was answered."""
        message, response = exchange.message, exchange.response
        if response is None or response.error_code:
            return
        for topic in response.topics:
            for each in topic.partitions:
                if not each.error_code:
                    place = self._world.named(topic.name, each.partition_index)
                    self._removed(exchange, message.group_id, place)

    def deleted_groups(self, exchange: Exchange) -> None:
        """DeleteGroups was answered."""
        if exchange.response is None:
            return
        for result in exchange.response.results:
            if not result.error_code:
                for place in sorted(self._committed.get(result.group_id, ()), key=str):
                    self._removed(exchange, result.group_id, place)

    def _removed(self, exchange: Exchange, group: str, place: Place) -> None:
        self._committed.get(group, set()).discard(place)
        asked = exchange.asked
        self._rows.add(
            "commits",
            {
                "seq": asked.seq,
                "response_seq": exchange.response_seq,
                "virtual_ms": asked.virtual_ms,
                "real_ns": asked.real_ns,
                "group": group,
                "client_id": exchange.header.client_id,
                "connection": asked.connection_id,
                **place.columns(),
                "applied": True,
                "reset": True,
            },
        )


def _assigned(world: World, assignment: Any) -> Iterator[Place]:
    for topic in assignment.assigned_partitions:
        for partition in topic.partitions:
            yield world.named(topic.topic, partition)


def _errors(world: World, response: Any) -> dict[Place, int]:
    if response is None:
        return {}
    return {
        world.place(topic.name, getattr(topic, "topic_id", b""), each.partition_index): (
            each.error_code
        )
        for topic in response.topics
        for each in topic.partitions
    }


def _applied(exchange: Exchange, error: int) -> bool | None:
    """Whether the coordinator took it; not known where a rule may have made the error up."""
    if not error:
        return True
    return None if exchange.rules else False
