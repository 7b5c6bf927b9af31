"""A member of a share group. Members are immutable.

Source: ShareGroupMember.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from mockbroker.core.groups.share.states import MEMBER_STABLE

Target: TypeAlias = "Mapping[bytes, frozenset[int]]"

NO_TARGET: Target = {}


class ShareMember(msgspec.Struct, frozen=True, kw_only=True):
    """One member. `assigned` are its partitions by topic id. A new member has epoch 0."""

    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: int = MEMBER_STABLE
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    assigned: Mapping[bytes, frozenset[int]] = msgspec.field(default_factory=dict)
    # A share group revokes nothing.
    revoking: Mapping[bytes, frozenset[int]] = msgspec.field(default_factory=dict)
    rebalance_timeout_ms: int = 0

    @property
    def instance_id(self) -> None:
        """A share group has no static members."""
        return
