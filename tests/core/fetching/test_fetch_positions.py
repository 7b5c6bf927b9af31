"""Where clients that commit nothing went on fetching, as `/v1/lag` shows it."""

from __future__ import annotations

import pytest

from mockbroker import Cluster
from mockbroker.client import Connection
from mockbroker.core.fetching import fetch_positions
from mockbroker.core.fetching.fetch_positions import FetchPositions
from mockbroker.core.views.groups import LagView, fetch_lag_views, lag_views
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic

RUN = "spark-kafka-source-0dc5-17"
EXECUTOR = f"consumer-{RUN}-executor-1"


def request(topic_id: bytes, *offsets: int) -> FetchRequest:
    """A Fetch of partitions 0, 1, … from these offsets."""
    partitions = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1000)
        for index, offset in enumerate(offsets)
    ]
    topics = [FetchTopic(topic_id=topic_id, partitions=partitions)]
    return FetchRequest(max_bytes=1000, topics=topics)


def fetch(kafka: Cluster, client_id: str, *offsets: int) -> None:
    topic_id = kafka.call(lambda cluster: cluster.topics["orders"].topic_id)
    with Connection(*kafka.endpoint(1), client_id=client_id) as connection:
        connection.send(request(topic_id, *offsets), version=17)


@pytest.fixture
def kafka(mock_kafka: Cluster) -> Cluster:
    """With ten offsets in each of two partitions."""
    from mockbroker.client import Client

    mock_kafka.topic("orders").create(2)
    with Client(mock_kafka.bootstrap_servers) as client:
        for partition in range(2):
            client.produce("orders", [f"order {n}" for n in range(10)], partition=partition)
    return mock_kafka


def progress(kafka: Cluster, group: str | None = None) -> list[tuple[str, int, int, int]]:
    views = kafka.call(lambda cluster: fetch_lag_views(cluster, group))
    return [(view.group, view.partition, view.committed, view.lag) for view in views]


@pytest.mark.mock_kafka(brokers=1)
def test_the_last_fetch_of_a_run_is_its_position(kafka: Cluster) -> None:
    fetch(kafka, EXECUTOR, 3, 0)
    fetch(kafka, EXECUTOR, 7)
    assert progress(kafka) == [(RUN, 0, 7, 3), (RUN, 1, 0, 10)]


@pytest.mark.mock_kafka(brokers=1)
def test_of_several_consumers_the_farthest_counts(kafka: Cluster) -> None:
    fetch(kafka, EXECUTOR, 8)
    fetch(kafka, f"consumer-{RUN}-executor-2", 4)
    assert progress(kafka) == [(RUN, 0, 8, 2)]


@pytest.mark.mock_kafka(brokers=1)
def test_each_run_has_a_lag_of_its_own(kafka: Cluster) -> None:
    fetch(kafka, EXECUTOR, 8)
    fetch(kafka, "consumer-another-executor-1", 9)
    assert progress(kafka, "another") == [("another", 0, 9, 1)]
    assert len(progress(kafka)) == 2


@pytest.mark.mock_kafka(brokers=1)
def test_a_consumer_of_any_other_kind_has_none(kafka: Cluster) -> None:
    """It commits, or nobody asks."""
    fetch(kafka, "consumer-billing-1", 8)
    assert progress(kafka) == []


@pytest.mark.mock_kafka(brokers=1)
def test_it_stands_among_the_committed_lags_as_fetched(kafka: Cluster) -> None:
    fetch(kafka, EXECUTOR, 8)
    [view] = kafka.call(lag_views)
    assert view == LagView(RUN, "orders", 0, 8, 10, 10, 10, 2, 2, False, "", "fetched")


@pytest.mark.mock_kafka(brokers=1)
def test_a_topic_that_is_gone_has_no_lag(kafka: Cluster) -> None:
    fetch(kafka, EXECUTOR, 8)
    kafka.call(lambda cluster: cluster.delete_topic("orders"))
    assert progress(kafka) == []


def test_the_oldest_entries_make_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_positions, "POSITIONS_MAX", 2)
    positions = FetchPositions()
    for run in ("first", "second", "first", "third"):
        positions.record(f"consumer-{run}-executor-1", request(bytes(16), 5), by_id=True)
    assert [key[0] for key, _ in positions] == ["first", "third"]
