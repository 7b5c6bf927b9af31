"""What Spark does when records it counts on are gone."""

from __future__ import annotations

from itertools import chain

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from mockbroker import Cluster
from tests.spark.steps import SparkKafka, sorted_reads

pytestmark = [pytest.mark.spark, pytest.mark.java, pytest.mark.xdist_group("spark")]

ADMIN_TIMEOUT_S = 20


@pytest.fixture
def admin(kafka: Cluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": kafka.bootstrap_servers})


def delete_records(admin: AdminClient, topic: str, partition: int, before: int) -> None:
    [future] = admin.delete_records([TopicPartition(topic, partition, before)]).values()
    assert future.result(ADMIN_TIMEOUT_S).low_watermark == before


@pytest.mark.covers("S128", "S339")
def test_a_stream_behind_the_log_start_fails_and_names_the_range(
    steps: SparkKafka, admin: AdminClient, topic: str
) -> None:
    """Its checkpoint says 10, the log now starts at 15."""
    steps.fill(topic, map(str, range(10)), partition=0)
    steps.read_available(steps.stream(topic))
    steps.fill(topic, map(str, range(10, 20)), partition=0)
    delete_records(admin, topic, 0, 15)
    with pytest.raises(Exception, match="may have been lost") as failure:
        steps.read_available(steps.stream(topic, failOnDataLoss=True))
    assert f"{topic}-0" in str(failure.value)
    assert "10" in str(failure.value)


@pytest.mark.covers("S128", "S339")
def test_a_stream_that_may_lose_data_goes_on_at_the_log_start(
    steps: SparkKafka, admin: AdminClient, topic: str
) -> None:
    steps.fill(topic, map(str, range(10)), partition=0)
    steps.read_available(steps.stream(topic))
    steps.fill(topic, map(str, range(10, 20)), partition=0)
    delete_records(admin, topic, 0, 15)
    rest = steps.read_available(steps.stream(topic, failOnDataLoss=False))
    assert list(chain.from_iterable(rest)) == [(0, n, str(n)) for n in range(15, 20)]


@pytest.mark.covers("S128")
@pytest.mark.parametrize("fail", [True, False])
def test_a_batch_that_asks_for_deleted_offsets(
    steps: SparkKafka, admin: AdminClient, topic: str, fail: bool
) -> None:
    """It fails, or reads what is left, as failOnDataLoss says."""
    steps.fill(topic, map(str, range(10)), partition=0)
    delete_records(admin, topic, 0, 6)
    starting = {topic: {"0": 2, "1": 0, "2": 0, "3": 0}}
    frame = steps.read(topic, startingOffsets=starting, failOnDataLoss=fail)
    if fail:
        with pytest.raises(Exception, match="may have been lost"):
            frame.collect()
    else:
        assert sorted_reads(frame.collect()) == [(0, n, str(n)) for n in range(6, 10)]


@pytest.mark.covers("S339")
def test_a_topic_made_anew_and_shorter_fails_the_stream(
    steps: SparkKafka, kafka: Cluster, admin: AdminClient, topic: str
) -> None:
    """The checkpoint is beyond the new end: offsets must not go back."""
    steps.fill(topic, map(str, range(10)), partition=0)
    steps.read_available(steps.stream(topic))
    admin.delete_topics([topic])[topic].result(ADMIN_TIMEOUT_S)
    kafka.topic(topic).create(4)
    steps.fill(topic, ["anew"], partition=0)
    with pytest.raises(Exception, match="offset was changed from 10 to 1"):
        steps.read_available(steps.stream(topic))
