"""AlterReplicaLogDirs (key 34)."""

from __future__ import annotations

from mockbroker_protocol.declare import INT16, INT32, STRING, Array, Field, Message, Shape

REQUEST = Message(
    "AlterReplicaLogDirsRequest",
    Field(
        "dirs",
        Array(
            Shape(
                "AlterReplicaLogDir",
                Field("path", STRING),
                Field(
                    "topics",
                    Array(
                        Shape(
                            "AlterReplicaLogDirTopic",
                            Field("name", STRING),
                            Field("partitions", Array(INT32)),
                        )
                    ),
                ),
            )
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
            Shape(
                "AlterReplicaLogDirTopicResult",
                Field("topic_name", STRING),
                Field(
                    "partitions",
                    Array(
                        Shape(
                            "AlterReplicaLogDirPartitionResult",
                            Field("partition_index", INT32),
                            Field("error_code", INT16),
                        )
                    ),
                ),
            )
        ),
    ),
    versions="1-2",
    flexible="2+",
)
