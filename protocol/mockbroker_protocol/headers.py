"""Request and response headers: which version goes with which request, and their bytes.

Flexible versions of an API come with request header v2 and response header v1, the others with v1
and v0 (KIP-482). ApiVersions is the exception: its response header is always v0, because a client
that does not know the broker yet must be able to read it (KIP-511).
"""

from __future__ import annotations

from struct import Struct

from mockbroker_protocol.api_key import ApiKey
from mockbroker_protocol.codec import named_codec
from mockbroker_protocol.exceptions import DecodeError
from mockbroker_protocol.messages.headers import RequestHeader, ResponseHeader
from mockbroker_protocol.types import Buffer

__all__ = [
    "RequestHeader",
    "ResponseHeader",
    "decode_request_header",
    "decode_response_header",
    "encode_request_header",
    "encode_response_header",
    "request_header_version",
    "response_header_version",
]

NEVER = 32768
"""Above every version: the API has no flexible one."""

# The declarations say the same, but a header must be readable before any of them is imported.
FLEXIBLE_FROM: dict[int, int] = {
    ApiKey.PRODUCE: 9,
    ApiKey.FETCH: 12,
    ApiKey.LIST_OFFSETS: 6,
    ApiKey.METADATA: 9,
    ApiKey.OFFSET_COMMIT: 8,
    ApiKey.OFFSET_FETCH: 6,
    ApiKey.FIND_COORDINATOR: 3,
    ApiKey.JOIN_GROUP: 6,
    ApiKey.HEARTBEAT: 4,
    ApiKey.LEAVE_GROUP: 4,
    ApiKey.SYNC_GROUP: 4,
    ApiKey.DESCRIBE_GROUPS: 5,
    ApiKey.LIST_GROUPS: 3,
    ApiKey.SASL_HANDSHAKE: NEVER,
    ApiKey.API_VERSIONS: 3,
    ApiKey.CREATE_TOPICS: 5,
    ApiKey.DELETE_TOPICS: 4,
    ApiKey.DELETE_RECORDS: 2,
    ApiKey.INIT_PRODUCER_ID: 2,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: 4,
    ApiKey.ADD_PARTITIONS_TO_TXN: 3,
    ApiKey.ADD_OFFSETS_TO_TXN: 3,
    ApiKey.END_TXN: 3,
    ApiKey.WRITE_TXN_MARKERS: 1,
    ApiKey.TXN_OFFSET_COMMIT: 3,
    ApiKey.DESCRIBE_ACLS: 2,
    ApiKey.CREATE_ACLS: 2,
    ApiKey.DELETE_ACLS: 2,
    ApiKey.DESCRIBE_CONFIGS: 4,
    ApiKey.ALTER_CONFIGS: 2,
    ApiKey.ALTER_REPLICA_LOG_DIRS: 2,
    ApiKey.DESCRIBE_LOG_DIRS: 2,
    ApiKey.SASL_AUTHENTICATE: 2,
    ApiKey.CREATE_PARTITIONS: 2,
    ApiKey.CREATE_DELEGATION_TOKEN: 2,
    ApiKey.RENEW_DELEGATION_TOKEN: 2,
    ApiKey.EXPIRE_DELEGATION_TOKEN: 2,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: 2,
    ApiKey.DELETE_GROUPS: 2,
    ApiKey.ELECT_LEADERS: 2,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: 1,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: 0,
    ApiKey.LIST_PARTITION_REASSIGNMENTS: 0,
    ApiKey.OFFSET_DELETE: NEVER,
    ApiKey.DESCRIBE_CLIENT_QUOTAS: 1,
    ApiKey.ALTER_CLIENT_QUOTAS: 1,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: 0,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: 0,
    ApiKey.DESCRIBE_QUORUM: 0,
    ApiKey.UPDATE_FEATURES: 0,
    ApiKey.DESCRIBE_CLUSTER: 0,
    ApiKey.DESCRIBE_PRODUCERS: 0,
    ApiKey.UNREGISTER_BROKER: 0,
    ApiKey.DESCRIBE_TRANSACTIONS: 0,
    ApiKey.LIST_TRANSACTIONS: 0,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: 0,
    ApiKey.CONSUMER_GROUP_DESCRIBE: 0,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: 0,
    ApiKey.PUSH_TELEMETRY: 0,
    ApiKey.LIST_CONFIG_RESOURCES: 0,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: 0,
    ApiKey.SHARE_GROUP_HEARTBEAT: 1,
    ApiKey.SHARE_GROUP_DESCRIBE: 1,
    ApiKey.SHARE_FETCH: 1,
    ApiKey.SHARE_ACKNOWLEDGE: 1,
    ApiKey.ADD_RAFT_VOTER: 0,
    ApiKey.REMOVE_RAFT_VOTER: 0,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: 0,
    ApiKey.READ_SHARE_GROUP_STATE: 0,
    ApiKey.WRITE_SHARE_GROUP_STATE: 0,
    ApiKey.DELETE_SHARE_GROUP_STATE: 0,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: 0,
    ApiKey.STREAMS_GROUP_HEARTBEAT: 0,
    ApiKey.STREAMS_GROUP_DESCRIBE: 0,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: 0,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: 0,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: 0,
}
"""The first flexible version of each declared API; also decides about versions yet unknown."""

_KEY_AND_VERSION = Struct(">hh")
_REQUEST_HEADERS = {version: named_codec("headers", "RequestHeader", version) for version in (1, 2)}
_RESPONSE_HEADERS = {
    version: named_codec("headers", "ResponseHeader", version) for version in (0, 1)
}


def request_header_version(api_key: int, api_version: int) -> int:
    """The version of the header before such a request; KeyError if the API is not declared."""
    return 2 if api_version >= FLEXIBLE_FROM[api_key] else 1


def response_header_version(api_key: int, api_version: int) -> int:
    """The version of the header before such a response; KeyError if the API is not declared."""
    if api_key == ApiKey.API_VERSIONS:
        return 0
    return 1 if api_version >= FLEXIBLE_FROM[api_key] else 0


def decode_request_header(buf: Buffer, pos: int = 0) -> tuple[RequestHeader, int]:
    """Read the header of a request of whatever version; returns it and the position of the body.

    Raises DecodeError; also for an API key that has no declaration, whose header cannot be read.
    """
    if len(buf) - pos < _KEY_AND_VERSION.size:
        raise DecodeError("api_key", pos, f"needs 4 bytes, {max(len(buf) - pos, 0)} left")
    api_key, api_version = _KEY_AND_VERSION.unpack_from(buf, pos)
    flexible_from = FLEXIBLE_FROM.get(api_key)
    if flexible_from is None:
        raise DecodeError("api_key", pos, f"unknown API key {api_key}")
    codec = _REQUEST_HEADERS[2 if api_version >= flexible_from else 1]
    header: RequestHeader
    header, pos = codec.decode(buf, pos)
    return header, pos


def encode_request_header(header: RequestHeader) -> bytes:
    """The bytes of a request header, in the version that goes with its API key and version."""
    version = request_header_version(header.api_key, header.api_version)
    return bytes(_REQUEST_HEADERS[version].encode(header)[0])


def decode_response_header(
    buf: Buffer, api_key: int, api_version: int, pos: int = 0
) -> tuple[ResponseHeader, int]:
    """Read the header of the response to such a request. Raises DecodeError."""
    version = response_header_version(api_key, api_version)
    header: ResponseHeader
    header, pos = _RESPONSE_HEADERS[version].decode(buf, pos)
    return header, pos


def encode_response_header(header: ResponseHeader, api_key: int, api_version: int) -> bytes:
    """The bytes of the header of the response to such a request."""
    version = response_header_version(api_key, api_version)
    return bytes(_RESPONSE_HEADERS[version].encode(header)[0])
