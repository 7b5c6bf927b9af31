"""The tables of a run: names, columns, types and meanings.

`seq` numbers are those of the journal's entries: the order of events in the cluster. Times are
`virtual_ms` (the cluster's clock, ms since the epoch) and `real_ns` (real time, ns since the
epoch). A partition is `topic_id` and `partition`, because a topic that was deleted and created
again is another; `topic` is its name. A null means unknown or not applicable.

On disk a table is `<directory>/<table>/run=<run>/part-<n>.parquet`: zstd, hive-partitioned by run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

# The reasons of removed records, as in the core's events; the jobs run without the core.
WANTED_REMOVALS = ("retention", "compaction", "delete_records", "topic_deleted")
LOSSES = ("truncation", "unclean_election", "log_dir_failed")

# Grows with every change that breaks a reader of older tables.
SCHEMA_VERSION = 6


class Column(NamedTuple):
    """One column. `kind` is one of int64, int32, int16, int8, bool, string, strings."""

    name: str
    kind: str
    meaning: str


class Table(NamedTuple):
    """One table; `meaning` is that of a row."""

    name: str
    meaning: str
    columns: tuple[Column, ...]

    def __iter__(self) -> Iterator[Column]:  # type: ignore[override]
        return iter(self.columns)


def _table(name: str, meaning: str, *columns: tuple[str, str, str]) -> Table:
    return Table(name, meaning, tuple(Column(*column) for column in columns))


_TIMES = (
    ("virtual_ms", "int64", "the cluster's clock"),
    ("real_ns", "int64", "real time"),
)
_PLACE = (
    ("topic", "string", "its name"),
    ("topic_id", "string", "its id in Kafka's form"),
    ("partition", "int32", "its number"),
)

_REQUESTS = _table(
    "requests",
    "a request and its answer",
    ("seq", "int64", "the request"),
    ("response_seq", "int64", "its answer, or the entry of its end without one; null: neither"),
    *_TIMES,
    ("elapsed_ns", "int64", "real time from the request to its answer"),
    ("broker", "int32", "node id"),
    ("listener", "string", "name of the listener"),
    ("connection", "int64", "number of the connection"),
    ("source", "string", "host:port of the client"),
    ("client_id", "string", "in the request header"),
    ("client_software", "string", "name and version in ApiVersions"),
    ("principal", "string", "the authenticated principal"),
    ("api", "string", "Kafka's name of the API"),
    ("api_version", "int16", ""),
    ("correlation_id", "int32", ""),
    ("group", "string", "the group it names; null: none, or several"),
    ("groups", "strings", "all groups it names"),
    ("member", "string", "the member it names; null: none, or several"),
    ("generation", "int32", "the generation or member epoch it names; null: none, or several"),
    ("transactional_id", "string", "the one it names; null: none, or several"),
    ("transactional_ids", "strings", "all transactional ids it names"),
    ("producer_id", "int64", "the one it names, or its batches; null: none, or several"),
    ("producer_epoch", "int16", "of that producer; null: none, or several"),
    ("acks", "int16", "of a Produce"),
    ("isolation_level", "int8", "0 read_uncommitted, 1 read_committed"),
    ("request_bytes", "int64", ""),
    ("response_bytes", "int64", ""),
    ("errors", "strings", "names of the error codes in the answer"),
    ("outcome", "string", "why the answer was not sent whole; null if it was"),
    ("rules", "strings", "the fault rules that changed it"),
)

_BATCHES = _table(
    "batches",
    "one partition of a Produce, each time it was sent",
    ("seq", "int64", "the request"),
    ("append_seq", "int64", "its append to the leader's log; null: not appended by this request"),
    ("response_seq", "int64", "the answer; null: no answer left the broker"),
    *_TIMES,
    ("broker", "int32", "node id"),
    ("connection", "int64", ""),
    ("client_id", "string", ""),
    *_PLACE,
    ("leader_epoch", "int32", "of the append; null: not appended by this request"),
    ("base_offset", "int64", "of its first record; null: refused or unknown"),
    ("last_offset", "int64", "of its last record"),
    ("records", "int32", "number of records"),
    ("bytes", "int32", "size of the batch"),
    ("producer_id", "int64", "null: without idempotence"),
    ("producer_epoch", "int16", ""),
    ("base_sequence", "int32", ""),
    ("transactional_id", "string", ""),
    ("transaction", "string", "`<producer id>/<n>`: the n-th transaction of that producer id"),
    ("acks", "int16", ""),
    ("acknowledged", "bool", "an answer without an error left the broker"),
    ("error", "string", "name of the error code in the answer; null: none, or no answer"),
    ("rules", "strings", ""),
)

_RECORDS = _table(
    "records",
    "a record as it was appended to a leader's log",
    ("append_seq", "int64", "the append of its batch"),
    *_PLACE,
    ("offset", "int64", ""),
    ("timestamp", "int64", "ms since the epoch"),
    ("id", "string", "from its header `mb-id`, or as the action `track` defines; null: none"),
    (
        "value_hash",
        "int64",
        "BLAKE2b of key and value, the first 8 bytes: equal values, equal hash",
    ),
    ("key_hash", "int64", "of the key alone; null: no key"),
)

_FETCHES = _table(
    "fetches",
    "one partition of an answer to a consumer's Fetch",
    ("seq", "int64", "the request"),
    ("response_seq", "int64", "the answer"),
    *_TIMES,
    ("broker", "int32", ""),
    ("connection", "int64", ""),
    ("client_id", "string", ""),
    ("group", "string", "the group it reads for, as far as that is certain"),
    ("member", "string", "the member it is, as far as that is certain"),
    ("candidates", "strings", "the members it may be, where that is not certain; null: none"),
    *_PLACE,
    ("read_span", "int64", "its number within the run"),
    (
        "start",
        "string",
        "reason of a new read span: connection, rebalance, reset (a look-up of offsets), "
        "jump (another offset without a known reason); null: the span continues",
    ),
    ("isolation_level", "int8", ""),
    ("fetch_offset", "int64", "in the request"),
    ("next_offset", "int64", "behind the last batch of the answer; fetch_offset without one"),
    ("delivered", "int32", "number of its records in deliveries"),
    ("log_start_offset", "int64", "in the answer; null: absent"),
    ("last_stable_offset", "int64", "in the answer"),
    ("high_watermark", "int64", "in the answer"),
    ("error", "string", "name of the error code; null: none"),
    ("rules", "strings", ""),
)

_DELIVERIES = _table(
    "deliveries",
    "a record that a consumer got from an answer: in its batches, at or above the fetch offset, "
    "visible to the isolation level",
    ("response_seq", "int64", "the answer; see fetches"),
    *_PLACE,
    ("position", "int32", "0, 1, 2 ... in the order of the answer"),
    ("offset", "int64", ""),
    ("value_hash", "int64", "as in records"),
)

_COMMITS = _table(
    "commits",
    "a request to commit an offset of a group, or the removal of one",
    ("seq", "int64", "the request; of a removal, the event"),
    ("response_seq", "int64", "the answer; null: none left the broker"),
    *_TIMES,
    ("broker", "int32", "the coordinator"),
    ("group", "string", ""),
    ("member", "string", "null: not by a member"),
    ("generation", "int32", "null: not by a member"),
    ("client_id", "string", ""),
    ("connection", "int64", ""),
    *_PLACE,
    ("offset", "int64", "null: removed"),
    ("transaction", "string", "as in batches; null: a plain commit"),
    ("applied", "bool", "the coordinator wrote it"),
    ("reset", "bool", "by no member: an administrator, or a consumer without a group's protocol"),
    ("error", "string", "name of the error code; null: none"),
)

_GROUPS = _table(
    "groups",
    "a transition of a group",
    ("seq", "int64", ""),
    *_TIMES,
    ("broker", "int32", "the coordinator"),
    ("group", "string", ""),
    ("protocol", "string", "classic, consumer (KIP-848), share (KIP-932) or streams (KIP-1071)"),
    ("former", "string", "state before, by DescribeGroups' name"),
    ("state", "string", "state after"),
    ("generation", "int32", "or the group epoch"),
    ("members", "int32", "number of members"),
    ("reason", "string", "null: unknown"),
)

_ASSIGNMENTS = _table(
    "assignments",
    "a partition that a member was assigned",
    ("seq", "int64", "the answer with it"),
    *_TIMES,
    ("group", "string", ""),
    ("generation", "int32", "or the member epoch"),
    ("member", "string", ""),
    ("client_id", "string", ""),
    *_PLACE,
)

_SHARE_LINE = (
    ("state_epoch", "int32", "of the state at the share coordinator"),
    (
        "share_state",
        "int64",
        "number of that state within the run; another one after an initialization or a deletion",
    ),
    (
        "life",
        "int64",
        "number of the share partition within the run; a leader that reads the state begins a new "
        "one; null: before the first, or at a share coordinator",
    ),
)

_SHARE_RECORDS = _table(
    "share_records",
    "an event of records of a share group (KIP-932), first to last offset",
    ("seq", "int64", ""),
    *_TIMES,
    ("broker", "int32", "the leader of the partition"),
    ("group", "string", ""),
    ("member", "string", "the member that acquired them; null: none"),
    *_PLACE,
    *_SHARE_LINE,
    (
        "change",
        "string",
        "acquired, accepted, released, rejected, gap, renewed, session_ended, lock_expired, "
        "removed, aborted; writing: the state is not written yet; rolled_back: its write failed; "
        "of actions: archived, counted (another delivery count), handed_out",
    ),
    ("first_offset", "int64", ""),
    ("last_offset", "int64", ""),
    ("state", "string", "after it: Available, Acquired, Acknowledged, Archived"),
    ("delivery_count", "int32", "after it"),
    ("delivery_limit", "int32", "how often the group takes a record at most"),
    (
        "reason",
        "string",
        "of Archived: rejected, gap, delivery_limit, log_start, compaction, transaction_aborted; "
        "null: unknown, or another state",
    ),
    ("cause", "string", "the rule or action that caused it; null: none"),
)

_SHARE_STARTS = _table(
    "share_starts",
    "the share-partition start offset was set or moved",
    ("seq", "int64", ""),
    *_TIMES,
    ("broker", "int32", "the leader; of initialized and deleted, the share coordinator"),
    ("group", "string", ""),
    *_PLACE,
    *_SHARE_LINE,
    ("change", "string", "initialized, deleted, loaded, reset, moved"),
    ("former_offset", "int64", "of a move; null: unknown"),
    ("offset", "int64", "null: unknown"),
    ("reason", "string", "of a move: final, log_start, acquired"),
    ("cause", "string", "the rule or action that caused it; null: none"),
)

_SHARE_SESSIONS = _table(
    "share_sessions",
    "a share session was opened or closed",
    ("seq", "int64", ""),
    *_TIMES,
    ("broker", "int32", ""),
    ("group", "string", ""),
    ("member", "string", ""),
    ("change", "string", "opened, closed"),
    ("reason", "string", "of closed: final_epoch, connection, replaced, broker_stopped"),
)

_TASKS = _table(
    "tasks",
    "a task of a streams group (KIP-1071) and a member",
    ("seq", "int64", ""),
    *_TIMES,
    ("broker", "int32", "the coordinator"),
    ("group", "string", ""),
    ("member", "string", ""),
    ("generation", "int32", "the member epoch"),
    ("change", "string", "assigned, revoking, revoked"),
    ("role", "string", "active, standby, warmup"),
    ("subtopology", "string", ""),
    ("partition", "int32", ""),
)

_STATUSES = _table(
    "statuses",
    "a status in an answer to a heartbeat of a streams group",
    ("seq", "int64", ""),
    *_TIMES,
    ("broker", "int32", "the coordinator"),
    ("group", "string", ""),
    ("member", "string", ""),
    ("status", "string", "Kafka's name"),
    ("details", "string", "its text"),
)

_TRANSACTIONS = _table(
    "transactions",
    "a transition of a transactional id, or a new epoch of a producer id",
    ("seq", "int64", ""),
    *_TIMES,
    ("transactional_id", "string", "null: an idempotent producer"),
    ("producer_id", "int64", ""),
    ("producer_epoch", "int16", ""),
    ("transaction", "string", "as in batches; null: none is open or ends"),
    ("former", "string", "state before, by DescribeTransactions' name"),
    ("state", "string", "state after; InitProducerId: an answer with an epoch"),
)

_MARKERS = _table(
    "markers",
    "a transaction marker in the log of a partition",
    ("seq", "int64", ""),
    *_TIMES,
    *_PLACE,
    ("leader_epoch", "int32", "of the leader that wrote it"),
    ("offset", "int64", ""),
    ("producer_id", "int64", ""),
    ("producer_epoch", "int16", ""),
    ("transaction", "string", "as in batches"),
    ("committed", "bool", "false: aborted"),
)

_EXPIRATIONS = _table(
    "expirations",
    "the leader of a partition forgot a producer (`producer.id.expiration.ms`)",
    ("seq", "int64", ""),
    *_TIMES,
    ("broker", "int32", "the leader"),
    *_PLACE,
    ("producer_id", "int64", ""),
)

_REMOVALS = _table(
    "removals",
    "records that left the log of a partition, first to last offset",
    ("seq", "int64", ""),
    *_TIMES,
    *_PLACE,
    ("first_offset", "int64", ""),
    ("last_offset", "int64", ""),
    (
        "reason",
        "string",
        f"wanted: {', '.join(WANTED_REMOVALS)}; not wanted: {', '.join(LOSSES)}",
    ),
    (
        "cause",
        "string",
        "the rule or action that caused it; of an unclean election without one, unclean_election; "
        "null: unknown",
    ),
)

_WATERMARKS = _table(
    "watermarks",
    "the offsets of a log on one broker, in an answer or an event",
    ("seq", "int64", ""),
    *_TIMES,
    ("broker", "int32", ""),
    *_PLACE,
    ("leader_epoch", "int32", "null: unknown"),
    ("log_start_offset", "int64", ""),
    ("last_stable_offset", "int64", ""),
    ("high_watermark", "int64", ""),
    ("log_end_offset", "int64", ""),
    ("source", "string", "fetch, produce, list_offsets, event"),
    ("cause", "string", "the rule or action that changed them; null: none"),
)

_CLUSTER = _table(
    "cluster",
    "a change of leaders, ISRs, replicas, the controller, brokers, disks or the network",
    ("seq", "int64", ""),
    *_TIMES,
    ("change", "string", "name of the event, e.g. LeaderChanged, or of a step of a broker's life"),
    ("broker", "int32", ""),
    *_PLACE,
    ("leader", "int32", "-1: none"),
    ("leader_epoch", "int32", ""),
    ("former_leader", "int32", ""),
    ("isr", "string", "node ids, separated by commas"),
    ("former_isr", "string", ""),
    ("replicas", "string", ""),
    ("unclean", "bool", ""),
    ("reason", "string", "of a new leader or ISR, as in the event"),
    ("details", "string", "other fields, as JSON"),
)

_FAULTS = _table(
    "faults",
    "a fault rule fired, or the cluster or its clock was changed",
    ("seq", "int64", ""),
    *_TIMES,
    ("kind", "string", "fault, action, clock"),
    ("change", "string", "effect, action or change"),
    ("rules", "strings", "names of rules; empty: without a rule"),
    ("request_seq", "int64", "the affected request"),
    ("api", "string", ""),
    ("client_id", "string", ""),
    ("broker", "int32", ""),
    ("topic", "string", ""),
    ("partition", "int32", ""),
    ("group", "string", ""),
    ("outcome", "string", ""),
    ("details", "string", "arguments and other fields, as JSON"),
)

_OPERATIONS = _table(
    "operations",
    "an operation that an application logged; no part of the journal",
    ("seq", "int64", "1, 2, 3 ... within its process"),
    ("real_ns", "int64", "real time"),
    ("process", "string", "one producer or consumer of one application"),
    ("op", "string", "send, acked, failed, processed, assigned, revoked, seek, committed"),
    ("group", "string", ""),
    ("topic", "string", ""),
    ("partition", "int32", ""),
    ("offset", "int64", ""),
    ("id", "string", "as in records"),
)

_GAPS = _table(
    "gaps",
    "missing entries of the journal",
    ("first_seq", "int64", ""),
    ("last_seq", "int64", ""),
    ("reason", "string", ""),
)

TABLES: Mapping[str, Table] = {
    table.name: table
    for table in (
        _REQUESTS,
        _BATCHES,
        _RECORDS,
        _FETCHES,
        _DELIVERIES,
        _COMMITS,
        _GROUPS,
        _ASSIGNMENTS,
        _SHARE_RECORDS,
        _SHARE_STARTS,
        _SHARE_SESSIONS,
        _TASKS,
        _STATUSES,
        _TRANSACTIONS,
        _MARKERS,
        _EXPIRATIONS,
        _REMOVALS,
        _WATERMARKS,
        _CLUSTER,
        _FAULTS,
        _OPERATIONS,
        _GAPS,
    )
}

# The kind of each column, the same in all tables.
KINDS: Mapping[str, str] = {
    column.name: column.kind for table in TABLES.values() for column in table
}

# Columns with all groups and transactional ids of a request that names several. The columns for a
# single one are null then.
PLURALS: Mapping[str, str] = {"group": "groups", "transactional_id": "transactional_ids"}


def single_or_all(fields: Mapping[str, object]) -> dict[str, object]:
    """The fields of an event or request as columns: see PLURALS."""
    columns = {}
    for name, value in fields.items():
        several = isinstance(value, list | tuple) and KINDS.get(name) != "strings"
        if not several:
            columns[name] = value
        if name in PLURALS and value is not None:
            columns[PLURALS[name]] = value if several else [value]
    return columns


SPARK_TYPES: Mapping[str, str] = {
    "int64": "bigint",
    "int32": "int",
    "int16": "smallint",
    "int8": "tinyint",
    "bool": "boolean",
    "string": "string",
    "strings": "array<string>",
}
_DUCKDB = {
    "int64": "BIGINT",
    "int32": "INTEGER",
    "int16": "SMALLINT",
    "int8": "TINYINT",
    "bool": "BOOLEAN",
    "string": "VARCHAR",
    "strings": "VARCHAR[]",
}


def spark_schema(table: str) -> str:
    """The table's columns in Spark's DDL, with the column `run`."""
    columns = [f"`{column.name}` {SPARK_TYPES[column.kind]}" for column in TABLES[table]]
    return ", ".join([*columns, "`run` string"])


def duckdb_columns(table: str) -> str:
    """The table's columns in DuckDB's SQL, with the column `run`."""
    columns = [f'"{column.name}" {_DUCKDB[column.kind]}' for column in TABLES[table]]
    return ", ".join([*columns, '"run" VARCHAR'])
