"""The events, effects and stored changes that only a share group has; see `modern.events`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from mockbroker.core.groups.events import Reply
from mockbroker.core.groups.modern.events import Store, StoredChange
from mockbroker.core.groups.share.partitions import SharePartitions

# --------------------------------------------------------------------------------------- events


class ShareHeartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """ShareGroupHeartbeat of a member that joins (epoch 0) or stays. None is "unchanged"."""

    callback: object
    member_id: str
    epoch: int
    rack_id: str | None = None
    topic_names: frozenset[str] | None = None
    client_id: str = ""
    client_host: str = ""


class ShareLeave(msgspec.Struct, frozen=True, kw_only=True):
    """ShareGroupHeartbeat with epoch -1."""

    callback: object
    member_id: str


# -------------------------------------------------------------------------------------- changes


class PartitionsChange(StoredChange, frozen=True):
    """The share partitions of the group. None: removed with the group."""

    value_field = "partitions"
    partitions: SharePartitions | None


# -------------------------------------------------------------------------------------- effects


class Initialize(msgspec.Struct, frozen=True):
    """Have the share coordinator initialize share partitions, once the changes are replicated.

    `epoch` is the state epoch: the group epoch of the request.
    """

    which: Mapping[bytes, frozenset[int]]
    epoch: int


class ShareStore(Store, frozen=True, kw_only=True):
    """A Store; once the changes are stored, `initialize` is carried out too."""

    initialize: Initialize | None = None


Effect: TypeAlias = Reply | Store | Initialize
