"""The connection of each group member's last request.

A client cannot send the heartbeats of the time that an advance of the clock skips. An advance
therefore extends the sessions of members whose connection is open; only the others expire.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Connection(Protocol):
    """The part of a client's connection that is needed here."""

    closed: bool


class MemberConnections:
    """The connections by group id and member id."""

    __slots__ = ("_connections",)

    def __init__(self) -> None:
        self._connections: dict[tuple[str, str], Connection] = {}

    def record(self, group_id: str, member_id: str, connection: Connection) -> None:
        """Record that a request of the member arrived on this connection."""
        self._connections[group_id, member_id] = connection

    def connected(self, group_id: str) -> Callable[[str], bool]:
        """A function of a member id that returns whether the member's connection is open."""

        def is_connected(member_id: str) -> bool:
            connection = self._connections.get((group_id, member_id))
            return connection is not None and not connection.closed

        return is_connected

    def remove_closed(self) -> None:
        """Remove the members whose connections are closed."""
        self._connections = {
            key: connection
            for key, connection in self._connections.items()
            if not connection.closed
        }
