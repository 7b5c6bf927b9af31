"""A member of a classic group. Source: ClassicGroupMember."""

from __future__ import annotations

from mockbroker.core.groups.events import Protocols
from mockbroker.core.groups.lazy_timers import LazyTimer


class Member(LazyTimer):
    """`join_callback` and `sync_callback` belong to a waiting JoinGroup and SyncGroup."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "instance_id",
        "is_new",
        "join_callback",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "sync_callback",
    )

    def __init__(
        self,
        member_id: str,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: Protocols,
        assignment: bytes = b"",
    ) -> None:
        super().__init__(member_id)
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.join_callback: object | None = None
        self.sync_callback: object | None = None
        self.is_new = False  # until its first join completes

    def metadata(self, protocol: str | None) -> bytes:
        """The member's metadata for `protocol`. Raises KeyError if it does not support it."""
        for name, metadata in self.protocols:
            if name == protocol:
                return metadata
        raise KeyError(protocol)
