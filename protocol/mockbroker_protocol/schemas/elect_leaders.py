"""ElectLeaders (key 43)."""

from mockbroker_protocol.declare import *

REQUEST = Message("ElectLeadersRequest", "0-2", flexible="2+").of(
    Field("election_type", INT8, "1+"),
    Field("topic_partitions", Array("TopicPartitions"), nullable=True, null_is_all=True).of(
        Field("topic", STRING, entity=TOPIC_NAME),
        Field("partitions", Array(INT32), own_entity=PARTITION),
    ),
    Field("timeout_ms", INT32, default=60000),
)

RESPONSE = Message("ElectLeadersResponse", "0-2", flexible="2+").of(
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16, "1+"),
    Field("replica_election_results", Array("ReplicaElectionResult")).of(
        Field("topic", STRING, entity=TOPIC_NAME),
        Field("partition_result", Array("PartitionResult")).of(
            Field("partition_id", INT32, own_entity=PARTITION),
            Field("error_code", INT16),
            Field("error_message", STRING, nullable=True),
        ),
    ),
)
