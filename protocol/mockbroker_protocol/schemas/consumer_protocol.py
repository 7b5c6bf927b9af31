"""The blobs inside JoinGroup and SyncGroup of protocol type "consumer".

On the wire an int16 version stands before each (`consumer_protocol` reads and writes it).
"""

from mockbroker_protocol.declare import *

TOPIC_PARTITION = Shape("TopicPartition").of(
    Field("topic", STRING, entity=TOPIC_NAME),
    Field("partitions", Array(INT32), own_entity=PARTITION),
)

CONSUMER_PROTOCOL_SUBSCRIPTION = Message("ConsumerProtocolSubscription", "0-3", flexible="none").of(
    Field("topics", Array(STRING)),
    Field("user_data", BYTES, nullable=True, default=None),
    Field("owned_partitions", Array(TOPIC_PARTITION), "1+"),
    Field("generation_id", INT32, "2+", default=-1, own_entity=GENERATION),
    Field("rack_id", STRING, "3+", nullable=True, default=None),
)

CONSUMER_PROTOCOL_ASSIGNMENT = Message("ConsumerProtocolAssignment", "0-3", flexible="none").of(
    Field("assigned_partitions", Array(TOPIC_PARTITION)),
    Field("user_data", BYTES, nullable=True, default=None),
)

MESSAGES = (
    CONSUMER_PROTOCOL_SUBSCRIPTION,
    CONSUMER_PROTOCOL_ASSIGNMENT,
)
