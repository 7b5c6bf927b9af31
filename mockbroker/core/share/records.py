"""Records of `__share_group_state`: snapshots and updates of the state of a share partition.

A snapshot has the whole state. An update has the batches that a request wrote, and the start offset
if it moved; it is merged into the state so far. A snapshot with a null value is the tombstone.

Source: ShareGroupOffset, ShareCoordinatorRecordHelpers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mockbroker.core.share.state_batches import NO_START_OFFSET, StateBatch, combine
from mockbroker_protocol.internal_topics import SHARE_GROUP_STATE
from mockbroker_protocol.messages import share_group_state as messages
from mockbroker_protocol.records import Record

NO_EPOCH = -1
UNKNOWN_COUNT = -1


class SharePartitionKey(NamedTuple):
    """A share partition: `topic_id` has 16 bytes."""

    group_id: str
    topic_id: bytes
    partition: int


class ShareState(NamedTuple):
    """The state of a share partition (ShareGroupOffset).

    `delivery_complete_count` is the number of offsets from the start offset on whose delivery is
    complete, -1 if unknown. Times are in ms since the epoch. An update leaves out, with -1, a start
    offset or leader epoch that it does not change, and has neither state epoch nor times.
    """

    snapshot_epoch: int
    start_offset: int
    delivery_complete_count: int
    batches: tuple[StateBatch, ...] = ()
    leader_epoch: int = 0
    state_epoch: int = 0
    created_ms: int = 0
    written_ms: int = 0

    def merged(self, update: ShareState) -> ShareState:
        """The state after an update."""
        start = update.start_offset
        if start == NO_START_OFFSET:
            start = self.start_offset
        epoch = self.leader_epoch if update.leader_epoch == NO_EPOCH else update.leader_epoch
        return self._replace(
            start_offset=start,
            delivery_complete_count=update.delivery_complete_count,
            leader_epoch=epoch,
            batches=combine(self.batches + update.batches, start),
        )


class ShareSnapshot(NamedTuple):
    """A ShareSnapshot record; `state` None is the tombstone."""

    key: SharePartitionKey
    state: ShareState | None


class ShareUpdate(NamedTuple):
    """A ShareUpdate record."""

    key: SharePartitionKey
    state: ShareState


ShareRecord = ShareSnapshot | ShareUpdate


def encode(record: ShareRecord, now_ms: int) -> Record:
    """The record with the timestamp `now_ms`."""
    key, state = record
    value: bytes | None = None
    if isinstance(record, ShareUpdate):
        encoded_key = SHARE_GROUP_STATE.encode_key(messages.ShareUpdateKey(*key))
        value = SHARE_GROUP_STATE.encode_value(_update_value(record.state))
    else:
        encoded_key = SHARE_GROUP_STATE.encode_key(messages.ShareSnapshotKey(*key))
        if state is not None:
            value = SHARE_GROUP_STATE.encode_value(_snapshot_value(state))
    return Record(timestamp=now_ms, key=encoded_key, value=value)


def _snapshot_value(state: ShareState) -> messages.ShareSnapshotValue:
    return messages.ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        create_timestamp=state.created_ms,
        write_timestamp=state.written_ms,
        state_batches=_encoded(state.batches),
    )


def _update_value(state: ShareState) -> messages.ShareUpdateValue:
    return messages.ShareUpdateValue(
        snapshot_epoch=state.snapshot_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.delivery_complete_count,
        state_batches=_encoded(state.batches),
    )


def _encoded(batches: Iterable[StateBatch]) -> list[messages.StateBatch]:
    return [
        messages.StateBatch(
            batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count
        )
        for batch in batches
    ]


def parse(record: Record) -> ShareRecord | None:
    """The decoded record; None if its type is unknown, or it is an update without a value.

    Raises DecodeError or UnknownVersionError if the key or the value cannot be decoded.
    """
    if record.key is None:
        return None
    key = SHARE_GROUP_STATE.decode_key(record.key)
    if key is None:
        return None
    value = SHARE_GROUP_STATE.decode_value(key, record.value)
    if isinstance(key, messages.ShareSnapshotKey):
        share_key = SharePartitionKey(key.group_id, key.topic_id, key.partition)
        return ShareSnapshot(share_key, None if value is None else _snapshot_state(value))
    if isinstance(key, messages.ShareUpdateKey) and value is not None:
        return ShareUpdate(
            SharePartitionKey(key.group_id, key.topic_id, key.partition), _state(value)
        )
    return None


def _snapshot_state(value: messages.ShareSnapshotValue) -> ShareState:
    return _state(value)._replace(
        state_epoch=value.state_epoch,
        created_ms=value.create_timestamp,
        written_ms=value.write_timestamp,
    )


def _state(value: messages.ShareSnapshotValue | messages.ShareUpdateValue) -> ShareState:
    return ShareState(
        snapshot_epoch=value.snapshot_epoch,
        start_offset=value.start_offset,
        delivery_complete_count=value.delivery_complete_count,
        batches=tuple(
            StateBatch(
                batch.first_offset, batch.last_offset, batch.delivery_count, batch.delivery_state
            )
            for batch in value.state_batches
        ),
        leader_epoch=value.leader_epoch,
    )
