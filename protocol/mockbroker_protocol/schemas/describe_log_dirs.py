"""DescribeLogDirs (key 35)."""

from mockbroker_protocol.declare import *

REQUEST = Message("DescribeLogDirsRequest", "1-5", flexible="2+").of(
    Field("topics", Array("DescribableLogDirTopic"), nullable=True, null_is_all=True).of(
        Field("topic", STRING, entity=TOPIC_NAME),
        Field("partitions", Array(INT32), own_entity=PARTITION),
    ),
)

RESPONSE = Message("DescribeLogDirsResponse", "1-5", flexible="2+").of(
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16, "3+"),
    Field("results", Array("DescribeLogDirsResult")).of(
        Field("error_code", INT16),
        Field("log_dir", STRING),
        Field("topics", Array("DescribeLogDirsTopic")).of(
            Field("name", STRING, entity=TOPIC_NAME),
            Field("partitions", Array("DescribeLogDirsPartition")).of(
                Field("partition_index", INT32, own_entity=PARTITION),
                Field("partition_size", INT64),
                Field("offset_lag", INT64),
                Field("is_future_key", BOOL),
            ),
        ),
        Field("total_bytes", INT64, "4+", default=-1),
        Field("usable_bytes", INT64, "4+", default=-1),
        Field("is_cordoned", BOOL, "5+"),
    ),
)
