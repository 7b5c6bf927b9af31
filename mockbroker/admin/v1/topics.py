"""Topics and their records: create, alter and delete topics, append, read and wait for records."""

from __future__ import annotations

import base64
import binascii
from contextlib import suppress
from typing import Annotated

import msgspec
import trio

from mockbroker.admin.bridge import ClusterUnavailableError
from mockbroker.admin.v1.api import Api, Signal
from mockbroker.admin.v1.endpoint import Call, Endpoint
from mockbroker.core.cluster import Cluster
from mockbroker.core.configs.alter import Change, Op, alter_incrementally
from mockbroker.core.security.acls import ResourceType
from mockbroker.core.validation import Count, Length, Ms, Positive, Range, ValidationError
from mockbroker.core.views.stored import StoredPage, TopicWatch, stored_page
from mockbroker.core.views.topics import TopicView, topic_of, topic_view
from mockbroker.server.seeding import append_records
from mockbroker_protocol.records import Record

BODY_BYTES_MAX = 64 << 20
RECORDS_MAX = 1_000_000
PAGE_RECORDS_MAX = 100_000

Value = Annotated[str, Length(0, BODY_BYTES_MAX)]


# As many as Kafka creates for one request (ReplicationControlManager.MAX_PARTITIONS_PER_BATCH).
PartitionCount = Annotated[int, Range(1, 10_000)]


class NewTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic. Without a number the brokers' default counts.

    `assignments` ({partition: [replica, …]}) excludes `partitions` and `replication_factor`; the
    first replica of a partition is its preferred leader.
    """

    name: str
    partitions: PartitionCount | None = None
    replication_factor: Positive | None = None
    assignments: dict[str, list[Count]] | None = None
    configs: dict[str, str] = {}


class AlterTopic(msgspec.Struct, frozen=True, kw_only=True):
    """`partitions` is the new total; `configs` are set, or removed where null."""

    partitions: PartitionCount | None = None
    configs: dict[str, str | None] = {}


class NewRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A record. Key, value and header values are texts; `key_base64`, `value_base64` and
    `headers_base64` are for bytes. Left out, they are null.

    Without a `partition`, the key decides as in Java's producer; without a key, partitions take
    turns. `timestamp_ms` is since the epoch; without it the cluster's clock counts.
    """

    key: Value | None = None
    key_base64: Value | None = None
    value: Value | None = None
    value_base64: Value | None = None
    headers: dict[str, str | None] = {}
    headers_base64: list[list[str | None]] = []
    partition: Count | None = None
    timestamp_ms: Annotated[int, Range(0, 2**63 - 1)] | None = None

    def __post_init__(self) -> None:
        if self.key is not None and self.key_base64 is not None:
            raise ValueError("give key or key_base64")
        if self.value is not None and self.value_base64 is not None:
            raise ValueError("give value or value_base64")


class AppendRecords(msgspec.Struct, frozen=True):
    """Records to append, as a producer with acks=all would."""

    records: Annotated[list[NewRecord], Length(0, RECORDS_MAX)]


class AppendedRecord(msgspec.Struct, frozen=True):
    """The place of an appended record."""

    partition: int
    offset: int


class StoredQuery(msgspec.Struct):
    """All partitions or one; from the page that starts at `from_partition` and `from_offset`."""

    partition: Count | None = None
    from_partition: Count = 0
    from_offset: Annotated[int, Range(0, 2**63 - 1)] = 0
    limit: Annotated[int, Range(1, PAGE_RECORDS_MAX)] = 10_000


class RecordsWait(msgspec.Struct, frozen=True):
    """Wait until the topic, which need not exist yet, holds `count` records; the timeout is real
    time.
    """

    count: Count
    timeout_ms: Ms = 30_000


class RecordsView(msgspec.Struct, frozen=True):
    """The number of records that a topic holds, also if they are fewer than awaited."""

    count: int


def endpoints(api: Api) -> list[Endpoint]:
    async def create(call: Call) -> TopicView:
        return await api.cluster(lambda cluster: _create(cluster, call.body))

    async def alter(call: Call) -> TopicView:
        return await api.cluster(lambda cluster: _alter(cluster, call.path["topic"], call.body))

    async def delete(call: Call) -> None:
        def carry_out(cluster: Cluster) -> None:
            cluster.delete_topic(topic_of(cluster, call.path["topic"]).name)

        await api.cluster(carry_out)

    async def append(call: Call) -> list[AppendedRecord]:
        records = [
            (each.partition, _record(each, f"records[{number}]"))
            for number, each in enumerate(call.body.records)
        ]

        def carry_out(cluster: Cluster) -> list[AppendedRecord]:
            topic = topic_of(cluster, call.path["topic"])
            return [AppendedRecord(*each) for each in append_records(cluster, topic, records)]

        return await api.cluster(carry_out)

    async def read(call: Call) -> StoredPage:
        query: StoredQuery = call.query
        start = (query.from_partition, query.from_offset)
        return await api.cluster(
            lambda c: stored_page(c, call.path["topic"], query.partition, start, query.limit)
        )

    async def wait(call: Call) -> RecordsView:
        wanted: RecordsWait = call.body
        signal = Signal()
        watch = await api.cluster(
            lambda c: TopicWatch(c, call.path["topic"], wanted.count, signal.set)
        )
        try:
            with api.limit(wanted.timeout_ms / 1000):
                await signal.wait()
            return RecordsView(await api.cluster(lambda _: watch.count))
        finally:
            with trio.CancelScope(shield=True), suppress(ClusterUnavailableError):
                await api.cluster(lambda _: watch.stop())

    topics, one = "/v1/topics", "/v1/topics/{topic}"
    return [
        Endpoint(
            "POST",
            topics,
            "Create a topic",
            create,
            TopicView,
            body=NewTopic,
            status=201,
            problems=(404, 409),
        ),
        Endpoint(
            "PATCH",
            one,
            "Add partitions to a topic, and change its configs",
            alter,
            TopicView,
            body=AlterTopic,
            problems=(404, 409),
        ),
        Endpoint("DELETE", one, "Delete a topic", delete, None, status=204, problems=(404, 409)),
        Endpoint(
            "POST",
            f"{one}/records",
            "Append records",
            append,
            list[AppendedRecord],
            body=AppendRecords,
            status=201,
            problems=(404, 409),
            body_bytes_max=BODY_BYTES_MAX,
        ),
        Endpoint(
            "GET",
            f"{one}/records",
            "Its records of all partitions, with bytes as base64",
            read,
            StoredPage,
            StoredQuery,
            problems=(404,),
        ),
        Endpoint(
            "POST",
            f"{one}/records/wait",
            "Wait until it holds so many records",
            wait,
            RecordsView,
            body=RecordsWait,
        ),
    ]


def _create(cluster: Cluster, wanted: NewTopic) -> TopicView:
    assignments = None
    if wanted.assignments is not None:
        if wanted.partitions is not None or wanted.replication_factor is not None:
            raise ValidationError("assignments", "it excludes partitions and replication_factor")
        if not all(each.isascii() and each.isdigit() for each in wanted.assignments):
            raise ValidationError("assignments", "its names are partitions: numbers from 0")
        assignments = {int(index): each for index, each in wanted.assignments.items()}
    topic = cluster.create_topic(
        wanted.name,
        -1 if wanted.partitions is None else wanted.partitions,
        -1 if wanted.replication_factor is None else wanted.replication_factor,
        assignments=assignments,
        configs=wanted.configs,
    )
    return topic_view(topic)


def _alter(cluster: Cluster, name: str, wanted: AlterTopic) -> TopicView:
    topic = topic_of(cluster, name)
    changes = [
        Change(config, Op.DELETE if value is None else Op.SET, value)
        for config, value in wanted.configs.items()
    ]
    resource = (int(ResourceType.TOPIC), name)
    broker = next(iter(cluster.brokers.values()))
    if changes:  # before anything changes
        alter_incrementally(cluster, broker, resource, changes, validate_only=True)
    if wanted.partitions is not None:
        cluster.topic_control.add_partitions(topic, wanted.partitions)
    if changes:
        alter_incrementally(cluster, broker, resource, changes, validate_only=False)
    return topic_view(topic_of(cluster, name))


def _record(given: NewRecord, path: str) -> Record:
    timestamp = -1 if given.timestamp_ms is None else given.timestamp_ms
    headers = [
        (name, None if value is None else value.encode()) for name, value in given.headers.items()
    ]
    for number, pair in enumerate(given.headers_base64):
        at = f"{path}.headers_base64[{number}]"
        if len(pair) != 2 or pair[0] is None:
            raise ValidationError(at, "a header is a list of its name and its value")
        headers.append((pair[0], _bytes(None, pair[1], at)))
    return Record(
        0,
        timestamp,
        _bytes(given.key, given.key_base64, f"{path}.key_base64"),
        _bytes(given.value, given.value_base64, f"{path}.value_base64"),
        tuple(headers),
    )


def _bytes(text: str | None, encoded: str | None, path: str) -> bytes | None:
    if encoded is None:
        return None if text is None else text.encode()
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValidationError(path, f"it is no base64: {error}") from None
