"""Views: brokers, topics, records, groups, lag, transactions, connections."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated

import msgspec

from mockbroker.admin.v1.api import Api
from mockbroker.admin.v1.endpoint import Call, Endpoint, Nothing
from mockbroker.core.cluster import Cluster
from mockbroker.core.validation import Range
from mockbroker.core.views.brokers import BrokerView, ClusterView, broker_views, cluster_view
from mockbroker.core.views.configs import OwnConfigsView, own_config_views
from mockbroker.core.views.groups import (
    GroupLagView,
    GroupView,
    LagView,
    group_lag_views,
    group_views,
    lag_views,
)
from mockbroker.core.views.network import NetworkView, network_view
from mockbroker.core.views.share import SharePartitionView, share_partition_views
from mockbroker.core.views.streams import StreamsTaskView, streams_task_views
from mockbroker.core.views.telemetry import TelemetryView, telemetry_views
from mockbroker.core.views.topics import (
    PartitionView,
    RecordView,
    StoredProducerView,
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
from mockbroker.core.views.transactions import (
    OpenTransactionView,
    TransactionView,
    open_transaction_views,
    transaction_views,
)

RECORDS_MAX = 1_000


class RecordsQuery(msgspec.Struct):
    """`offset` is the first one; the replica of `broker` is read, by default the leader's."""

    offset: Annotated[int, Range(0, 2**63 - 1)] = 0
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


def endpoints(api: Api) -> list[Endpoint]:
    def show(view: Callable[[Cluster], object]) -> Callable[[Call], Awaitable[object]]:
        async def look(call: Call) -> object:  # noqa: ARG001
            return await api.cluster(view)

        return look

    async def topic(call: Call) -> TopicView:
        return await api.cluster(lambda c: topic_view(topic_of(c, call.path["topic"])))

    async def partitions(call: Call) -> list[PartitionView]:
        return await api.cluster(
            lambda c: [partition_view(each) for each in topic_of(c, call.path["topic"]).partitions]
        )

    async def all_partitions(call: Call) -> list[PartitionView]:
        return await api.cluster(lambda c: partition_views(c, call.query.topic))

    async def producers(call: Call) -> list[StoredProducerView]:
        return await api.cluster(lambda c: producer_views(c, call.query.topic))

    async def partition(call: Call) -> PartitionView:
        topic, index = call.path["topic"], call.path["partition"]
        return await api.cluster(lambda c: partition_view(partition_of(c, topic, index)))

    async def records(call: Call) -> list[RecordView]:
        topic, index = call.path["topic"], call.path["partition"]
        query: RecordsQuery = call.query
        return await api.cluster(
            lambda c: record_views(
                partition_of(c, topic, index), query.offset, query.limit, query.broker
            )
        )

    async def lag(call: Call) -> list[LagView]:
        return await api.cluster(lambda c: lag_views(c, call.query.group))

    async def share_partitions(call: Call) -> list[SharePartitionView]:
        return await api.cluster(lambda c: share_partition_views(c, call.query.group))

    async def streams_tasks(call: Call) -> list[StreamsTaskView]:
        return await api.cluster(lambda c: streams_task_views(c, call.query.group))

    async def connections(call: Call) -> list[ConnectionView]:  # noqa: ARG001
        return await api.cluster(lambda _: connection_views(api))

    one, part = "/v1/topics/{topic}", "/v1/topics/{topic}/partitions/{partition:number}"
    gone = (404,)

    def get(
        path: str,
        summary: str,
        call: Callable[[Call], Awaitable[object]],
        answer: object,
        query: type[msgspec.Struct] = Nothing,
        problems: tuple[int, ...] = (),
    ) -> Endpoint:
        return Endpoint("GET", path, summary, call, answer, query, problems=problems)

    return [
        get("/v1/cluster", "The cluster as a whole", show(cluster_view), ClusterView),
        get("/v1/brokers", "The brokers", show(broker_views), list[BrokerView]),
        get("/v1/network", "The links between brokers", show(network_view), NetworkView),
        get(
            "/v1/configs",
            "The configs that brokers, groups and client metrics have of their own",
            show(own_config_views),
            list[OwnConfigsView],
        ),
        get("/v1/topics", "The topics", show(topic_views), list[TopicView]),
        get(one, "One topic", topic, TopicView, problems=gone),
        get(f"{one}/partitions", "Its partitions", partitions, list[PartitionView], problems=gone),
        get(part, "One partition", partition, PartitionView, problems=gone),
        get(f"{part}/records", "Its records", records, list[RecordView], RecordsQuery, gone),
        get(
            "/v1/partitions",
            "All partitions",
            all_partitions,
            list[PartitionView],
            TopicQuery,
            gone,
        ),
        get(
            "/v1/producers",
            "Producers by partition",
            producers,
            list[StoredProducerView],
            TopicQuery,
            gone,
        ),
        get("/v1/groups", "The groups", show(group_views), list[GroupView]),
        get("/v1/lag", "Lag of groups", lag, list[LagView], GroupQuery),
        get("/v1/lag/groups", "Lag of each group", show(group_lag_views), list[GroupLagView]),
        get(
            "/v1/share-partitions",
            "Share partitions with their records in flight",
            share_partitions,
            list[SharePartitionView],
            GroupQuery,
        ),
        get(
            "/v1/streams-tasks",
            "Tasks of streams groups",
            streams_tasks,
            list[StreamsTaskView],
            GroupQuery,
        ),
        get(
            "/v1/transactions",
            "Transactional ids",
            show(transaction_views),
            list[TransactionView],
        ),
        get(
            "/v1/transactions/open",
            "Open transactions by partition",
            show(open_transaction_views),
            list[OpenTransactionView],
        ),
        get("/v1/connections", "Connections", connections, list[ConnectionView]),
        get(
            "/v1/telemetry",
            "Metrics that clients pushed",
            show(telemetry_views),
            list[TelemetryView],
        ),
    ]


def connection_views(api: Api) -> list[ConnectionView]:
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
            for node_id, host in api.server.socket_servers.items()
            for info in host.clients()
        ),
        key=lambda view: view.connection,
    )
