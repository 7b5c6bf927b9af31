"""What a cluster looks like: the views, on clusters with a little of everything in them."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from mockbroker import Cluster
from mockbroker.core.errors import ApiError
from mockbroker.core.views.brokers import broker_views, cluster_view
from mockbroker.core.views.groups import group_views, lag_views
from mockbroker.core.views.topics import (
    partition_of,
    partition_view,
    record_views,
    topic_of,
    topic_view,
    topic_views,
)
from mockbroker.core.views.transactions import open_transaction_views, transaction_views
from tests.support.librdkafka import TIMEOUT_S
from tests.support.streams_node import StreamsNode


def producer(kafka: Cluster, **config: object) -> Producer:
    return Producer({"bootstrap.servers": kafka.bootstrap_servers, **config})


def test_nothing_is_brought_into_being_by_looking(mock_kafka: Cluster) -> None:
    assert mock_kafka.call(group_views) == []
    assert mock_kafka.call(lag_views) == []
    assert mock_kafka.call(transaction_views) == []
    assert mock_kafka.call(open_transaction_views) == []
    assert mock_kafka.call(topic_views) == []


def test_brokers_are_counted_as_leaders_and_replicas(mock_kafka: Cluster) -> None:
    mock_kafka.topic("orders").create(3, 2)
    mock_kafka.broker(2).stop(how="unclean")
    views = {view.node_id: view for view in mock_kafka.call(broker_views)}
    assert [views[2].state, views[2].fenced, views[2].leads] == ["stopped", True, 0]
    assert sum(view.leads for view in views.values()) == 3
    assert sum(view.replicas for view in views.values()) == 6
    assert views[2].in_sync == 0
    assert [view.node_id for view in views.values() if view.controller] == [1]
    whole = mock_kafka.call(cluster_view)
    assert (whole.brokers, whole.topics, whole.partitions, whole.offline) == (3, 1, 3, 0)
    assert whole.under_replicated == views[2].replicas


def test_records_are_shown_as_text_or_hex(mock_kafka: Cluster) -> None:
    mock_kafka.topic("orders").create(configs={"retention.ms": "1000000"})
    client = producer(mock_kafka, **{"enable.idempotence": True})
    client.produce("orders", "coffee", key="alice", headers={"h": b"\xff"}, timestamp=5_000)
    client.produce("orders", None, key=b"\xfe\xff")
    assert client.flush(TIMEOUT_S) == 0
    first, second = mock_kafka.call(lambda c: record_views(partition_of(c, "orders", 0), 0, 10))
    assert (first.offset, first.key, first.value, first.timestamp) == (0, "alice", "coffee", 5_000)
    assert first.headers == [("h", "0xff")]
    assert (second.key, second.value, second.sequence) == ("0xfeff", None, 1)
    assert first.producer_id == second.producer_id >= 0
    shown = mock_kafka.call(lambda c: topic_view(topic_of(c, "orders")))
    assert (shown.partitions, shown.records, shown.configs) == (1, 2, {"retention.ms": "1000000"})


def test_records_are_read_from_an_offset_and_up_to_a_limit(mock_kafka: Cluster) -> None:
    mock_kafka.topic("orders").create()
    client = producer(mock_kafka)
    for number in range(20):
        client.produce("orders", str(number))
    assert client.flush(TIMEOUT_S) == 0
    read = mock_kafka.call(lambda c: record_views(partition_of(c, "orders", 0), 7, 5))
    assert [view.value for view in read] == ["7", "8", "9", "10", "11"]
    assert mock_kafka.call(lambda c: record_views(partition_of(c, "orders", 0), 20, 5)) == []


def test_what_is_not_there_is_refused_by_name(mock_kafka: Cluster) -> None:
    mock_kafka.topic("orders").create(2)
    with pytest.raises(ApiError, match="there is no topic 'order'"):
        mock_kafka.call(lambda c: topic_of(c, "order"))
    with pytest.raises(ApiError, match="has partitions 0 to 1, not 2"):
        mock_kafka.call(lambda c: partition_of(c, "orders", 2))
    with pytest.raises(ApiError, match="broker 9 has no replica of orders-0"):
        mock_kafka.call(lambda c: record_views(partition_of(c, "orders", 0), 0, 1, node_id=9))


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_are_shown_with_members_and_lag(mock_kafka: Cluster, protocol: str) -> None:
    mock_kafka.topic("orders").create()
    client = producer(mock_kafka)
    for number in range(5):
        client.produce("orders", str(number))
    assert client.flush(TIMEOUT_S) == 0
    consumer = Consumer(
        {
            "bootstrap.servers": mock_kafka.bootstrap_servers,
            "group.id": "billing",
            "client.id": "reader",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe(["orders"])
    assert len(consumer.consume(5, TIMEOUT_S)) == 5
    consumer.commit(offsets=[TopicPartition("orders", 0, 3)], asynchronous=False)
    [group] = mock_kafka.call(group_views)
    assert (group.group, group.type, group.state) == ("billing", protocol, "Stable")
    [member] = group.members
    assert (member.client_id, member.connected) == ("reader", True)
    [lag] = mock_kafka.call(lag_views)
    assert (lag.group, lag.committed, lag.high_watermark, lag.lag) == ("billing", 3, 5, 2)
    assert mock_kafka.call(lambda c: lag_views(c, "another")) == []
    consumer.close()


def test_open_transactions_are_shown_and_their_markers(mock_kafka: Cluster) -> None:
    mock_kafka.topic("orders").create()
    client = producer(mock_kafka, **{"transactional.id": "payments"})
    client.init_transactions(TIMEOUT_S)
    client.begin_transaction()
    client.produce("orders", "coffee")
    assert client.flush(TIMEOUT_S) == 0
    [transaction] = mock_kafka.call(transaction_views)
    assert (transaction.transactional_id, transaction.state) == ("payments", "Ongoing")
    assert transaction.partitions == [("orders", 0)]
    [still_open] = mock_kafka.call(open_transaction_views)
    assert (still_open.producer_id, still_open.first_offset) == (transaction.producer_id, 0)
    assert not still_open.hangs
    view = mock_kafka.call(lambda c: partition_view(partition_of(c, "orders", 0)))
    assert (view.last_stable_offset, view.high_watermark) == (0, 1)
    assert [producer.transaction_start for producer in view.producers] == [0]
    client.commit_transaction(TIMEOUT_S)
    mock_kafka.journal.wait(kind="transaction", state="CompleteCommit")
    records = mock_kafka.call(lambda c: record_views(partition_of(c, "orders", 0), 0, 10))
    assert [(each.transactional, each.control) for each in records] == [
        (True, None),
        (True, "commit"),
    ]
    assert mock_kafka.call(open_transaction_views) == []


def test_a_transaction_that_nobody_coordinates_hangs(mock_kafka: Cluster) -> None:
    mock_kafka.topic("orders").create()
    client = producer(mock_kafka, **{"transactional.id": "payments"})
    client.init_transactions(TIMEOUT_S)
    client.begin_transaction()
    client.produce("orders", "coffee")
    assert client.flush(TIMEOUT_S) == 0

    def forget(cluster: object) -> None:
        for broker in cluster.brokers.values():  # type: ignore[attr-defined]
            broker.transactions.shard_of("payments")
            broker.transactions.unload()
        cluster.delete_topic("__transaction_state")  # type: ignore[attr-defined]

    mock_kafka.call(forget)
    assert [view.hangs for view in mock_kafka.call(open_transaction_views)] == [True]


def test_a_streams_member_has_the_partitions_that_its_active_tasks_read() -> None:
    node = StreamsNode()
    node.joins("g", "a")
    [view] = group_views(node.cluster)
    assert (view.type, view.state, view.protocol) == ("streams", "Stable", "sticky")
    assert [member.assigned for member in view.members] == [{"t": [0, 1, 2]}]
