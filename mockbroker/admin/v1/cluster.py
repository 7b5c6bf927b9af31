"""Views: brokers, topics, records, groups, lag, transactions, connections."""

from __future__ import annotations

from typing import Annotated

import msgspec

from mockbroker.admin.v1.backend import AdminBackend
from mockbroker.admin.v1.declaring import ApiEndpoints
from mockbroker.admin.v1.endpoint import EndpointCall
from mockbroker.core.cluster import Cluster
from mockbroker.core.validation import Count64, Range
from mockbroker.core.views.brokers import broker_views, cluster_view
from mockbroker.core.views.configs import own_config_views
from mockbroker.core.views.groups import group_lag_views, group_views, lag_views
from mockbroker.core.views.network import network_view
from mockbroker.core.views.share import share_partition_views
from mockbroker.core.views.streams import streams_task_views
from mockbroker.core.views.telemetry import telemetry_views
from mockbroker.core.views.topics import (
    PartitionView,
    RecordView,
    TopicView,
    partition_of,
    partition_view,
    partition_views,
    producer_views,
    record_views,
    topic_of,
    topic_view,
    topic_views,
)
from mockbroker.core.views.transactions import open_transaction_views, transaction_views

RECORDS_MAX = 1_000

endpoints = ApiEndpoints()

TOPIC = "/v1/topics/{topic}"
PARTITION = TOPIC + "/partitions/{partition:number}"
GONE = (404,)


class RecordsQuery(msgspec.Struct):
    """`offset` is the first one; the replica of `broker` is read, by default the leader's."""

    offset: Count64 = 0
    limit: Annotated[int, Range(1, RECORDS_MAX)] = 100
    broker: int | None = None


class GroupQuery(msgspec.Struct):
    group: str | None = None


class TopicQuery(msgspec.Struct):
    topic: str | None = None


class ConnectionView(msgspec.Struct, frozen=True):
    """A connected client."""

    connection: int
    broker: int
    source: str
    client_software: str
    principal: str


endpoints.show("/v1/cluster", "The cluster as a whole", cluster_view)
endpoints.show("/v1/brokers", "The brokers", broker_views)
endpoints.show("/v1/network", "The links between brokers", network_view)
endpoints.show(
    "/v1/configs",
    "The configs that brokers, groups and client metrics have of their own",
    own_config_views,
)
endpoints.show("/v1/topics", "The topics", topic_views)


@endpoints.view(TOPIC, "One topic", problems=GONE)
def one_topic(cluster: Cluster, topic: str) -> TopicView:
    return topic_view(topic_of(cluster, topic))


@endpoints.view(f"{TOPIC}/partitions", "Its partitions", problems=GONE)
def its_partitions(cluster: Cluster, topic: str) -> list[PartitionView]:
    return [partition_view(each) for each in topic_of(cluster, topic).partitions]


@endpoints.view(PARTITION, "One partition", problems=GONE)
def one_partition(cluster: Cluster, topic: str, partition: int) -> PartitionView:
    return partition_view(partition_of(cluster, topic, partition))


@endpoints.view(f"{PARTITION}/records", "Its records", query=RecordsQuery, problems=GONE)
def its_records(
    cluster: Cluster, topic: str, partition: int, offset: int, limit: int, broker: int | None
) -> list[RecordView]:
    return record_views(partition_of(cluster, topic, partition), offset, limit, broker)


endpoints.show("/v1/partitions", "All partitions", partition_views, query=TopicQuery, problems=GONE)
endpoints.show(
    "/v1/producers", "Producers by partition", producer_views, query=TopicQuery, problems=GONE
)
endpoints.show("/v1/groups", "The groups", group_views)
endpoints.show("/v1/lag", "Lag of groups", lag_views, query=GroupQuery)
endpoints.show("/v1/lag/groups", "Lag of each group", group_lag_views)
endpoints.show(
    "/v1/share-partitions",
    "Share partitions with their records in flight",
    share_partition_views,
    query=GroupQuery,
)
endpoints.show("/v1/streams-tasks", "Tasks of streams groups", streams_task_views, query=GroupQuery)
endpoints.show("/v1/transactions", "Transactional ids", transaction_views)
endpoints.show("/v1/transactions/open", "Open transactions by partition", open_transaction_views)


@endpoints.get("/v1/connections", "Connections")
async def connections(backend: AdminBackend, _: EndpointCall) -> list[ConnectionView]:
    return await backend.cluster(lambda _: connection_views(backend))


endpoints.show("/v1/telemetry", "Metrics that clients pushed", telemetry_views)


def connection_views(backend: AdminBackend) -> list[ConnectionView]:
    """Every open connection, by its number. Called in the cluster's thread."""
    return sorted(
        (
            ConnectionView(
                connection=info.id,
                broker=node_id,
                source=f"{info.client_host}:{info.client_port}",
                client_software=f"{info.software_name} {info.software_version}",
                principal=info.principal,
            )
            for node_id, host in backend.server.socket_servers.items()
            for info in host.clients()
        ),
        key=lambda view: view.connection,
    )
