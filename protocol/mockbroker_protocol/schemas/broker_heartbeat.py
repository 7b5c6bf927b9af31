"""BrokerHeartbeat (key 63). Brokers send it to the controller; no client does."""

from mockbroker_protocol.declare import *

REQUEST = Message("BrokerHeartbeatRequest", "0-2", flexible="0+").of(
    Field("broker_id", INT32, entity=BROKER_ID),
    Field("broker_epoch", INT64, default=-1),
    Field("current_metadata_offset", INT64),
    Field("want_fence", BOOL),
    Field("want_shut_down", BOOL),
    Field("offline_log_dirs", Array(UUID), "1+", tag=0),
    Field("cordoned_log_dirs", Array(UUID), "2+", nullable="2+", tag=1, default=None),
)

RESPONSE = Message("BrokerHeartbeatResponse", "0-2", flexible="0+").of(
    Field("throttle_time_ms", INT32),
    Field("error_code", INT16),
    Field("is_caught_up", BOOL, default=False),
    Field("is_fenced", BOOL, default=True),
    Field("should_shut_down", BOOL),
)
