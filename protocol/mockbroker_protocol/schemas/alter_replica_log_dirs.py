"""AlterReplicaLogDirs (key 34)."""

from mockbroker_protocol.declare import *

REQUEST = Message(
    "AlterReplicaLogDirsRequest",
    Field(
        "dirs",
        Array(
            "AlterReplicaLogDir",
            Field("path", STRING),
            Field(
                "topics",
                Array(
                    "AlterReplicaLogDirTopic",
                    Field("name", STRING, entity=TOPIC_NAME),
                    Field("partitions", Array(INT32), own_entity=PARTITION),
                ),
            ),
        ),
    ),
    versions="1-2",
    flexible="2+",
)

RESPONSE = Message(
    "AlterReplicaLogDirsResponse",
    Field("throttle_time_ms", INT32),
    Field(
        "results",
        Array(
            "AlterReplicaLogDirTopicResult",
            Field("topic_name", STRING, entity=TOPIC_NAME),
            Field(
                "partitions",
                Array(
                    "AlterReplicaLogDirPartitionResult",
                    Field("partition_index", INT32, own_entity=PARTITION),
                    Field("error_code", INT16),
                ),
            ),
        ),
    ),
    versions="1-2",
    flexible="2+",
)
