"""AlterReplicaLogDirs (key 34)."""

from mockbroker_protocol.declare import *

REQUEST = Message("AlterReplicaLogDirsRequest", "1-2", flexible="2+").of(
    Field("dirs", Array("AlterReplicaLogDir")).of(
        Field("path", STRING),
        Field("topics", Array("AlterReplicaLogDirTopic")).of(
            Field("name", STRING, entity=TOPIC_NAME),
            Field("partitions", Array(INT32), own_entity=PARTITION),
        ),
    ),
)

RESPONSE = Message("AlterReplicaLogDirsResponse", "1-2", flexible="2+").of(
    Field("throttle_time_ms", INT32),
    Field("results", Array("AlterReplicaLogDirTopicResult")).of(
        Field("topic_name", STRING, entity=TOPIC_NAME),
        Field("partitions", Array("AlterReplicaLogDirPartitionResult")).of(
            Field("partition_index", INT32, own_entity=PARTITION),
            Field("error_code", INT16),
        ),
    ),
)
