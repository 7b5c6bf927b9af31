"""kafka-python's consumer as the brokers see it: fetch sessions, groups, what is never sent."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from kafka import KafkaConsumer, TopicPartition

from mockbroker import Cluster
from mockbroker.core.cluster import Cluster as CoreCluster
from mockbroker_protocol import ApiKey
from mockbroker_protocol.consumer_protocol import decode_subscription
from tests.support.kafka_python import TIMEOUT_S, commit, poll, refused_client, settle, subscribe
from tests.support.librdkafka import produce
from tests.support.request_log import Exchange, RequestLog

TEN = [str(n) for n in range(10)]

one_broker = pytest.mark.mock_kafka(brokers=1, topics={"t": 2})


@contextmanager
def open_consumer(kafka: Cluster, **config: Any) -> Iterator[KafkaConsumer]:
    defaults = {
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
        "fetch_max_wait_ms": 20,
        "heartbeat_interval_ms": 50,
    }
    consumer = KafkaConsumer(bootstrap_servers=kafka.bootstrap_servers, **(defaults | config))
    with closing(consumer):
        yield consumer


def wait_for_fetches(consumer: KafkaConsumer, log: RequestLog, count: int) -> list[Exchange]:
    """Poll until so many Fetches have been answered since the log was cleared; return them."""
    deadline = time.monotonic() + TIMEOUT_S
    while len(log.of(ApiKey.FETCH)) < count:
        assert time.monotonic() < deadline
        consumer.poll(20)
    return log.of(ApiKey.FETCH)


def asked(fetch: Exchange) -> list[int]:
    """The partitions that a Fetch names."""
    return sorted(p.partition for topic in fetch.request.topics for p in topic.partitions)


def told(fetch: Exchange) -> list[int]:
    """The partitions that its answer tells of."""
    return sorted(p.partition_index for topic in fetch.response.responses for p in topic.partitions)


def forgotten(fetch: Exchange) -> list[int]:
    return sorted(p for topic in fetch.request.forgotten_topics_data for p in topic.partitions)


# -- fetch sessions --------------------------------------------------------------------------------


@pytest.mark.covers("S134")
@one_broker
def test_a_session_begins_in_full_and_goes_on_with_changes_only(
    kafka: Cluster, log: RequestLog
) -> None:
    """KIP-227: a request names what changed since the one before, an answer what has news."""
    first, second = TopicPartition("t", 0), TopicPartition("t", 1)
    produce(kafka.bootstrap_servers, "t", TEN, partition=0)
    with open_consumer(kafka) as consumer:
        consumer.assign([first, second])
        poll(consumer, 10)
        opening, *later = wait_for_fetches(consumer, log, 4)
        assert (opening.request.session_id, opening.request.session_epoch) == (0, 0)
        assert asked(opening) == told(opening) == [0, 1]
        session = opening.response.session_id
        assert session > 0
        assert [each.request.session_epoch for each in later] == list(range(1, len(later) + 1))
        assert {each.request.session_id for each in later} == {session}
        assert asked(later[0]) == [0]  # its offset has moved
        assert [asked(each) for each in later[1:]] == [[]] * len(later[1:])
        assert [told(each) for each in later[1:]] == [[]] * len(later[1:])
        produce(kafka.bootstrap_servers, "t", ["new"], partition=1)
        poll(consumer, 1)
        news = log.of(ApiKey.FETCH)[1 + len(later) :]
        assert [told(each) for each in news if told(each)] == [[1]]
        consumer.assign([first])
        deadline = time.monotonic() + TIMEOUT_S
        while not any(forgotten(each) == [1] for each in log.of(ApiKey.FETCH)):
            assert time.monotonic() < deadline
            consumer.poll(20)


def forget_sessions(cluster: CoreCluster) -> None:
    for broker in cluster.brokers.values():
        broker.fetch_sessions._sessions.clear()


def confuse_sessions(cluster: CoreCluster) -> None:
    for broker in cluster.brokers.values():
        for session in broker.fetch_sessions._sessions.values():
            session.epoch += 100


@pytest.mark.covers("S135")
@pytest.mark.parametrize(
    ("disturb", "error"), [(forget_sessions, 70), (confuse_sessions, 71)], ids=["lost", "epoch"]
)
@one_broker
def test_a_session_that_fails_is_followed_by_a_full_fetch(
    kafka: Cluster, log: RequestLog, disturb: Any, error: int
) -> None:
    """FETCH_SESSION_ID_NOT_FOUND or INVALID_FETCH_SESSION_EPOCH; no record is lost by it."""
    produce(kafka.bootstrap_servers, "t", TEN, partition=0)
    with open_consumer(kafka) as consumer:
        consumer.assign([TopicPartition("t", 0)])
        poll(consumer, 10)
        wait_for_fetches(consumer, log, 3)
        kafka.call(disturb)
        produce(kafka.bootstrap_servers, "t", ["new"], partition=0)
        assert [record.value for record in poll(consumer, 1)] == [b"new"]
        fetches = poll_until_full(consumer, log)
    answers = [each.response.error_code for each in fetches]
    assert answers.count(error) == 1
    after = fetches[answers.index(error) + 1]
    assert (after.request.session_epoch, asked(after)) == (0, [0])


def poll_until_full(consumer: KafkaConsumer, log: RequestLog) -> list[Exchange]:
    """Poll until the second full Fetch has been answered; returns all Fetches."""
    deadline = time.monotonic() + TIMEOUT_S
    while [each.request.session_epoch for each in log.of(ApiKey.FETCH)].count(0) < 2:
        assert time.monotonic() < deadline
        consumer.poll(20)
    return log.of(ApiKey.FETCH)


# -- what is asked ---------------------------------------------------------------------------------


@pytest.mark.covers("S142")
@pytest.mark.parametrize(("isolation", "level"), [(None, 0), ("read_committed", 1)])
def test_kafka_python_reads_uncommitted_unless_told_otherwise(
    kafka: Cluster, log: RequestLog, isolation: str | None, level: int
) -> None:
    """Plain records are the same under both."""
    produce(kafka.bootstrap_servers, "t", TEN, partition=0)
    with open_consumer(kafka, **({"isolation_level": isolation} if isolation else {})) as consumer:
        consumer.assign([TopicPartition("t", 0)])
        assert [record.value.decode() for record in poll(consumer, 10)] == TEN
    asked = log.of(ApiKey.FETCH, ApiKey.LIST_OFFSETS)
    assert {each.request.isolation_level for each in asked} == {level}


@pytest.mark.covers("S141")
@one_broker
def test_one_fetch_may_serve_several_polls(kafka: Cluster, log: RequestLog) -> None:
    """2,000 records wait; the broker sends them at once, the client hands out 500 each time."""
    sent = map(str, range(2000))
    produce(kafka.bootstrap_servers, "t", sent, batch_num_messages=2000, linger_ms=500)
    with open_consumer(kafka, max_poll_records=500) as consumer:
        consumer.assign([TopicPartition("t", 0)])
        sizes: list[int] = []
        while sum(sizes) < 2000:
            batches = consumer.poll(10_000)
            assert batches
            sizes.append(sum(map(len, batches.values())))
    assert sizes == [500, 500, 500, 500]
    assert len([each for each in log.of(ApiKey.FETCH) if told(each) and records_of(each)]) == 1


def records_of(fetch: Exchange) -> int:
    """How many bytes of records an answer carries."""
    return sum(
        sum(map(len, part.records or ()))
        for topic in fetch.response.responses
        for part in topic.partitions
    )


# -- groups ----------------------------------------------------------------------------------------


@pytest.mark.covers("S124", "S132")
def test_a_member_joins_when_it_is_polled_and_not_before(kafka: Cluster, log: RequestLog) -> None:
    """As in Java: subscribe() alone sends nothing to the coordinator."""
    produce(kafka.bootstrap_servers, "t", TEN, partition=0)
    with open_consumer(kafka, group_id="g", client_id="member") as consumer:
        subscribe(consumer, "t")
        assert not {ApiKey.FIND_COORDINATOR, ApiKey.JOIN_GROUP} & {each.api for each in log.of()}
        poll(consumer, 10)
        commit(consumer)
    order: list[ApiKey] = []
    for each in log.of(client_id="member"):
        if each.api not in order:
            order.append(each.api)
    expected = [
        ApiKey.API_VERSIONS,
        ApiKey.METADATA,
        ApiKey.FIND_COORDINATOR,
        ApiKey.JOIN_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.OFFSET_FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.FETCH,
        ApiKey.OFFSET_COMMIT,
        ApiKey.LEAVE_GROUP,
    ]
    assert [api for api in order if api in expected] == expected
    first, second, *_ = log.of(ApiKey.JOIN_GROUP, client_id="member")
    assert (first.request.member_id, first.response.error_code) == ("", 79)
    assert second.request.member_id == first.response.member_id


@pytest.mark.covers("S323", "S330")
def test_the_longest_rebalance_timeout_does_not_overflow(kafka: Cluster, log: RequestLog) -> None:
    """max.poll.interval.ms of 2147483647, as Kafka Streams sets it."""
    with open_consumer(kafka, group_id="g", max_poll_interval_ms=2**31 - 1) as consumer:
        subscribe(consumer, "t")
        settle(consumer)
    *_, join = log.of(ApiKey.JOIN_GROUP)
    assert join.request.rebalance_timeout_ms == 2**31 - 1
    for each in join.request.protocols:
        assert decode_subscription(each.metadata).topics == ["t"]


@pytest.mark.covers("S164")
def test_unusable_settings_are_refused_before_a_request_is_sent(
    kafka: Cluster, log: RequestLog
) -> None:
    """No group, no subscription, a topic that cannot be, no assignor."""
    with open_consumer(kafka) as consumer:
        before = len(log.of())
        with pytest.raises(Exception, match="group_id"):
            consumer.commit()
        with pytest.raises(Exception, match=r"[Tt]opic"):
            consumer.subscribe(["not a topic"])
        with pytest.raises(TypeError):
            consumer.subscribe([None])
        with refused_client() as held, pytest.raises(Exception, match=r"strateg|assignor"):
            KafkaConsumer(
                "t",
                bootstrap_servers=kafka.bootstrap_servers,
                group_id="g",
                partition_assignment_strategy=[],
                **held,
            ).poll(100)
        assert {each.api for each in log.of()[before:]} <= {ApiKey.API_VERSIONS, ApiKey.METADATA}
