"""ConsumerGroupHeartbeat (key 68)."""

from mockbroker_protocol.declare import *

REQUEST = Message("ConsumerGroupHeartbeatRequest", "0-1", flexible="0+").of(
    Field("group_id", STRING, entity=GROUP_ID),
    Field("member_id", STRING, own_entity=MEMBER_ID),
    Field("member_epoch", INT32, own_entity=GENERATION),
    Field("instance_id", STRING, nullable=True, default=None, own_entity=INSTANCE_ID),
    Field("rack_id", STRING, nullable=True, default=None),
    Field("rebalance_timeout_ms", INT32, default=-1),
    Field("subscribed_topic_names", Array(STRING), nullable=True, default=None, entity=TOPIC_NAME),
    Field("subscribed_topic_regex", STRING, "1+", nullable=True, default=None),
    Field("server_assignor", STRING, nullable=True, default=None),
    Field("topic_partitions", Array("TopicPartitions"), nullable=True, default=None).of(
        Field("topic_id", UUID, own_entity=TOPIC_ID),
        Field("partitions", Array(INT32), own_entity=PARTITION),
    ),
)

RESPONSE = Message("ConsumerGroupHeartbeatResponse", "0-1", flexible="0+").of(
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True, default=None),
    Field("member_id", STRING, nullable=True, default=None, own_entity=MEMBER_ID),
    Field("member_epoch", INT32, own_entity=GENERATION),
    Field("heartbeat_interval_ms", INT32),
    Field("assignment", Shape("Assignment"), nullable=True, default=None).of(
        Field("topic_partitions", Array("TopicPartitions")).of(
            Field("topic_id", UUID, own_entity=TOPIC_ID),
            Field("partitions", Array(INT32), own_entity=PARTITION),
        ),
    ),
)
