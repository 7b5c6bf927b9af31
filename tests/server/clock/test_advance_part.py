"""Advancing the clock of one part of a cluster: the others keep their time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from mockbroker import Cluster
from mockbroker.core.validation import ValidationError
from tests.support.librdkafka import TIMEOUT_S, flush, produce, settings
from tests.support.waiting import wait_until


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    """A cluster whose time stands still unless a test moves it."""
    with Cluster(brokers=1, topics={"orders": 1, "bills": 1}) as cluster:
        cluster.clock.freeze()
        yield cluster


def reader(kafka: Cluster, group: str) -> Consumer:
    """A member of a group that has its assignment, and does not soon send a heartbeat."""
    options = settings(kafka.bootstrap_servers, group_id=group, heartbeat_interval_ms=40_000)
    found = Consumer(options)
    found.subscribe(["orders"])
    wait_until(lambda: found.poll(0.05) is None and bool(found.assignment()))
    return found


def members(kafka: Cluster, group: str) -> int:
    return kafka.call(
        lambda cluster: sum(
            len(shard.groups[group].members)
            for shard in cluster.brokers[1].groups.shards()
            if group in shard.groups
        )
    )


def committed(kafka: Cluster, group: str) -> int:
    """The offset that a group has committed for the first partition of `orders`, or -1001."""
    consumer = Consumer(settings(kafka.bootstrap_servers, group_id=group))
    try:
        [found] = consumer.committed([TopicPartition("orders", 0)], TIMEOUT_S)
        return found.offset
    finally:
        consumer.close()


def commit(kafka: Cluster, group: str, offset: int) -> None:
    consumer = Consumer(settings(kafka.bootstrap_servers, group_id=group))
    consumer.commit(offsets=[TopicPartition("orders", 0, offset)], asynchronous=False)
    consumer.close()


# ------------------------------------------------------------------------------------- retention


def test_records_age_and_nothing_else_does(kafka: Cluster) -> None:
    produce(kafka.bootstrap_servers, "orders", ["a", "b"])
    client = reader(kafka, "readers")
    before_ms = kafka.clock.now_ms
    kafka.clock.advance("8d", only="retention", extend_sessions=False)
    assert kafka.records("orders") == []
    assert kafka.clock.now_ms == before_ms
    assert members(kafka, "readers") == 1
    client.close()


def test_what_passes_adds_up_for_the_records_that_were_there(kafka: Cluster) -> None:
    produce(kafka.bootstrap_servers, "orders", ["old"])
    kafka.clock.advance("4d", only="retention")
    produce(kafka.bootstrap_servers, "bills", ["new"])
    kafka.clock.advance("4d", only="retention")
    assert kafka.records("orders") == []
    assert [record.value for record in kafka.records("bills")] == [b"new"]


def test_what_is_left_expires_earlier_on_the_clusters_own_clock(kafka: Cluster) -> None:
    produce(kafka.bootstrap_servers, "orders", ["a"])
    kafka.clock.advance("6d", only="retention")
    kafka.clock.advance("23h")
    assert len(kafka.records("orders")) == 1
    kafka.clock.advance("2h")
    assert kafka.records("orders") == []


# ------------------------------------------------------------------------------------ compaction


def compacted(kafka: Cluster) -> list[tuple[bytes | None, bytes | None]]:
    """Keys and values of what is left in `latest` after a compaction."""
    kafka.topic("latest").run_compaction()
    return [(record.key, record.value) for record in kafka.records("latest")]


def write(kafka: Cluster, *records: tuple[str, str | None]) -> None:
    producer = Producer(settings(kafka.bootstrap_servers))
    for key, value in records:
        producer.produce("latest", value, key=key)
    flush(producer)


def test_tombstones_go_after_their_time_to_the_cleaner(kafka: Cluster) -> None:
    configs = {"cleanup.policy": "compact", "delete.retention.ms": "60000"}
    kafka.topic("latest").create(configs=configs)
    write(kafka, ("a", "1"), ("a", None), ("b", "1"))
    before_ms = kafka.clock.now_ms
    assert compacted(kafka) == [(b"a", None), (b"b", b"1")]
    kafka.clock.advance("59s", only="compaction")
    assert compacted(kafka) == [(b"a", None), (b"b", b"1")]
    kafka.clock.advance("2s", only="compaction")
    assert compacted(kafka) == [(b"b", b"1")]
    assert kafka.clock.now_ms == before_ms


def test_records_outgrow_the_compaction_lag_that_were_there(kafka: Cluster) -> None:
    configs = {"cleanup.policy": "compact", "min.compaction.lag.ms": "3600000"}
    kafka.topic("latest").create(configs=configs)
    write(kafka, ("a", "1"), ("a", "2"))
    assert len(compacted(kafka)) == 2
    kafka.clock.advance("61m", only="compaction")
    assert compacted(kafka) == [(b"a", b"2")]
    write(kafka, ("b", "1"), ("b", "2"))
    assert len(compacted(kafka)) == 3, "what came later is as young as ever"
    kafka.clock.advance("61m", only="compaction")
    assert compacted(kafka) == [(b"a", b"2"), (b"b", b"2")]


def test_the_cleaner_s_rounds_take_place(kafka: Cluster) -> None:
    configs = {"cleanup.policy": "compact", "segment.bytes": "1048576"}
    kafka.topic("latest").create(configs=configs)
    for _ in range(3):
        write(kafka, ("a", "x" * 600_000))
    kafka.clock.advance("15s", only="compaction")
    assert len(kafka.records("latest")) == 2, "of two closed segments one record is left"


# ---------------------------------------------------------------------------------------- groups


def test_the_sessions_of_one_group_end_and_those_of_another_do_not(kafka: Cluster) -> None:
    one, two = reader(kafka, "one"), reader(kafka, "two")
    kafka.clock.advance("44s", only="group:one", extend_sessions=False)
    assert (members(kafka, "one"), members(kafka, "two")) == (1, 1)
    kafka.clock.advance("2s", only="group:one", extend_sessions=False)
    assert (members(kafka, "one"), members(kafka, "two")) == (0, 1)
    another = reader(kafka, "one")
    kafka.clock.advance("44s", only="group:one", extend_sessions=False)
    assert members(kafka, "one") == 1, "what begins afterwards lasts as long as ever"
    for client in (one, two, another):
        client.close()


def test_connected_members_are_spared_here_too(kafka: Cluster) -> None:
    client = reader(kafka, "readers")
    for part in ("group:readers", "groups"):
        kafka.clock.advance("1h", only=part)
        assert members(kafka, "readers") == 1
    client.close()


def test_the_sessions_of_all_groups_end(kafka: Cluster) -> None:
    clients = [reader(kafka, "one"), reader(kafka, "two")]
    kafka.clock.advance("46s", only="groups", extend_sessions=False)
    assert (members(kafka, "one"), members(kafka, "two")) == (0, 0)
    for client in clients:
        client.close()


def test_the_offsets_of_one_group_outlive_their_retention(kafka: Cluster) -> None:
    commit(kafka, "one", 5)
    commit(kafka, "two", 6)
    kafka.clock.advance("8d", only="group:one")
    assert (committed(kafka, "one"), committed(kafka, "two")) == (-1001, 6)


def test_a_commit_is_as_new_as_ever_in_a_group_that_is_ahead(kafka: Cluster) -> None:
    commit(kafka, "one", 5)
    kafka.clock.advance("6d", only="group:one")
    commit(kafka, "one", 7)
    kafka.clock.advance("6d", only="group:one")
    assert committed(kafka, "one") == 7
    kafka.clock.advance("2d", only="groups")
    assert committed(kafka, "one") == -1001


def test_a_group_keeps_its_time_when_its_coordinator_reads_the_log_anew(kafka: Cluster) -> None:
    commit(kafka, "one", 5)
    kafka.clock.advance("6d", only="group:one")
    kafka.broker(1).stop()
    kafka.broker(1).start()
    kafka.clock.advance("2d", only="group:one")
    assert committed(kafka, "one") == -1001


# ---------------------------------------------------------------------------------- transactions


def test_an_open_transaction_times_out(kafka: Cluster) -> None:
    options = settings(kafka.bootstrap_servers, transactional_id="tx", transaction_timeout_ms=60000)
    producer = Producer(options)
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce("orders", b"never seen")
    flush(producer)
    before_ms = kafka.clock.now_ms
    kafka.clock.advance("50s", only="transactions")
    assert transaction_states(kafka) == ["Ongoing"]
    kafka.clock.advance("20s", only="transactions")
    wait_until(lambda: transaction_states(kafka) == ["CompleteAbort"])
    assert kafka.clock.now_ms == before_ms
    with pytest.raises(KafkaException, match=r"(?i)fenced|epoch|abort"):
        producer.commit_transaction(TIMEOUT_S)


def transaction_states(kafka: Cluster) -> list[str]:
    return kafka.call(
        lambda cluster: [
            transaction.state.value
            for shard in cluster.brokers[1].transactions.shards()
            for transaction in shard.transactions.values()
        ]
    )


# -------------------------------------------------------------------------------- what is refused


def test_an_unknown_part_is_refused_with_the_choices(kafka: Cluster) -> None:
    with pytest.raises(
        ValidationError, match="no part of a cluster is called 'weather'; there are 'ret"
    ):
        kafka.clock.advance("1h", only="weather")


def test_an_unknown_group_is_refused_with_those_that_are_known(kafka: Cluster) -> None:
    commit(kafka, "one", 5)
    with pytest.raises(ValidationError, match=r"there is no group 'two'; groups: one"):
        kafka.clock.advance("1h", only="group:two")


def test_time_does_not_go_back_in_any_part(kafka: Cluster) -> None:
    with pytest.raises(ValidationError, match="a duration cannot be negative"):
        kafka.clock.advance(-1, only="retention")
