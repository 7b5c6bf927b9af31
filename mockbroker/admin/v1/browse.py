"""Browsing: pages of the partitions of a large cluster, batches of a log, configs of a topic."""

from __future__ import annotations

from typing import Annotated

import msgspec

from mockbroker.admin.v1.backend import AdminBackend
from mockbroker.admin.v1.declaring import ApiEndpoints
from mockbroker.admin.v1.endpoint import EndpointCall
from mockbroker.core.cluster import Cluster
from mockbroker.core.validation import Count, Count64, Length, Range
from mockbroker.core.views.browse import (
    BatchPage,
    BatchSearch,
    BatchView,
    PartitionPage,
    PartitionSearch,
    Trouble,
    batches,
    partition_page,
)
from mockbroker.core.views.configs import topic_config_views
from mockbroker.core.views.topics import log_of, partition_of

PARTITIONS_MAX = 1_000
RECORDS_MAX = 1_000
VALUE_BYTES_MAX = 1 << 20
# Batches that a search looks at in one request; the next one goes on behind them.
SEARCHED_MAX = 20_000

endpoints = ApiEndpoints()


class PartitionsQuery(msgspec.Struct):
    """Partitions of topics with `topic` in their name (`exact`: with this name), with a replica on
    `broker`, and `only` those with a trouble. "transaction": the last stable offset is below the
    high watermark.
    """

    topic: Annotated[str, Length(0, 249)] = ""
    exact: bool = False
    broker: int | None = None
    only: Trouble = "any"
    offset: Count = 0
    limit: Annotated[int, Range(1, PARTITIONS_MAX)] = 100


class BatchesQuery(msgspec.Struct):
    """Batches from `offset` on, or from the first record with at least `timestamp_ms`, until they
    have `limit` records. The log is the leader's or that of `broker`.

    With `text`, only batches are given that have it in a key, a value or a header, in any case. Key
    and values are cut to `value_bytes_max`.
    """

    offset: Count64 = 0
    timestamp_ms: Count64 | None = None
    limit: Annotated[int, Range(1, RECORDS_MAX)] = 100
    text: Annotated[str, Length(0, 1_000)] = ""
    broker: int | None = None
    value_bytes_max: Annotated[int, Range(0, VALUE_BYTES_MAX)] = 1_000


@endpoints.get(
    "/v1/partitions/page",
    "A page of partitions, of all topics or those that are searched for",
    query=PartitionsQuery,
)
async def partitions(backend: AdminBackend, call: EndpointCall) -> PartitionPage:
    q: PartitionsQuery = call.query
    wanted = PartitionSearch(q.topic, q.exact, q.broker, q.only)
    return await backend.cluster(lambda c: partition_page(c, wanted, q.offset, q.limit))


@endpoints.get(
    "/v1/topics/{topic}/partitions/{partition:number}/batches",
    "Its record batches, with control records and raw bytes",
    query=BatchesQuery,
    problems=(404,),
)
async def browse(backend: AdminBackend, call: EndpointCall) -> BatchPage:
    """Several reads, so that requests of clients come between them."""
    topic, index = call.path["topic"], call.path["partition"]
    query: BatchesQuery = call.query

    def first(cluster: Cluster) -> int:
        if query.timestamp_ms is None:
            return query.offset
        log = log_of(partition_of(cluster, topic, index), query.broker)
        found = log.find_timestamp(query.timestamp_ms)
        return log.end_offset if found is None else found.offset

    position = await backend.cluster(first)
    text = query.text.lower().encode()
    shown: list[BatchView] = []
    looked_at = 0
    while True:
        left = query.limit - sum(max(len(each.records), 1) for each in shown)
        wanted = BatchSearch(position, left, text, query.value_bytes_max)
        found, following, read = await backend.cluster(
            lambda c, w=wanted: batches(log_of(partition_of(c, topic, index), query.broker), w)  # type: ignore[misc]
        )
        shown += found
        looked_at += read
        position = following
        records = sum(max(len(each.records), 1) for each in shown)
        if read == 0 or records >= query.limit or looked_at >= SEARCHED_MAX:
            break
    return await backend.cluster(
        lambda c: _page(c, topic, index, query.broker, shown, position, looked_at)
    )


endpoints.show(
    "/v1/topics/{topic}/configs",
    "Its configs with their sources",
    topic_config_views,
    problems=(404,),
)


def _page(
    cluster: Cluster,
    topic: str,
    index: int,
    broker: int | None,
    shown: list[BatchView],
    position: int,
    looked_at: int,
) -> BatchPage:
    partition = partition_of(cluster, topic, index)
    log = log_of(partition, broker)
    return BatchPage(
        batches=shown,
        next=position,
        looked_at=looked_at,
        log_start_offset=log.start_offset,
        last_stable_offset=partition.last_stable_offset,
        high_watermark=partition.high_watermark,
        log_end_offset=log.end_offset,
    )
