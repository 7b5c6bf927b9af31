"""Logs, topics, groups, transactions, ACLs and quotas in the hands of a rule."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from mockbroker import Cluster
from mockbroker.core.errors import ActionError
from tests.support.faulty import impatient_consumer, open_producer, send, stored, warm
from tests.support.librdkafka import TIMEOUT_S, admin_client, owned, poll, settings, until, values
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    configs = {
        "group.min.session.timeout.ms": "100",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with Cluster(brokers=3, configs=configs) as running:
        yield running


# -- logs and topics -------------------------------------------------------------------------------


@pytest.mark.fault("delete_records")
def test_the_log_start_moves_on(kafka: Cluster, topic: str) -> None:
    send(open_producer(kafka), topic, "a", "b", "c")
    kafka.act("delete_records", topic=topic, partition=0, before_offset=2)
    with impatient_consumer(kafka) as consumer:
        where = TopicPartition(topic, 0, 0)
        assert consumer.get_watermark_offsets(where, TIMEOUT_S) == (2, 3)
        consumer.assign([where])
        assert values(poll(consumer, 1)) == ["c"]


@pytest.mark.fault("run_retention")
def test_retention_runs_now(kafka: Cluster, group: str) -> None:
    kafka.topic(group).create(configs={"retention.bytes": "1", "segment.bytes": "1048576"})
    producer = open_producer(kafka)
    for value in ("x" * 600_000, "y" * 600_000, "z"):
        send(producer, group, value)
    kafka.act("run_retention", group)
    with impatient_consumer(kafka) as consumer:
        assert consumer.get_watermark_offsets(TopicPartition(group, 0), TIMEOUT_S)[0] > 0


@pytest.mark.fault("run_compaction")
def test_compaction_runs_now(kafka: Cluster, group: str) -> None:
    kafka.topic(group).create(configs={"cleanup.policy": "compact"})
    producer = open_producer(kafka)
    for value in ("old", "new"):
        producer.produce(group, value, key="k", partition=0)
        assert producer.flush(TIMEOUT_S) == 0
    kafka.act("run_compaction", topic=group)
    wait_until(lambda: stored(kafka, group) == ["new"])
    with impatient_consumer(kafka) as consumer:
        consumer.assign([TopicPartition(group, 0, 0)])
        assert values(poll(consumer, 1)) == ["new"]


@pytest.mark.fault("recreate_topic")
def test_a_topic_is_made_anew_under_another_id(kafka: Cluster, topic: str) -> None:
    producer = open_producer(kafka)
    warm(producer, topic, 0, 1)
    before = kafka.call(lambda c: c.topics[topic].topic_id)
    kafka.act("recreate_topic", topic)
    assert kafka.call(lambda c: c.topics[topic].topic_id) != before
    with impatient_consumer(kafka) as consumer:
        for partition in (0, 1):
            where = TopicPartition(topic, partition)
            assert consumer.get_watermark_offsets(where, TIMEOUT_S) == (0, 0)


# -- groups ----------------------------------------------------------------------------------------


class Members:
    """Consumers of a group that note when they get partitions and when they lose them."""

    def __init__(self, kafka: Cluster, group: str, topic: str, *ids: str) -> None:
        self.kafka, self.topic = kafka, topic
        self.log: dict[str, list[str]] = {each: [] for each in ids}
        self.consumers = {
            each: Consumer(
                settings(
                    kafka.bootstrap_servers,
                    group_id=group,
                    client_id=each,
                    heartbeat_interval_ms=50,
                    auto_offset_reset="earliest",
                )
            )
            for each in ids
        }
        for each, consumer in self.consumers.items():
            consumer.subscribe(
                [topic],
                on_assign=self._noting(each, "assigned"),
                on_revoke=self._noting(each, "revoked"),
                on_lost=self._noting(each, "lost"),
            )

    def _noting(self, member: str, what: str) -> Any:
        return lambda _consumer, _partitions: self.log[member].append(what)

    def __enter__(self) -> Members:
        """Returns when each member has read from a partition of its own. One that was only just
        given its partitions is still at it, and has nothing yet that it could lose.

        The records are written once both own a partition: a member that joined first would read
        from both partitions.
        """
        self.until(self.share)
        producer = open_producer(self.kafka)
        for partition in (0, 1):
            send(producer, self.topic, "to be read", partition=partition)
        self.until(
            lambda: all(
                [at.offset for at in each.position(each.assignment())] == [1]
                for each in self.consumers.values()
            )
        )
        return self

    def __exit__(self, *_: object) -> None:
        for each in self.consumers.values():
            each.close()

    def until(self, condition: Any) -> None:
        until(condition, *self.consumers.values())

    def owned(self) -> dict[str, list[int]]:
        return {each: owned(consumer) for each, consumer in self.consumers.items()}

    def share(self) -> bool:
        """Whether both members own one partition each."""
        return sorted(map(len, self.owned().values())) == [1, 1]


@pytest.mark.fault("rebalance_group")
def test_a_group_rebalances_now(kafka: Cluster, group: str, topic: str) -> None:
    with Members(kafka, group, topic, "a", "b") as members:
        generation = generation_of(kafka, group)
        kafka.act("rebalance_group", group)
        members.until(lambda: generation_of(kafka, group) > generation)
        members.until(members.share)
        assert all("revoked" in log or "lost" in log for log in members.log.values())


def generation_of(kafka: Cluster, group: str) -> int:
    def look(cluster: Any) -> int:
        for broker in cluster.brokers.values():
            for shard in broker.groups.shards():
                found = getattr(shard, "groups", {}).get(group)
                if found is not None:
                    return int(found.generation)
        return -1

    return kafka.call(look)


@pytest.mark.fault("expire_member", "kick_member")
@pytest.mark.parametrize("action", ["expire_member", "kick_member"])
def test_a_member_is_sent_away_and_comes_back(
    kafka: Cluster, group: str, topic: str, action: str
) -> None:
    """It learns by its next heartbeat that it is not known any more, and joins as a new one."""
    with Members(kafka, group, topic, "a", "b") as members:
        before = members.consumers["a"].memberid()
        assert len(kafka.act(action, group=group, member="a*") or []) == 1
        members.until(
            lambda: (
                "lost" in members.log["a"]  # told by poll, later than the id is another
                and members.consumers["a"].memberid() not in (before, "")
                and members.share()
            )
        )


@pytest.mark.fault("expire_member", "rebalance_group")
def test_members_of_the_new_protocol_too(kafka: Cluster, group: str, topic: str) -> None:
    config = {"group_protocol": "consumer"}
    consumer = Consumer(settings(kafka.bootstrap_servers, group_id=group, **config))
    lost: list[str] = []
    consumer.subscribe([topic], on_lost=lambda *_: lost.append("lost"))
    until(lambda: owned(consumer) == [0, 1], consumer)
    kafka.act("rebalance_group", group)
    gone = kafka.act("expire_member", group=group)
    assert len(gone) == 1  # type: ignore[arg-type]
    until(lambda: lost != [] and owned(consumer) == [0, 1], consumer)
    consumer.close()


@pytest.mark.fault("fence_instance")
def test_a_static_member_is_fenced(kafka: Cluster, group: str, topic: str) -> None:
    """Another process has its instance id; the one that was there stops for good."""
    fatal: list[KafkaError] = []
    consumer = Consumer(
        settings(
            kafka.bootstrap_servers,
            group_id=group,
            group_instance_id="till-1",
            heartbeat_interval_ms=50,
            error_cb=fatal.append,
        )
    )
    consumer.subscribe([topic])
    until(lambda: bool(owned(consumer)), consumer)
    kafka.act("fence_instance", group=group, instance_id="till-1")

    codes = (KafkaError.FENCED_INSTANCE_ID, KafkaError._FATAL)

    def fenced() -> bool:
        message = consumer.poll(0.05)
        refused = message is not None and message.error() is not None
        return refused or any(error.code() in codes for error in fatal)

    wait_until(fenced, what="the fencing")
    consumer.close()


@pytest.mark.fault("assign_group")
def test_an_assignment_is_set(kafka: Cluster, group: str, topic: str) -> None:
    """Whatever the assignor says: "a" reads everything."""
    with Members(kafka, group, topic, "a", "b") as members:
        kafka.act(
            "assign_group", group=group, assignments={"a*": {topic: [0, 1]}, "b*": {topic: []}}
        )
        members.until(lambda: members.owned() == {"a": [0, 1], "b": []})
        kafka.act("assign_group", group=group, assignments={})
        members.until(members.share)


def committed(consumer: Consumer, where: list[TopicPartition]) -> int:
    """What is committed; -1 while the coordinator cannot say."""
    try:
        return int(consumer.committed(where, TIMEOUT_S)[0].offset)
    except KafkaException:
        return -1


def ask_in_vain(consumer: Consumer, where: list[TopicPartition]) -> None:
    """Ask what is committed and get no answer; the coordinator may not even have been asked."""
    with pytest.raises(KafkaException):
        consumer.committed(where, 0.5)


@pytest.mark.fault("move_coordinator", "unload_coordinator")
def test_a_coordinator_moves_and_loads(kafka: Cluster, group: str, topic: str) -> None:
    """What was committed is there again once it is found, or has read its log."""
    where = [TopicPartition(topic, 0, 3)]

    def leader() -> int:
        return kafka.call(
            lambda c: (
                c.partition("__consumer_offsets", c.find_coordinator_partition(group)).leader_id
            )
        )

    with impatient_consumer(kafka, group_id=group) as consumer:
        consumer.commit(offsets=where, asynchronous=False)
        node = 1 + leader() % 3
        kafka.act("move_coordinator", key=group, node=node)
        assert leader() == node
        wait_until(lambda: committed(consumer, where) == 3, what="the committed offset")
        kafka.clock.freeze()
        try:
            kafka.act("unload_coordinator", key=group, load="5s")
            loading = kafka.faults.add(
                match={"api": "OffsetFetch", "group": group, "broker": node}, do={"observe": {}}
            )

            def is_refused() -> bool:
                ask_in_vain(consumer, where)
                return loading.hits > 0

            wait_until(is_refused, what="the refusal")
            kafka.clock.advance("5s")
        finally:
            kafka.clock.thaw()
        wait_until(lambda: committed(consumer, where) == 3, what="the committed offset")


# -- transactions ----------------------------------------------------------------------------------


def transactional(kafka: Cluster, name: str, **config: Any) -> Producer:
    producer = Producer(
        settings(kafka.bootstrap_servers, transactional_id=name, linger_ms=0, **config)
    )
    producer.init_transactions(TIMEOUT_S)
    return producer


def write(producer: Producer, topic: str, value: str) -> None:
    producer.begin_transaction()
    producer.produce(topic, value, partition=0)
    assert producer.flush(TIMEOUT_S) == 0


@pytest.mark.fault("fence_producer", "expire_transaction")
@pytest.mark.parametrize("action", ["fence_producer", "expire_transaction"])
def test_a_producer_is_fenced(kafka: Cluster, topic: str, group: str, action: str) -> None:
    """By another one, or because its time was up: what it had open is aborted."""
    producer = transactional(kafka, group)
    write(producer, topic, "gone")
    kafka.act(action, group)
    with pytest.raises(KafkaException) as raised:
        producer.commit_transaction(TIMEOUT_S)
    assert raised.value.args[0].code() in (
        KafkaError._FENCED,
        KafkaError.PRODUCER_FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
    )
    follower = transactional(kafka, group)
    write(follower, topic, "kept")
    follower.commit_transaction(TIMEOUT_S)
    with impatient_consumer(kafka, isolation_level="read_committed") as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert values(poll(consumer, 1)) == ["kept"]


@pytest.mark.fault("abort_transaction")
def test_a_transaction_is_aborted_behind_the_producer_s_back(
    kafka: Cluster, topic: str, group: str
) -> None:
    producer = transactional(kafka, group)
    write(producer, topic, "gone")
    kafka.act("abort_transaction", group)
    with pytest.raises(KafkaException):
        producer.commit_transaction(TIMEOUT_S)
    with impatient_consumer(kafka, isolation_level="read_committed") as consumer:
        send(open_producer(kafka), topic, "later")
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert values(poll(consumer, 1)) == ["later"]


@pytest.mark.fault("hang_transaction", "abort_transaction")
def test_a_transaction_hangs(kafka: Cluster, topic: str, group: str) -> None:
    """Its commit is decided and told, and no consumer of committed records gets past it."""
    producer = transactional(kafka, group)
    kafka.act("hang_transaction", group)
    write(producer, topic, "stuck")
    producer.commit_transaction(TIMEOUT_S)
    with impatient_consumer(kafka, isolation_level="read_committed") as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert consumer.poll(0.3) is None
        kafka.act("hang_transaction", transactional_id=group, release=True)
        assert values(poll(consumer, 1)) == ["stuck"]


@pytest.mark.fault("abort_transaction")
def test_what_hangs_in_one_partition_is_ended_there(kafka: Cluster, topic: str, group: str) -> None:
    producer = transactional(kafka, group)
    write(producer, topic, "stuck")
    producer_id = kafka.call(
        lambda c: next(iter(c.topics[topic].partitions[0].log.producers.entries))
    )
    send(open_producer(kafka), topic, "behind")
    kafka.act("abort_transaction", producer_id=producer_id, topic=topic, partition=0)
    with impatient_consumer(kafka, isolation_level="read_committed") as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert values(poll(consumer, 1)) == ["behind"]


@pytest.mark.fault("hold_last_stable_offset")
def test_the_last_stable_offset_is_held(kafka: Cluster, topic: str) -> None:
    producer = open_producer(kafka)
    warm(producer, topic)
    kafka.act("hold_last_stable_offset", topic=topic, partition=0)
    send(producer, topic, "beyond")
    with impatient_consumer(kafka, isolation_level="read_committed") as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        assert values(poll(consumer, 1)) == ["warm"]
        assert consumer.poll(0.3) is None
        kafka.act("hold_last_stable_offset", topic=topic, partition=0, release=True)
        assert values(poll(consumer, 1)) == ["beyond"]


# -- who may do what, and how much -----------------------------------------------------------------


@pytest.mark.fault("revoke_acl")
def test_a_right_is_taken_back_while_a_client_runs(kafka: Cluster, topic: str) -> None:
    """Of what has an ACL nobody else may do anything."""
    from confluent_kafka.admin import (
        AclBinding,
        AclOperation,
        AclPermissionType,
        ResourcePatternType,
        ResourceType,
    )

    admin = admin_client(kafka.bootstrap_servers)
    for principal in ("User:ANONYMOUS", "User:somebody"):
        binding = AclBinding(
            ResourceType.TOPIC,
            topic,
            ResourcePatternType.LITERAL,
            principal,
            "*",
            AclOperation.ALL,
            AclPermissionType.ALLOW,
        )
        admin.create_acls([binding])[binding].result(TIMEOUT_S)
    producer = open_producer(kafka)
    warm(producer, topic)
    removed = kafka.act("revoke_acl", principal="User:ANONYMOUS", resource_name=topic)
    assert removed == 1
    errors = send(producer, topic, "x").errors
    assert [e.code() for e in errors] == [KafkaError.TOPIC_AUTHORIZATION_FAILED]


@pytest.mark.fault("set_quota")
def test_a_quota_changes_while_a_client_runs(kafka: Cluster, topic: str) -> None:
    """The client is told to wait from then on."""
    told: list[float] = []
    producer = open_producer(
        kafka, client_id="greedy", throttle_cb=lambda event: told.append(event.throttle_time)
    )
    warm(producer, topic)
    assert told == []
    kafka.act("set_quota", client_id="greedy", key="producer_byte_rate", value=1000)
    send(producer, topic, "x" * 20_000)
    wait_until(lambda: producer.poll(0.02) is not None and bool(told), what="the throttling")
    kafka.act("set_quota", client_id="greedy", key="producer_byte_rate")


# -- configs and internal topics -------------------------------------------------------------------


@pytest.mark.fault("alter_configs")
def test_configs_change_and_a_client_sees_it(kafka: Cluster, topic: str) -> None:
    kafka.act("alter_configs", kind="topic", name=topic, configs={"max.message.bytes": "100"})
    delivery = send(open_producer(kafka), topic, "x" * 200)
    assert [error.code() for error in delivery.errors] == [KafkaError.MSG_SIZE_TOO_LARGE]
    kafka.act("alter_configs", kind="topic", name=topic, configs={"max.message.bytes": None})
    send(open_producer(kafka), topic, "x" * 200)


@pytest.mark.fault("alter_configs")
def test_configs_of_all_brokers_and_of_one_that_does_not_exist(kafka: Cluster, topic: str) -> None:
    kafka.act("alter_configs", kind="broker", name="", configs={"message.max.bytes": "100"})
    delivery = send(open_producer(kafka), topic, "x" * 200)
    assert [error.code() for error in delivery.errors] == [KafkaError.MSG_SIZE_TOO_LARGE]
    kafka.act("alter_configs", kind="broker", name="", configs={"message.max.bytes": None})
    send(open_producer(kafka), topic, "x" * 200)
    with pytest.raises(ActionError, match="there is no broker '9'"):
        kafka.alter_configs("broker", "9", {"num.partitions": "3"})


@pytest.mark.fault("create_internal_topics")
def test_internal_topics_are_there_before_a_client_asks() -> None:
    with Cluster(brokers=1) as kafka:
        kafka.act("create_internal_topics")
        with impatient_consumer(kafka) as consumer:
            found = consumer.list_topics(timeout=TIMEOUT_S).topics
        assert {"__consumer_offsets", "__transaction_state"} <= found.keys()
