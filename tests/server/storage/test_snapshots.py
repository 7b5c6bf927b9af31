"""Snapshots of a running cluster, and its clients during a restore."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

from mockbroker import Cluster
from mockbroker.client import Client
from mockbroker.core.coordinator import shard
from mockbroker.core.validation import ValidationError
from mockbroker.server.config import SeedRecord, ServerError, TopicSpec
from mockbroker.server.storage.snapshot_files import FILE
from tests.support.group_node import commit_request
from tests.support.http import HttpClient
from tests.support.librdkafka import Delivery, flush, settings, values
from tests.support.waiting import wait_until

TOPICS = [TopicSpec("t", 2, 3), TopicSpec("seeded", records=[SeedRecord(b"seed")])]


@pytest.fixture
def kafka():
    with Cluster(topics=TOPICS) as cluster:
        yield cluster


def stored(kafka: Cluster, topic: str = "t") -> list[bytes]:
    return [record.value or b"" for record in kafka.records(topic)]


def test_a_connection_stays_open_over_restore_and_reset(kafka):
    with Client(kafka.bootstrap_servers) as client:
        client.produce("t", [b"kept"], partition=0)
        snapshot = kafka.snapshot()
        client.produce("t", [b"gone"], partition=0)
        kafka.restore(snapshot)
        assert stored(kafka) == [b"kept"]
        client.produce("t", [b"again"], partition=0)
        kafka.reset()
        assert stored(kafka) == []
        client.produce("t", [b"anew"], partition=0)
        assert kafka.server.stats.connections_closed == 0


def test_a_snapshot_can_be_gone_back_to_again_and_again(kafka):
    with Client(kafka.bootstrap_servers) as client:
        snapshots = []
        for at in range(3):
            client.produce("t", [b"%d" % at], partition=0)
            snapshots.append(kafka.snapshot())
        for at in (2, 0, 1, 2):
            kafka.restore(snapshots[at])
            assert stored(kafka) == [b"%d" % n for n in range(at + 1)]


def test_reset_makes_the_topics_anew_with_their_records(kafka):
    def ids() -> dict[str, bytes]:
        return kafka.call(lambda core: {t.name: t.topic_id for t in core.topics.values()})

    before = ids()
    kafka.topic("other").create()
    kafka.broker(2).stop()
    kafka.broker(9).add()
    kafka.broker(1).set_rack(rack="moved")
    kafka.reset()
    assert set(ids()) == {"t", "seeded"}
    assert not set(ids().values()) & set(before.values())
    assert stored(kafka, "seeded") == [b"seed"]
    assert len(kafka.bootstrap_servers.split(",")) == 3
    with Client(kafka.bootstrap_servers) as client:
        nodes = {broker.node_id: broker.rack for broker in client.metadata([]).brokers}
    assert nodes == {1: None, 2: None, 3: None}


def test_users_can_log_in_after_a_reset():
    options = {"security_protocol": "SASL_PLAINTEXT", "users": {"alice": "secret"}}
    with Cluster(brokers=1, topics={"t": 1}, **options) as kafka:
        kafka.call(lambda core: core.scram_credentials.clear())
        kafka.reset()
        delivery = Delivery()
        producer = Producer(
            settings(
                kafka.bootstrap_servers,
                security_protocol="SASL_PLAINTEXT",
                sasl_mechanisms="SCRAM-SHA-256",
                sasl_username="alice",
                sasl_password="secret",
            )
        )
        producer.produce("t", b"v", on_delivery=delivery)
        flush(producer)
        assert delivery.errors == []


def test_a_group_reads_on_after_a_restore(kafka):
    producer = Producer(settings(kafka.bootstrap_servers))
    consumer = Consumer(
        settings(
            kafka.bootstrap_servers,
            group_id="g",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            topic_metadata_refresh_interval_ms=200,
        )
    )
    found = []

    def reads(*wanted: str) -> bool:
        producer.poll(0)
        message = consumer.poll(0.05)
        if message is not None and message.error() is None:
            found.append(message)
        return values(found) == list(wanted)

    try:
        consumer.subscribe(["t"])
        producer.produce("t", b"one", partition=0)
        flush(producer)
        wait_until(lambda: reads("one"))
        consumer.commit(asynchronous=False)
        snapshot = kafka.snapshot()
        producer.produce("t", b"lost", partition=0)
        flush(producer)
        wait_until(lambda: reads("one", "lost"))
        kafka.restore(snapshot)
        assert stored(kafka) == [b"one"]
        # The consumer is beyond what is left, and the next record lies where it has been already:
        # only from the leader epoch can it know.
        producer.produce("t", b"next", partition=0)
        flush(producer)
        wait_until(lambda: reads("one", "lost", "next"))
    finally:
        consumer.close()


def idempotent(kafka: Cluster) -> Producer:
    return Producer(
        settings(kafka.bootstrap_servers, enable_idempotence=True, message_timeout_ms=20_000)
    )


@pytest.mark.parametrize("lost", [0, 1, 7])
def test_an_idempotent_producer_writes_on_after_a_restore_that_lets_it_resume(kafka, lost):
    """Its sequence is ahead of the log by what was lost; nothing fails and nothing is missing."""
    producer, delivery = idempotent(kafka), Delivery()

    def send(*values: str) -> None:
        for value in values:
            producer.produce("t", value, partition=0, on_delivery=delivery)
            flush(producer)

    send("one", "two")
    snapshot = kafka.snapshot()
    for _ in range(2):
        send(*["lost"] * lost)
        kafka.restore(snapshot, producers="resume")
        send("three", "four")
        assert stored(kafka) == [b"one", b"two", b"three", b"four"]
    assert delivery.errors == []


def test_a_restore_that_keeps_an_idempotent_producer_ends_it(kafka):
    """librdkafka takes an unexpected sequence for a bug and gives up."""
    producer = idempotent(kafka)
    producer.produce("t", "one", partition=0)
    flush(producer)
    snapshot = kafka.snapshot()
    producer.produce("t", "lost", partition=0)
    flush(producer)
    kafka.restore(snapshot)
    producer.produce("t", "two", partition=0)
    with pytest.raises(KafkaException, match="FATAL,code=OUT_OF_ORDER_SEQUENCE_NUMBER"):
        producer.flush()
    assert stored(kafka) == [b"one"]


def test_many_records_in_flight_outlive_a_restore_that_lets_producers_resume(kafka):
    """What was acknowledged before the restore is gone, what is acknowledged later is there."""
    producer, delivery = idempotent(kafka), Delivery()
    snapshot = kafka.snapshot()
    for round_ in range(5):
        for number in range(200):
            producer.produce("t", f"{round_}-{number}", partition=0, on_delivery=delivery)
            producer.poll(0)
        kafka.restore(snapshot, producers="resume")
    flush(producer)
    assert delivery.errors == []
    found = stored(kafka)
    assert len(set(found)) == len(found)
    assert found[-1] == b"4-199"


@pytest.mark.parametrize("lost", [0, 1, 3])
def test_a_transactional_producer_resumes_under_its_epoch(kafka, lost):
    """Whether the markers of its last transaction are in the snapshot or still on their way."""
    producer = Producer(settings(kafka.bootstrap_servers, transactional_id="x"))
    producer.init_transactions(20)

    def send(value: str) -> None:
        producer.begin_transaction()
        producer.produce("t", value, partition=0)
        producer.commit_transaction(20)

    send("one")
    snapshot = kafka.snapshot()
    for _ in range(lost):
        send("lost")
    kafka.restore(snapshot, producers="resume")
    send("two")
    send("three")
    assert stored(kafka) == [b"one", b"two", b"three"]


def test_only_keep_and_resume_are_known(kafka):
    snapshot = kafka.snapshot()
    with pytest.raises(
        ValidationError, match="'bump' is not allowed here; known are: keep, resume"
    ):
        kafka.restore(snapshot, producers="bump")


def test_what_is_saved_can_be_loaded_by_another_cluster(kafka, tmp_path):
    with Client(kafka.bootstrap_servers) as client:
        client.produce("t", [b"v"], partition=1)
    kafka.save(tmp_path)
    cluster_id = kafka.call(lambda core: core.cluster_id)
    with Cluster(brokers=1, topics={"own": 1}) as other:
        other.load(tmp_path)
        assert stored(other) == [b"v"]
        assert other.call(lambda core: core.cluster_id) == cluster_id
        assert len(other.bootstrap_servers.split(",")) == 3
        with Client(other.bootstrap_servers) as client:
            assert len(client.metadata([]).brokers) == 3
            client.produce("t", [b"w"], partition=1)


def test_a_snapshot_from_the_future_moves_the_clock(kafka, tmp_path):
    kafka.clock.advance("30d")
    then = kafka.call(lambda core: core.runtime.now_ms())
    kafka.save(tmp_path)
    with Cluster(brokers=1) as other:
        assert other.call(lambda core: core.runtime.now_ms()) < then
        other.load(tmp_path)
        assert other.call(lambda core: core.runtime.now_ms()) >= then


def test_a_directory_that_cannot_be_loaded_changes_nothing(kafka, tmp_path):
    kafka.save(tmp_path)
    path = tmp_path / FILE
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(ServerError, match=f"{FILE} is damaged at byte"):
        kafka.load(tmp_path)
    with pytest.raises(ServerError, match="No such file"):
        kafka.load(Path("/nowhere"))
    assert stored(kafka, "seeded") == [b"seed"]


def test_a_snapshot_of_another_release_changes_nothing(kafka):
    kafka.clock.advance("1h")
    image = kafka.call(lambda _: kafka.server.snapshots.take())
    with Cluster(brokers=1, topics={"own": 1}, kafka_version="3.9") as other:
        before = other.call(lambda core: core.runtime.now_ms())
        with pytest.raises(ServerError, match=r"plays Kafka 4\.3; this one plays 3\.9"):
            other.call(lambda _: other.server.snapshots.restore(image, "keep"))
        assert other.call(lambda core: core.runtime.now_ms()) < before + 3_000_000
        assert other.call(lambda core: list(core.topics)) == ["own"]


def test_a_save_replaces_the_one_before_it(kafka, tmp_path):
    with Client(kafka.bootstrap_servers) as client:
        for value in (b"one", b"two"):
            client.produce("t", [value], partition=0)
            kafka.save(tmp_path)
    kafka.load(tmp_path)
    assert stored(kafka) == [b"one", b"two"]


def test_faults_and_the_journal_end_with_a_reset(kafka):
    with Client(kafka.bootstrap_servers) as client:
        client.produce("t", [b"v"], partition=0)
    assert kafka.journal.events(kind="append") != []
    kafka.reset()
    kept = {event.kind for event in kafka.journal.events()}
    assert not kept & {"request", "response", "append", "connection"}


@pytest.mark.parametrize("look", ["python", "http"])
def test_an_operator_sees_no_coordinator_halfway(
    look: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long log is read in turns, after a restore, a move and a start."""
    monkeypatch.setattr(shard, "RECORDS_PER_TURN", 5)
    names = [f"g{number}" for number in range(40)]
    configs = {"offsets.topic.num.partitions": "1"}

    def shown(kafka: Cluster) -> list[str]:
        if look == "python":
            return sorted(group.group for group in kafka.groups())
        return sorted(group["group"] for group in HttpClient(kafka.admin_url).get("/v1/groups"))

    with Cluster(topics=TOPICS, configs=configs, data_dir=tmp_path / "data") as kafka:
        assert shown(kafka) == []
        with Client(kafka.bootstrap_servers) as client:
            for name in names:
                request = commit_request({("t", 0): 0}, name)
                answer = client.coordinator(name).send(request, 8)
                assert answer.topics[0].partitions[0].error_code == 0
        snapshot = kafka.snapshot()
        kafka.restore(snapshot)
        assert shown(kafka) == sorted(names)
        [partition] = kafka.partitions("__consumer_offsets")
        kafka.act("stop_broker", node=partition.leader_id, how="unclean")
        assert shown(kafka) == sorted(names)
    with Cluster(data_dir=tmp_path / "data") as kafka:
        assert shown(kafka) == sorted(names)
