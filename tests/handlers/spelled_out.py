"""Kafka's `getErrorResponse` of each API, spelled out by hand: what the derived one has to equal.

The tables were compared with Kafka's own classes, API by API and version by version
(`tests/oracle/test_error_responses.py` asks those).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from mockbroker.handlers.base import CLOSE_CONNECTION
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.declarations import class_names, schema_module
from mockbroker_protocol.declare import Array, Shape


@dataclass(frozen=True)
class Rows:
    """A response's array with one element for each element of an array of the request.

    `field` is the response's array and `source` the request's, with a dot where arrays nest and are
    taken together. `keys` are carried over: `name` as it is called on both sides, `topic_name=name`
    where the request calls it `name`; the only key of an array of plain values takes the value.
    From version `absent_from` on the array stays empty.
    """

    field: str
    source: str
    keys: tuple[str, ...] = ()
    rows: Rows | None = None
    absent_from: int = 32767


def _topics(field: str, keys: str, inner: Rows, source: str = "topics") -> Rows:
    return Rows(field, source, tuple(keys.split()), inner)


_INDEXES = ("partition_index",)
_OF_GROUPS = Rows("groups", "group_ids", ("group_id",))
_CONFIG_RESOURCES = Rows("responses", "resources", ("resource_type", "resource_name"))
_SHARE_STATES = Rows(
    "results", "topics", ("topic_id",), Rows("partitions", "partitions", ("partition",))
)
_TXN_PARTITIONS = Rows("results_by_partition", "partitions", _INDEXES)

ROWS: dict[ApiKey, tuple[Rows, ...]] = {
    ApiKey.PRODUCE: (
        _topics(
            "responses",
            "name topic_id",
            Rows("partition_responses", "partition_data", ("index",)),
            "topic_data",
        ),
    ),
    ApiKey.FETCH: (
        # A client of version 13 reads the top level, so partitions need not say it again.
        Rows(
            "responses",
            "topics",
            ("topic", "topic_id"),
            Rows("partitions", "partitions", ("partition_index=partition",)),
            absent_from=13,
        ),
    ),
    ApiKey.LIST_OFFSETS: (_topics("topics", "name", Rows("partitions", "partitions", _INDEXES)),),
    ApiKey.METADATA: (Rows("topics", "topics", ("name", "topic_id")),),
    ApiKey.OFFSET_COMMIT: (
        _topics("topics", "name topic_id", Rows("partitions", "partitions", _INDEXES)),
    ),
    ApiKey.OFFSET_FETCH: (
        # From version 2 on the top level says it, and from 8 on each group.
        Rows(
            "topics",
            "topics",
            ("name",),
            Rows("partitions", "partition_indexes", _INDEXES),
            absent_from=2,
        ),
        Rows("groups", "groups", ("group_id",)),
    ),
    ApiKey.FIND_COORDINATOR: (Rows("coordinators", "coordinator_keys", ("key",)),),
    ApiKey.DESCRIBE_GROUPS: (Rows("groups", "groups", ("group_id",)),),
    ApiKey.CREATE_TOPICS: (Rows("topics", "topics", ("name",)),),
    ApiKey.DELETE_TOPICS: (
        Rows("responses", "topics", ("name", "topic_id")),
        Rows("responses", "topic_names", ("name",)),
    ),
    ApiKey.DELETE_RECORDS: (_topics("topics", "name", Rows("partitions", "partitions", _INDEXES)),),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (
        _topics("topics", "topic", Rows("partitions", "partitions", ("partition",))),
    ),
    ApiKey.ADD_PARTITIONS_TO_TXN: (
        _topics("results_by_topic_v3_and_below", "name", _TXN_PARTITIONS, "v3_and_below_topics"),
    ),
    ApiKey.WRITE_TXN_MARKERS: (
        Rows(
            "markers",
            "markers",
            ("producer_id",),
            _topics("topics", "name", Rows("partitions", "partition_indexes", _INDEXES)),
        ),
    ),
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: (_SHARE_STATES,),
    ApiKey.READ_SHARE_GROUP_STATE: (_SHARE_STATES,),
    ApiKey.WRITE_SHARE_GROUP_STATE: (_SHARE_STATES,),
    ApiKey.DELETE_SHARE_GROUP_STATE: (_SHARE_STATES,),
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: (_SHARE_STATES,),
    ApiKey.SHARE_GROUP_DESCRIBE: (_OF_GROUPS,),
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: (Rows("groups", "groups", ("group_id",)),),
    ApiKey.TXN_OFFSET_COMMIT: (
        _topics("topics", "name", Rows("partitions", "partitions", _INDEXES)),
    ),
    ApiKey.CREATE_ACLS: (Rows("results", "creations"),),
    ApiKey.DELETE_ACLS: (Rows("filter_results", "filters"),),
    ApiKey.DESCRIBE_CONFIGS: (Rows("results", "resources", ("resource_type", "resource_name")),),
    ApiKey.ALTER_CONFIGS: (_CONFIG_RESOURCES,),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (
        Rows(
            "results",
            "dirs.topics",
            ("topic_name=name",),
            Rows("partitions", "partitions", _INDEXES),
        ),
    ),
    ApiKey.CREATE_PARTITIONS: (Rows("results", "topics", ("name",)),),
    ApiKey.DELETE_GROUPS: (Rows("results", "groups_names", ("group_id",)),),
    ApiKey.ELECT_LEADERS: (
        _topics(
            "replica_election_results",
            "topic",
            Rows("partition_result", "partitions", ("partition_id",)),
            "topic_partitions",
        ),
    ),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (_CONFIG_RESOURCES,),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (
        _topics("responses", "name", Rows("partitions", "partitions", _INDEXES)),
    ),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (
        _topics("topics", "name", Rows("partitions", "partition_indexes", _INDEXES)),
    ),
    ApiKey.ALTER_CLIENT_QUOTAS: (
        Rows("entries", "entries", (), Rows("entity", "entity", ("entity_type", "entity_name"))),
    ),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (Rows("results", "users"),),
    ApiKey.DESCRIBE_PRODUCERS: (
        _topics("topics", "name", Rows("partitions", "partition_indexes", _INDEXES)),
    ),
    ApiKey.DESCRIBE_TRANSACTIONS: (
        Rows("transaction_states", "transactional_ids", ("transactional_id",)),
    ),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (_OF_GROUPS,),
    ApiKey.STREAMS_GROUP_DESCRIBE: (_OF_GROUPS,),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (Rows("topics", "topics", ("name",)),),
}
"""By API; those that are missing have an error at the top level and nothing else to fill."""

# What Kafka's error responses hold in other fields, where that is not the default: by struct.
FIXED: dict[str, dict[str, object]] = {
    "PartitionProduceResponse": {"base_offset": -1},
    "PartitionData": {"high_watermark": -1, "records": b""},
    "OffsetFetchResponsePartition": {"committed_offset": -1},
    "FindCoordinatorResponse": {"node_id": -1, "port": -1},
    "Coordinator": {"node_id": -1, "port": -1},
    "DeleteRecordsPartitionResult": {"low_watermark": -1},
    "InitProducerIdResponse": {"producer_epoch": -1},
    "DescribeClientQuotasResponse": {"entries": None},
    "CreateDelegationTokenResponse": {
        "principal_type": "User",
        "principal_name": "ANONYMOUS",
        "token_requester_principal_type": "User",
        "token_requester_principal_name": "ANONYMOUS",
        "issue_timestamp_ms": -1,
        "expiry_timestamp_ms": -1,
        "max_timestamp_ms": -1,
    },
}

# APIs whose `error_message` repeats what the error code says when there is nothing else to say;
# elsewhere it is null then, or stays as it is declared.
TELLING = frozenset(
    (
        ApiKey.FIND_COORDINATOR,
        ApiKey.DESCRIBE_CONFIGS,
        ApiKey.ALTER_CLIENT_QUOTAS,
        ApiKey.DESCRIBE_QUORUM,
        ApiKey.UNREGISTER_BROKER,
        ApiKey.ADD_RAFT_VOTER,
        ApiKey.REMOVE_RAFT_VOTER,
        ApiKey.READ_SHARE_GROUP_STATE,
        ApiKey.WRITE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS,
        ApiKey.DELETE_SHARE_GROUP_OFFSETS,
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    )
)


def spelled_out(
    key: ApiKey, version: int, request: Any, error: ErrorCode, message: str | None
) -> Any:
    """The error response to a request of a version."""
    if key == ApiKey.PRODUCE and request.acks == 0:
        return CLOSE_CONNECTION
    if message is None and key in TELLING:
        message = error.message
    filler = _Filler(schema_module(key.name.lower()), error, message)
    response = filler.struct(filler.shape)
    for rows in ROWS.get(key, ()):
        if version < rows.absent_from:
            filler.fill(response, filler.shape, request, rows)
    special = _SPECIAL.get(key)
    if special is not None:
        special(response, request, version, filler)
    return response


class _Filler:
    """Makes structs of one response with the error in them."""

    __slots__ = ("_error", "_message", "_messages", "_names", "shape")

    def __init__(self, schema: ModuleType, error: ErrorCode, message: str | None) -> None:
        self._messages, self._names = _classes(schema)
        self.shape: Shape = schema.RESPONSE.shape
        self._error = int(error)
        self._message = message

    def struct(self, shape: Shape) -> Any:
        """A fresh struct of a shape, its error set if it has a place for one."""
        name = self._names[id(shape)]
        struct = getattr(self._messages, name)(**FIXED.get(name, {}))
        for field in shape.fields:
            if field.name in ("error_code", "partition_error_code"):
                setattr(struct, field.name, self._error)
            elif field.name == "error_message":
                struct.error_message = self._message
        return struct

    def fill(self, response: Any, shape: Shape, request: Any, rows: Rows) -> None:
        """Add to one array of `response`, whose shape is `shape`, what `rows` says."""
        element = _element(shape, rows.field)
        into = getattr(response, rows.field)
        for source in _sources(request, rows.source):
            row = self.struct(element)
            for key in rows.keys:
                name, _, other = key.partition("=")
                setattr(row, name, getattr(source, other or name, source))
            if rows.rows is not None:
                self.fill(row, element, source, rows.rows)
            into.append(row)


def _fetch(response: Any, request: Any, _version: int, _filler: _Filler) -> None:
    response.session_id = request.session_id


def _metadata(response: Any, _request: Any, _version: int, _filler: _Filler) -> None:
    for topic in response.topics:  # those asked for by id have no name, which is not null here
        topic.name = topic.name or ""


def _join_group(response: Any, _request: Any, version: int, _filler: _Filler) -> None:
    if version >= 7:
        response.protocol_name = None


def _scram_credentials(response: Any, request: Any, _version: int, filler: _Filler) -> None:
    """One result for each user, whether or not deleted and inserted at once."""
    element = _element(filler.shape, "results")
    for user in sorted({row.name for row in (*request.deletions, *request.upsertions)}):
        result = filler.struct(element)
        result.user = user
        response.results.append(result)


_SPECIAL: dict[ApiKey, Callable[[Any, Any, int, _Filler], None]] = {
    ApiKey.FETCH: _fetch,
    ApiKey.METADATA: _metadata,
    ApiKey.JOIN_GROUP: _join_group,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _scram_credentials,
}


def _sources(request: Any, path: str) -> Iterator[Any]:
    head, _, rest = path.partition(".")
    for row in getattr(request, head) or ():
        if rest:
            yield from _sources(row, rest)
        else:
            yield row


def _element(shape: Shape, name: str) -> Shape:
    """The shape of the elements of an array."""
    for field in shape.fields:
        if field.name == name and isinstance(field.type, Array):
            assert isinstance(field.type.element, Shape)
            return field.type.element
    raise LookupError(f"{shape.name} has no array {name!r} of structs")


@cache
def _classes(schema: ModuleType) -> tuple[ModuleType, dict[int, str]]:
    """The structs of a schema's messages, and the class of each shape by its `id()`."""
    messages = import_module(schema.__name__.replace(".schemas.", ".messages."))
    return messages, class_names(schema)
