"""Errors that a broker answers: before anything is applied, after it, for some, for single
records; and answers whose fields say something else.
"""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from mockbroker import Cluster
from tests.support.faulty import impatient_consumer, open_producer, send, stored, warm
from tests.support.librdkafka import TIMEOUT_S, flush, poll, until, values


@pytest.mark.fault("error")
def test_an_error_that_may_be_retried_is(kafka: Cluster, topic: str) -> None:
    producer = open_producer(kafka)
    warm(producer, topic)
    rule = kafka.faults.add(
        match={"api": "Produce", "topic": topic},
        when={"times": 2},
        do={"error": "NOT_LEADER_OR_FOLLOWER"},
    )
    delivery = send(producer, topic, "x")
    assert delivery.errors == []
    assert rule.hits == 2
    assert rule.left == 0
    assert stored(kafka, topic) == ["warm", "x"]


@pytest.mark.fault("error")
def test_an_error_of_one_partition_leaves_the_others_alone(kafka: Cluster, topic: str) -> None:
    producer = open_producer(kafka)
    warm(producer, topic, 0, 1)
    kafka.faults.add(
        match={"api": "Produce", "topic": topic, "partition": 1},
        do={"error": {"code": "INVALID_RECORD", "message": "not this one"}},
    )
    good = send(producer, topic, "good", partition=0)
    bad = send(producer, topic, "bad", partition=1)
    assert good.errors == []
    assert [error.name() for error in bad.errors] == ["INVALID_RECORD"]
    assert stored(kafka, topic) == ["warm", "good", "warm"]


@pytest.mark.fault("error")
def test_an_error_at_the_top_level(kafka: Cluster, group: str, topic: str) -> None:
    """A group that nobody may join."""
    kafka.faults.add(
        match={"api": "JoinGroup", "group": group}, do={"error": "GROUP_AUTHORIZATION_FAILED"}
    )
    with impatient_consumer(kafka, group_id=group) as consumer:
        consumer.subscribe([topic])
        with pytest.raises(KafkaException) as raised:
            poll(consumer, 1)
    assert raised.value.args[0].code() == KafkaError.GROUP_AUTHORIZATION_FAILED


@pytest.mark.fault("error")
def test_an_error_of_one_partition_of_an_incremental_fetch(kafka: Cluster, topic: str) -> None:
    """The session fetches both partitions without naming them; only one is in trouble."""
    with impatient_consumer(kafka) as consumer:
        producer = open_producer(kafka)
        warm(producer, topic, 0, 1)
        consumer.assign([TopicPartition(topic, 0, 0), TopicPartition(topic, 1, 0)])
        assert len(poll(consumer, 2)) == 2
        rule = kafka.faults.add(
            match={"api": "Fetch", "topic": topic, "partition": 1},
            do={"error": "KAFKA_STORAGE_ERROR"},
        )
        rule.wait()
        send(producer, topic, "blocked", partition=1)
        send(producer, topic, "free", partition=0)
        assert values(poll(consumer, 1)) == ["free"]
        rule.remove()
        assert values(poll(consumer, 1)) == ["blocked"]


@pytest.mark.fault("error_after")
def test_an_error_after_the_work_was_done(kafka: Cluster, topic: str) -> None:
    """A plain producer takes it for a failure and writes again."""
    producer = open_producer(kafka)
    warm(producer, topic)
    kafka.faults.add(
        match={"api": "Produce", "topic": topic},
        when={"times": 1},
        do={"error_after": "REQUEST_TIMED_OUT"},
    )
    assert send(producer, topic, "x").errors == []
    assert stored(kafka, topic) == ["warm", "x", "x"]


@pytest.mark.fault("error_after")
def test_a_commit_that_was_applied_though_the_answer_says_it_failed(
    kafka: Cluster, group: str, topic: str
) -> None:
    with impatient_consumer(kafka, group_id=group) as consumer:
        rule = kafka.faults.add(
            match={"api": "OffsetCommit", "group": group},
            when={"times": 1},
            do={"error_after": "INVALID_COMMIT_OFFSET_SIZE"},
        )
        with pytest.raises(KafkaException) as raised:
            consumer.commit(offsets=[TopicPartition(topic, 0, 42)], asynchronous=False)
        assert raised.value.args[0].code() == KafkaError.INVALID_COMMIT_OFFSET_SIZE
        assert rule.hits == 1
        [committed] = consumer.committed([TopicPartition(topic, 0)], TIMEOUT_S)
        assert committed.offset == 42


@pytest.mark.fault("record_errors")
def test_single_records_are_refused_and_their_batch_with_them(kafka: Cluster, topic: str) -> None:
    """Nothing of the batch is stored (KIP-467); what comes later is."""
    producer = open_producer(kafka, linger_ms=200)
    warm(producer, topic)
    kafka.faults.add(
        match={"api": "Produce", "topic": topic},
        when={"times": 1},
        do={"record_errors": {"records": [1], "message": "no such customer"}},
    )
    errors = []
    for value in ("a", "b", "c"):
        producer.produce(topic, value, partition=0, on_delivery=lambda e, _: errors.append(e))
    flush(producer)
    assert {error.name() for error in errors if error is not None} == {"INVALID_RECORD"}
    assert "b" not in stored(kafka, topic)
    assert send(producer, topic, "later").errors == []


@pytest.mark.fault("rewrite")
def test_fields_of_an_answer_are_written_anew(kafka: Cluster, topic: str) -> None:
    """Only those of the partitions that the rule is for."""
    kafka.faults.add(
        match={"api": "ListOffsets", "topic": topic, "partition": 1},
        do={"rewrite": {"answer": {"topics[].partitions[].offset": 4711}}},
    )
    with impatient_consumer(kafka) as consumer:
        assert consumer.get_watermark_offsets(TopicPartition(topic, 1), TIMEOUT_S)[1] == 4711
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0), TIMEOUT_S) == (0, 0)


@pytest.mark.fault("rewrite")
def test_fields_of_a_request_are_written_anew(kafka: Cluster, group: str, topic: str) -> None:
    kafka.faults.add(
        match={"api": "OffsetCommit", "group": group},
        do={"rewrite": {"request": {"topics[].partitions[].committed_offset": 7}}},
    )
    with impatient_consumer(kafka, group_id=group) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, 42)], asynchronous=False)
        [committed] = consumer.committed([TopicPartition(topic, 0)], TIMEOUT_S)
        assert committed.offset == 7


@pytest.mark.fault("observe")
def test_a_rule_may_only_look(kafka: Cluster, topic: str) -> None:
    """It counts, says who it was, and why it has not fired while it has not."""
    rule = kafka.faults.add(
        match={"api": "Produce", "topic": topic, "client_id": "loader-*"}, do={"observe": None}
    )
    stranger = open_producer(kafka, client_id="stranger")
    warm(stranger, topic)
    assert rule.hits == 0
    assert "client_id" in str(rule.why())
    send(open_producer(kafka, client_id="loader-7"), topic, "x")
    rule.wait()
    assert rule.hits == 1
    assert stored(kafka, topic) == ["warm", "x"]


@pytest.mark.fault("state")
def test_a_rule_that_waits_for_a_group_to_be_stable(kafka: Cluster, group: str, topic: str) -> None:
    """Heartbeats fail once the group is stable; the member joins again."""
    joins = kafka.faults.add(match={"api": "JoinGroup", "group": group}, do={"observe": {}})
    rule = kafka.faults.add(
        match={"api": "SyncGroup", "group": group},
        when={"state": {"group": {"id": group, "state": "Stable"}}, "times": 1},
        do={"error": "UNKNOWN_MEMBER_ID"},
    )
    with impatient_consumer(kafka, group_id=group, heartbeat_interval_ms=100) as consumer:
        consumer.subscribe([topic])
        until(lambda: bool(consumer.assignment()), consumer)
        assert rule.hits == 0
        assert "state" in str(rule.why())
        assert joins.hits >= 1
