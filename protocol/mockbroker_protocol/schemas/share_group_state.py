"""Keys and values of the records in `__share_group_state`."""

from mockbroker_protocol.declare import *

SHARE_SNAPSHOT_KEY = Message("ShareSnapshotKey", "0", flexible="none").of(
    Field("group_id", STRING),
    Field("topic_id", UUID),
    Field("partition", INT32),
)

STATE_BATCH = Shape("StateBatch").of(
    Field("first_offset", INT64),
    Field("last_offset", INT64),
    Field("delivery_state", INT8),
    Field("delivery_count", INT16),
)

SHARE_SNAPSHOT_VALUE = Message("ShareSnapshotValue", "0", flexible="0+").of(
    Field("snapshot_epoch", INT32),
    Field("state_epoch", INT32),
    Field("leader_epoch", INT32),
    Field("start_offset", INT64),
    Field("delivery_complete_count", INT32, tag=0, default=-1),
    Field("create_timestamp", INT64),
    Field("write_timestamp", INT64),
    Field("state_batches", Array(STATE_BATCH)),
)

SHARE_UPDATE_KEY = Message("ShareUpdateKey", "0", flexible="none").of(
    Field("group_id", STRING),
    Field("topic_id", UUID),
    Field("partition", INT32),
)

SHARE_UPDATE_VALUE = Message("ShareUpdateValue", "0", flexible="0+").of(
    Field("snapshot_epoch", INT32),
    Field("leader_epoch", INT32),
    Field("start_offset", INT64),
    Field("delivery_complete_count", INT32, tag=0, default=-1),
    Field("state_batches", Array(STATE_BATCH)),
)

MESSAGES = (
    SHARE_SNAPSHOT_KEY,
    SHARE_SNAPSHOT_VALUE,
    SHARE_UPDATE_KEY,
    SHARE_UPDATE_VALUE,
)
