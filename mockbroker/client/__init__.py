"""A thin, blocking Kafka client on the protocol package, for the command line and for tests.

Nouns: a *connection* is one socket to one broker and sends typed requests or any bytes. The
*router* finds the leader of a partition and the coordinator of a group. The *client* produces,
consumes, alone or as a member of a group, and manages topics, groups and configs. Every call blocks
and nothing runs in the background, so only the called requests are on the wire.
"""

from __future__ import annotations

from mockbroker.client.client import Client
from mockbroker.client.configs import CLUSTER_WIDE, Config, Resource
from mockbroker.client.connection import Connection, decode_response, encode_request
from mockbroker.client.consuming import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    ConsumedRecord,
    ListedOffset,
)
from mockbroker.client.errors import (
    BootstrapError,
    BrokerError,
    ClientError,
    ConnectError,
    ConnectionClosedError,
    RequestTimeoutError,
    ResponseError,
    UnknownTopicError,
    UnsupportedVersionError,
)
from mockbroker.client.producing import Produced

__all__ = [
    "CLUSTER_WIDE",
    "EARLIEST",
    "LATEST",
    "MAX_TIMESTAMP",
    "READ_COMMITTED",
    "READ_UNCOMMITTED",
    "BootstrapError",
    "BrokerError",
    "Client",
    "ClientError",
    "Config",
    "ConnectError",
    "Connection",
    "ConnectionClosedError",
    "ConsumedRecord",
    "ListedOffset",
    "Produced",
    "RequestTimeoutError",
    "Resource",
    "ResponseError",
    "UnknownTopicError",
    "UnsupportedVersionError",
    "decode_response",
    "encode_request",
]
