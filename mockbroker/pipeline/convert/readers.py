"""The member of a group that sent a Fetch.

A Fetch names no group. Candidates are the members with the client id and the host of its connection
that hold the partition. Many clients give all their consumers one client id, so there may be
several. A connection belongs to one consumer, and this settles most cases:

- A member named on the connection, or the group of its FindCoordinator, is the consumer's.
- A member that never held a partition of an earlier Fetch on the connection is not the consumer.
- A consumer fetches from a broker on one connection at a time. A member that goes on fetching on
  another connection is not this connection's consumer.
- Once a single candidate is left, later Fetches are the same member's, also while its partitions
  are given to others and it has not noticed.
- A member that has left the group reads nothing more: an answer that comes then belongs to no
  member.

What stays open is reported as candidates, not guessed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from mockbroker.pipeline.convert.cluster_state import (
    ConvertedExchange,
    Place,
    RunClient,
    RunState,
)

# Topic name and partition: an assignment outlives a topic that is deleted and created again.
Assigned = tuple[str, int]
GROUP_KEY = 0  # FindCoordinator's key type of a group


class ReaderIdentity(NamedTuple):
    """The group and member of a Fetch, as far as they are certain; else the possible members."""

    group: str | None = None
    member: str | None = None
    candidates: tuple[str, ...] = ()


UNKNOWN = ReaderIdentity()


class Member:
    """A member, the partitions it was ever given, and since when another member has them."""

    __slots__ = (
        "client",
        "doubtful_on",
        "ended",
        "fetches_on",
        "generation",
        "given",
        "group",
        "has_left",
        "heard_on",
        "lost",
        "name",
        "places",
    )

    def __init__(self, group: str, name: str, client: RunClient) -> None:
        self.group = group
        self.name = name
        self.client = client
        self.generation = -1
        self.places: frozenset[Place] = frozenset()
        self.given: dict[Assigned, int] = {}
        self.lost: dict[Assigned, int] = {}
        self.ended = False
        self.has_left = False
        self.heard_on: set[int] = set()  # connections whose last named member it is
        self.fetches_on: dict[int, FetchConnection] = {}  # by broker
        self.doubtful_on: set[int] = set()  # brokers where two connections may be its own


class FetchConnection:
    """A connection that carried Fetches or named groups."""

    __slots__ = (
        "broker",
        "excluded",
        "first_fetch",
        "former",
        "group",
        "is_shared",
        "is_told",
        "last_fetch",
        "member",
        "number",
        "reader",
    )

    def __init__(self, number: int, broker: int) -> None:
        self.number = number
        self.broker = broker
        self.group: str | None = None
        self.is_told = False  # the group was named on this connection
        self.is_shared = False  # several consumers use it
        self.member: Member | None = None  # the last that was named
        self.former: set[str] = set()  # those named before
        self.reader: Member | None = None  # the certain sender of its Fetches
        self.excluded: set[Member] = set()
        self.first_fetch = self.last_fetch = 0


class FetchSenders(NamedTuple):
    """The connection of a Fetch, and the members that may have sent it."""

    connection: FetchConnection
    members: tuple[Member, ...]


class GroupReaders:
    """The members of all groups, and the connections they may fetch on."""

    def __init__(self, cluster: RunState) -> None:
        self._cluster = cluster
        self._members: dict[str, dict[str, Member]] = {}
        self._of_client: dict[RunClient, list[Member]] = {}
        self._owners: dict[tuple[str, Assigned], Member] = {}
        self._connections: dict[int, FetchConnection] = {}

    def forget(self) -> None:
        """Entries are missing: members and assignments are unknown."""
        self._members.clear()
        self._of_client.clear()
        self._owners.clear()
        for connection in self._connections.values():
            connection.member = connection.reader = None
            connection.excluded.clear()

    # -- members -----------------------------------------------------------------------------------

    def members_of(self, group: str) -> list[Member]:
        """The members of a group that have assignments."""
        return list(self._members.get(group, {}).values())

    def known(self, group: str, name: str) -> Member | None:
        """A member that has an assignment."""
        return self._members.get(group, {}).get(name)

    def give(
        self,
        exchange: ConvertedExchange,
        group: str,
        name: str,
        generation: int,
        places: Iterable[Place],
    ) -> None:
        """An answer assigned these partitions, and no others, to a member."""
        answer = exchange.answer
        assert answer is not None
        client = exchange.client
        member = self.known(group, name)
        if member is None or member.client != client:
            if member is not None:
                self.end(member)
            member = Member(group, name, client)
            self._members.setdefault(group, {})[name] = member
            self._of_client.setdefault(client, []).append(member)
        member.generation = generation
        member.places = frozenset(places)
        for place in member.places:
            if place.topic is None:
                continue
            key = (place.topic, place.partition)
            former = self._owners.get((group, key))
            if former is not None and former is not member:
                former.lost[key] = answer.seq
            self._owners[group, key] = member
            member.given.setdefault(key, answer.seq)
            member.lost.pop(key, None)
        self._names(self._connection(exchange), member)

    def end(self, member: Member) -> None:
        """It is no member any more. It may go on fetching until it notices."""
        members = self._members.get(member.group, {})
        members.pop(member.name, None)
        if not members:
            self._members.pop(member.group, None)
        member.ended = True
        self._forget_if_gone(member)

    def left(self, member: Member) -> None:
        """It left the group: it does not fetch any more, and throws an answer under way away."""
        member.has_left = True
        member.heard_on.clear()
        self.end(member)

    def _forget_if_gone(self, member: Member) -> None:
        if member.ended and not member.heard_on:
            fellows = self._of_client.get(member.client, [])
            if member in fellows:
                fellows.remove(member)
            if not fellows:
                self._of_client.pop(member.client, None)
            for key in member.given:
                if self._owners.get((member.group, key)) is member:
                    del self._owners[member.group, key]

    # -- connections -------------------------------------------------------------------------------

    def _connection(self, exchange: ConvertedExchange) -> FetchConnection:
        number = exchange.request.connection_id
        connection = self._connections.get(number)
        if connection is None:
            connection = FetchConnection(number, exchange.request.node_id)
            self._connections[number] = connection
        return connection

    def closed(self, number: int) -> None:
        """A connection was closed."""
        connection = self._connections.pop(number, None)
        if connection is None:
            return
        if connection.reader is not None:
            self._release(connection, connection.reader)
        if connection.member is not None:
            connection.member.heard_on.discard(number)
            self._forget_if_gone(connection.member)

    def looked_for_coordinator(self, exchange: ConvertedExchange) -> None:
        """FindCoordinator was sent: a consumer looks for its own group's."""
        message = exchange.message
        if message.key_type == GROUP_KEY:
            for group in message.coordinator_keys or [message.key]:
                self._tells(self._connection(exchange), group)

    def spoke(self, exchange: ConvertedExchange) -> None:
        """A member sent a request as such."""
        message, connection = exchange.message, self._connection(exchange)
        if message.member_id:
            self._tells(connection, message.group_id)
            member = self.known(message.group_id, message.member_id)
            if member is not None:
                self._names(connection, member)

    def _tells(self, connection: FetchConnection, group: str) -> None:
        if connection.is_told and connection.group != group:
            self._share(connection)
        connection.group = group
        connection.is_told = True

    @staticmethod
    def _share(connection: FetchConnection) -> None:
        """Several consumers use it: what was certain of a single one is open again."""
        connection.is_shared = True
        connection.excluded.clear()
        if connection.reader is not None:
            GroupReaders._release(connection, connection.reader)

    def _names(self, connection: FetchConnection, member: Member) -> None:
        former = connection.member
        if former is member:
            return
        self._tells(connection, member.group)
        if member.name in connection.former:
            self._share(connection)
        if former is not None:
            connection.former.add(former.name)
            former.heard_on.discard(connection.number)
            self._forget_if_gone(former)
        connection.member = member
        member.heard_on.add(connection.number)

    # -- Fetches -----------------------------------------------------------------------------------

    def requested(self, exchange: ConvertedExchange) -> None:
        """A Fetch was sent."""
        connection = self._connection(exchange)
        connection.last_fetch = exchange.request.seq
        connection.first_fetch = connection.first_fetch or connection.last_fetch
        candidates = self._candidates(connection, exchange.client)
        if len(candidates) > 1 and not connection.is_shared:
            for topic in exchange.message.topics:
                name = topic.topic or self._cluster.place("", topic.topic_id, 0).topic
                for each in topic.partitions if name else ():
                    key = (name, each.partition)
                    connection.excluded.update(m for m in candidates if key not in m.given)
        exchange.fetched = FetchSenders(connection, tuple(candidates))

    def _candidates(self, connection: FetchConnection, client: RunClient) -> list[Member]:
        if connection.is_shared:
            return list(self._of_client.get(client, ()))
        if connection.member is not None:
            return [connection.member]
        return [
            member
            for member in self._of_client.get(client, ())
            if member not in connection.excluded
            and (connection.group is None or member.group == connection.group)
        ]

    def reader(self, exchange: ConvertedExchange, place: Place) -> ReaderIdentity:
        """The member that sent an answered Fetch of a partition."""
        fetched = exchange.fetched
        if fetched is None or place.topic is None:
            return UNKNOWN
        connection, key = fetched.connection, (place.topic, place.partition)
        seq = exchange.request.seq
        fitting = [
            member
            for member in fetched.members
            if member not in connection.excluded
            and not member.has_left
            and member.given.get(key, seq) < seq
            and (member is connection.reader or member.lost.get(key, seq) >= seq)
        ]
        if connection.reader in fitting:
            fitting = [connection.reader]
        else:
            fitting = self._without_others(connection, fitting)
        if not fitting:
            return UNKNOWN
        if len(fitting) == 1 and self._is_free(connection, fitting[0]):
            [member] = fitting
            if not connection.is_shared:
                self._settle(connection, member)
            return ReaderIdentity(member.group, member.name)
        groups = {member.group for member in fitting}
        free = all(self._is_free(connection, member) for member in fitting)
        group = groups.pop() if len(groups) == 1 and free else None
        return ReaderIdentity(group, None, tuple(sorted(member.name for member in fitting)))

    def _without_others(self, connection: FetchConnection, fitting: list[Member]) -> list[Member]:
        """Those that do not go on fetching on another connection."""
        busy = {
            member: other
            for member in fitting
            if (other := member.fetches_on.get(connection.broker)) is not None
            and other is not connection
            and other.last_fetch > connection.first_fetch
        }
        rest = [member for member in fitting if member not in busy]
        if rest:
            connection.excluded.update(busy)
            return rest
        for member, other in busy.items():
            # One of both is no member's. The group that is named there decides, if it is.
            self._release(other, member)
            if connection.is_told and not other.is_told:
                other.excluded.add(member)
            elif other.is_told and not connection.is_told:
                connection.excluded.add(member)
                self._settle(other, member)
            else:
                member.doubtful_on.add(connection.broker)
        return [member for member in fitting if member not in connection.excluded]

    @staticmethod
    def _is_free(connection: FetchConnection, member: Member) -> bool:
        """Whether no other connection to the broker may be the member's."""
        if member.name and connection.member is member:
            return True
        other = member.fetches_on.get(connection.broker)
        return connection.broker not in member.doubtful_on and other in (None, connection)

    @staticmethod
    def _settle(connection: FetchConnection, member: Member) -> None:
        former = connection.reader
        if former is not member:
            if former is not None:
                GroupReaders._release(connection, former)
            connection.reader = member
            connection.group = connection.group or member.group
        member.fetches_on[connection.broker] = connection

    @staticmethod
    def _release(connection: FetchConnection, member: Member) -> None:
        if connection.reader is member:
            connection.reader = None
        if member.fetches_on.get(connection.broker) is connection:
            del member.fetches_on[connection.broker]


def columns(reader: ReaderIdentity) -> dict[str, Any]:
    """The columns of a Fetch's group and member."""
    return {
        "group": reader.group,
        "member": reader.member,
        "candidates": list(reader.candidates) or None,
    }
