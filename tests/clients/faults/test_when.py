"""Which of the matching requests a rule fires for, as a client sees it."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicPartition

from mockbroker import Cluster
from tests.support.faulty import impatient_consumer, open_producer, send, stored, warm
from tests.support.librdkafka import admin_client

REFUSED = "INVALID_RECORD"  # not to be retried


def refused(kafka: Cluster, topic: str, when: dict[str, object], count: int) -> list[int]:
    """The numbers, from 1, of the records that are refused."""
    kafka.faults.add({"seed": 3, "rules": [rule(topic, when)]})
    delivery = send(open_producer(kafka), topic, *(str(n) for n in range(1, count + 1)))
    return [n for n, m in enumerate(delivery.messages, 1) if m.error() is not None]


def rule(topic: str, when: dict[str, object], **match: object) -> dict[str, object]:
    return {
        "match": {"api": "Produce", "topic": topic, **match},
        "when": when,
        "do": {"error": REFUSED},
    }


@pytest.mark.fault("skip", "times", "nth", "every")
@pytest.mark.parametrize(
    ("when", "numbers"),
    [
        ({"skip": 2}, [3, 4, 5, 6]),
        ({"skip": 1, "times": 2}, [2, 3]),
        ({"nth": 3}, [3]),
        ({"nth": [1, 4]}, [1, 4]),
        ({"every": 2}, [2, 4, 6]),
        ({"skip": 1, "every": 2, "times": 1}, [3]),
    ],
)
def test_by_number(kafka: Cluster, topic: str, when: dict[str, object], numbers: list[int]) -> None:
    assert refused(kafka, topic, when, 6) == numbers


@pytest.mark.fault("probability")
def test_by_chance_which_the_seed_repeats(kafka: Cluster, topic: str) -> None:
    first = refused(kafka, topic, {"probability": 0.5}, 20)
    kafka.faults.clear()
    assert refused(kafka, topic, {"probability": 0.5}, 20) == first
    assert 0 < len(first) < 20


@pytest.mark.fault("from", "until")
def test_by_the_cluster_clock(kafka: Cluster, topic: str) -> None:
    kafka.clock.freeze()
    producer = open_producer(kafka)
    warm(producer, topic)
    kafka.faults.add(rule(topic, {"from": "5s", "until": "10s"}))
    try:
        assert send(producer, topic, "before").errors == []
        kafka.clock.advance("5s")
        assert len(send(producer, topic, "within").errors) == 1
        kafka.clock.advance("5s")
        assert send(producer, topic, "after").errors == []
    finally:
        kafka.clock.thaw()
    assert stored(kafka, topic) == ["warm", "before", "after"]


@pytest.mark.fault("after_offset", "after_records")
@pytest.mark.parametrize("when", [{"after_offset": 3}, {"after_records": 2}])
def test_by_what_the_log_holds(kafka: Cluster, topic: str, when: dict[str, object]) -> None:
    """Of three offsets one was there before the rule."""
    producer = open_producer(kafka)
    warm(producer, topic)
    kafka.faults.add(rule(topic, when))
    delivery = send(producer, topic, "1", "2", "3")
    assert [m.error() is None for m in delivery.messages] == [True, True, False]


@pytest.mark.fault("state")
def test_by_the_state_of_a_broker(kafka: Cluster, topic: str) -> None:
    producer = open_producer(kafka)
    warm(producer, topic)
    kafka.faults.add(rule(topic, {"state": {"broker": {"node": 3, "state": "paused"}}}))
    assert send(producer, topic, "1").errors == []
    kafka.act("pause_broker", node=3)
    assert len(send(producer, topic, "2").errors) == 1
    kafka.act("resume_broker", node=3)
    assert send(producer, topic, "3").errors == []


@pytest.mark.fault("barrier")
def test_by_what_another_rule_has_done(kafka: Cluster, topic: str) -> None:
    kafka.faults.add(
        {
            "rules": [
                {
                    "name": "first-two",
                    "match": {"api": "Produce", "topic": topic, "partition": 0},
                    "do": {"observe": {}},
                    "priority": -1,
                },
                {**rule(topic, {"barrier": {"rule": "first-two", "hits": 2}})},
            ]
        }
    )
    producer = open_producer(kafka)
    delivery = send(producer, topic, "1", "2", "3")
    assert [m.error() is None for m in delivery.messages] == [True, True, False]


@pytest.mark.fault("step")
def test_by_the_step_of_a_scenario(kafka: Cluster, group: str, topic: str) -> None:
    """Commits are refused once the first record was produced, until the next one was."""
    commit = {"api": "OffsetCommit", "group": group}
    kafka.faults.add(
        {
            "name": "story",
            "rules": [
                {
                    "match": {"api": "Produce", "topic": topic},
                    "when": {"step": {"at": "start", "then": "refusing"}},
                    "do": {"observe": {}},
                },
                {
                    "match": commit,
                    "when": {"step": "refusing"},
                    "do": {"error": "INVALID_GROUP_ID"},
                },
                {
                    "match": {"api": "Produce", "topic": topic, "where": {"acks": 1}},
                    "when": {"step": {"at": "refusing", "then": "over"}},
                    "do": {"observe": {}},
                },
            ],
        }
    )
    where = [TopicPartition(topic, 0, 1)]

    def commits() -> bool:
        try:
            consumer.commit(offsets=where, asynchronous=False)
        except Exception:
            return False
        return True

    with impatient_consumer(kafka, group_id=group) as consumer:
        assert commits()
        send(open_producer(kafka), topic, "1")
        assert not commits()
        send(open_producer(kafka, acks=1), topic, "2")
        assert commits()


@pytest.mark.fault("timeline")
def test_a_timeline_runs_on_the_cluster_clock(kafka: Cluster, topic: str) -> None:
    """A leader that is dropped, and is elected again later; a consumer of time sees both."""
    kafka.clock.freeze()
    try:
        kafka.faults.add(
            {
                "timeline": [
                    {"at": "5s", "do": {"drop_leader": {"topic": topic, "partition": 0}}},
                    {
                        "at": "9s",
                        "do": {"elect_unclean": {"topic": topic, "partition": 0, "node": 2}},
                    },
                ]
            }
        )
        client = admin_client(kafka.bootstrap_servers)

        def leader() -> int:
            return int(client.list_topics(topic, 20).topics[topic].partitions[0].leader)

        assert leader() == 1
        kafka.clock.advance("5s")
        assert leader() == -1
        kafka.clock.advance("4s")
        assert leader() == 2
    finally:
        kafka.clock.thaw()


@pytest.mark.fault("timeline")
def test_a_timeline_may_begin_with_the_hit_of_a_rule(kafka: Cluster, topic: str) -> None:
    kafka.clock.freeze()
    try:
        kafka.faults.add(
            {
                "rules": [{"name": "seen", **rule(topic, {"times": 1})}],
                "timeline": [
                    {
                        "after": "seen",
                        "at": "2s",
                        "do": {"move_leader": {"topic": topic, "partition": 0, "node": 3}},
                    }
                ],
            }
        )
        kafka.clock.advance("10s")
        producer = open_producer(kafka)
        assert len(send(producer, topic, "refused").errors) == 1
        kafka.clock.advance("2s")
        assert kafka.call(lambda c: c.topics[topic].partitions[0].leader_id) == 3
    finally:
        kafka.clock.thaw()


@pytest.mark.fault("do an action")
def test_a_rule_may_act_on_the_cluster(kafka: Cluster, topic: str) -> None:
    """The work is done, the answer is lost, and the leader has moved: all by one rule."""
    producer = open_producer(kafka, enable_idempotence=True)
    warm(producer, topic)
    kafka.faults.add(
        match={"api": "Produce", "topic": topic},
        when={"times": 1},
        do={
            "drop_reply": "reset",
            "move_leader": {"topic": topic, "partition": 0, "node": 2},
        },
    )
    assert send(producer, topic, "x").errors == []
    assert stored(kafka, topic) == ["warm", "x"]
    assert kafka.call(lambda c: c.topics[topic].partitions[0].leader_id) == 2
