"""DescribeCluster (key 60)."""

from mockbroker_protocol.declare import *

REQUEST = Message("DescribeClusterRequest", "0-2", flexible="0+").of(
    Field("include_cluster_authorized_operations", BOOL),
    Field("endpoint_type", INT8, "1+", default=1),
    Field("include_fenced_brokers", BOOL, "2+"),
)

RESPONSE = Message("DescribeClusterResponse", "0-2", flexible="0+").of(
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("error_message", STRING, nullable=True, default=None),
    Field("endpoint_type", INT8, "1+", default=1),
    Field("cluster_id", STRING),
    Field("controller_id", INT32, default=-1, entity=BROKER_ID),
    Field("brokers", Array("DescribeClusterBroker")).of(
        Field("broker_id", INT32, entity=BROKER_ID),
        Field("host", STRING),
        Field("port", INT32),
        Field("rack", STRING, nullable=True, default=None),
        Field("is_fenced", BOOL, "2+"),
    ),
    Field("cluster_authorized_operations", INT32, default=-2147483648),
)
