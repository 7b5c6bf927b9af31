"""Keys and values of the records in `__share_group_state`.

Generated from `schemas/share_group_state.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import ZERO_UUID, UnknownTags


class ShareSnapshotKey(Struct, gc=False):
    group_id: str = ""
    topic_id: bytes = ZERO_UUID
    partition: int = 0


class StateBatch(Struct, gc=False):
    first_offset: int = 0
    last_offset: int = 0
    delivery_state: int = 0
    delivery_count: int = 0
    unknown_tags: UnknownTags = None


class ShareSnapshotValue(Struct, gc=False):
    snapshot_epoch: int = 0
    state_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    create_timestamp: int = 0
    write_timestamp: int = 0
    state_batches: list[StateBatch] = []
    unknown_tags: UnknownTags = None


class ShareUpdateKey(Struct, gc=False):
    group_id: str = ""
    topic_id: bytes = ZERO_UUID
    partition: int = 0


class ShareUpdateValue(Struct, gc=False):
    snapshot_epoch: int = 0
    leader_epoch: int = 0
    start_offset: int = 0
    delivery_complete_count: int = -1
    state_batches: list[StateBatch] = []
    unknown_tags: UnknownTags = None
