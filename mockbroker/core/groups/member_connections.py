"""Which connection each group member was last heard on.

A client that is there cannot keep up with a clock that jumps: it would have sent its heartbeats
meanwhile. So when the cluster's clock is moved on, the sessions of members whose connection is open
move with it, and only those who are gone run out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class Connection(Protocol):
    """The other end's connection, as far as it matters here."""

    closed: bool


class MemberConnections:
    """Members by group, and the connection that each was last heard on."""

    __slots__ = ("_heard",)

    def __init__(self) -> None:
        self._heard: dict[tuple[str, str], Connection] = {}

    def heard(self, group_id: str, member_id: str, connection: Connection) -> None:
        """A request of this member arrived on this connection."""
        self._heard[group_id, member_id] = connection

    def connected(self, group_id: str) -> Callable[[str], bool]:
        """Tells of a member of this group whether its connection is open."""

        def is_connected(member_id: str) -> bool:
            connection = self._heard.get((group_id, member_id))
            return connection is not None and not connection.closed

        return is_connected

    def forget_the_gone(self) -> None:
        """Drop the members whose connections are closed."""
        self._heard = {key: found for key, found in self._heard.items() if not found.closed}
