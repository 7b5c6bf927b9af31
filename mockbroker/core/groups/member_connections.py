"""The connection of each group member's last request.

A client cannot send the heartbeats of the time that an advance of the clock skips. An advance
therefore extends the sessions of members whose connection is open; only the others expire.

An entry ends with its connection. A group does not report that a member left, so one connection has
a bounded number of entries: a client may join and leave without end, or name members that do not
exist.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from mockbroker.core.brokers.client_connection import ClientConnection

# Kafka's clients have one member on a connection. Another entry replaces the oldest one.
MEMBERS_MAX = 1000

_Member: TypeAlias = tuple[str, str]  # group id, member id


class MemberConnections:
    """The ids of open connections by group id and member id."""

    __slots__ = ("_ids", "_members")

    def __init__(self) -> None:
        self._ids: dict[_Member, int] = {}
        self._members: dict[int, dict[_Member, None]] = {}  # by connection, the oldest first

    def __len__(self) -> int:
        return len(self._ids)

    def record(self, group_id: str, member_id: str, connection: ClientConnection) -> None:
        """Record that a request of the member arrived on this connection."""
        member, connection_id = (group_id, member_id), connection.id
        before = self._ids.get(member)
        if before == connection_id or connection.closed:
            return
        if before is not None:
            del self._members[before][member]
        self._ids[member] = connection_id
        members = self._members.setdefault(connection_id, {})
        members[member] = None
        if len(members) > MEMBERS_MAX:
            oldest = next(iter(members))
            del members[oldest], self._ids[oldest]

    def connection_closed(self, connection_id: int) -> None:
        """Remove the members whose last request arrived on this connection."""
        for member in self._members.pop(connection_id, ()):
            del self._ids[member]

    def connected(self, group_id: str) -> Callable[[str], bool]:
        """A function of a member id that returns whether the member's connection is open."""
        return lambda member_id: (group_id, member_id) in self._ids
