"""The batches and records of real producers, as rows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from mockbroker import Cluster
from mockbroker.client.connection import Connection
from mockbroker.pipeline.hashing import key_hash, value_hash
from mockbroker_protocol.records import Record, build_batch
from tests.differential.dialogue import produce_request
from tests.pipeline.convert.support import tables_of
from tests.support.librdkafka import TIMEOUT_S, addresses, settings
from tests.support.waiting import wait_until


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with Cluster(brokers=3, topics={"t": 2}) as cluster:
        yield cluster


def producer_of(kafka: Cluster, **config: object) -> Producer:
    return Producer(settings(kafka.bootstrap_servers, **config))


def send(producer: Producer, *values: str, topic: str = "t", partition: int = 0) -> None:
    for value in values:
        producer.produce(topic, value, partition=partition, headers={"mb-id": f"id-{value}"})
    assert producer.flush(TIMEOUT_S) == 0


@pytest.mark.covers("S337")
def test_records_are_told_with_place_hash_and_id(kafka):
    producer = producer_of(kafka, client_id="shop", enable_idempotence=True)
    producer.produce("t", b"v", key=b"k", partition=1, timestamp=1_700_000_000_123)
    producer.produce("t", None, key=None, partition=1, headers={"mb-id": "7"})
    assert producer.flush(TIMEOUT_S) == 0
    tables = tables_of(kafka)
    first, second = tables.rows("records")
    topic_id = first["topic_id"]
    assert (first["topic"], first["partition"], first["offset"]) == ("t", 1, 0)
    assert (first["value_hash"], first["key_hash"]) == (value_hash(b"k", b"v"), key_hash(b"k"))
    assert (first["timestamp"], first["id"]) == (1_700_000_000_123, None)
    assert (second["offset"], second["id"], second["key_hash"]) == (1, "7", None)
    assert second["value_hash"] == value_hash(None, None)
    batches = tables.rows("batches")
    assert sum(batch["records"] for batch in batches) == 2
    for batch in batches:
        assert (batch["client_id"], batch["topic_id"], batch["acks"]) == ("shop", topic_id, -1)
        assert batch["acknowledged"]
        assert batch["producer_id"] is not None
        assert batch["producer_epoch"] == 0
        assert batch["transaction"] is None
    appends = {batch["append_seq"] for batch in batches}
    assert {first["append_seq"], second["append_seq"]} == appends
    requests = tables.rows("requests", api="Produce")
    assert {request["seq"] for request in requests} == {batch["seq"] for batch in batches}
    assert all(request["client_software"].startswith("confluent") for request in requests)
    assert all(request["source"].startswith("127.0.0.1:") for request in requests)


def test_a_lost_answer_leaves_a_batch_unacknowledged_until_its_retry(kafka):
    kafka.faults.add(
        name="lost",
        match={"api": "Produce", "topic": "t"},
        when={"times": 1},
        do={"drop_reply": {"then": "close"}},
    )
    send(producer_of(kafka, enable_idempotence=True, retry_backoff_ms=10), "one")
    tables = tables_of(kafka)
    first, retry = tables.rows("batches")
    assert not first["acknowledged"]
    assert (first["response_seq"], first["base_offset"], first["rules"]) == (None, 0, ["lost"])
    assert first["append_seq"] is not None
    assert retry["acknowledged"]
    assert (retry["append_seq"], retry["base_offset"], retry["last_offset"]) == (None, 0, 0)
    assert (retry["producer_id"], retry["base_sequence"]) == (first["producer_id"], 0)
    assert len(tables.rows("records")) == 1
    [fault] = tables.rows("faults", change="hit")
    assert (fault["rules"], fault["request_seq"]) == (["lost"], first["seq"])


def test_without_acks_nothing_is_acknowledged(kafka):
    send(producer_of(kafka, acks=0), "one")
    wait_until(lambda: len(kafka.records("t")) == 1)
    tables = tables_of(kafka)
    [batch] = tables.rows("batches")
    assert (batch["acknowledged"], batch["acks"], batch["base_offset"]) == (False, 0, 0)
    assert batch["response_seq"] is None


def test_a_refused_batch_has_an_error_and_no_place(kafka):
    kafka.faults.add(
        match={"api": "Produce"}, when={"times": 1}, do={"error": "TOPIC_AUTHORIZATION_FAILED"}
    )
    failed = []
    producer = producer_of(kafka, enable_idempotence=False)
    producer.produce("t", "no", partition=0, on_delivery=lambda error, _: failed.append(error))
    assert producer.flush(TIMEOUT_S) == 0
    assert failed[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    [batch] = tables_of(kafka).rows("batches")
    assert batch["error"] == "TOPIC_AUTHORIZATION_FAILED"
    assert (batch["append_seq"], batch["base_offset"], batch["acknowledged"]) == (None, None, False)


def test_transactions_are_numbered_and_their_markers_told(kafka):
    producer = producer_of(kafka, transactional_id="pay", client_id="pay")
    producer.init_transactions(TIMEOUT_S)
    for number in range(4):
        producer.begin_transaction()
        send(producer, str(number))
        if number % 2:
            producer.abort_transaction(TIMEOUT_S)
        else:
            producer.commit_transaction(TIMEOUT_S)
    kafka.journal.wait(kind="transaction", state="CompleteAbort", count=2)
    tables = tables_of(kafka)
    batches = tables.rows("batches")
    producer_id = batches[0]["producer_id"]
    names = [f"{producer_id}/{number}" for number in (1, 2, 3, 4)]
    assert [batch["transaction"] for batch in batches] == names
    assert {batch["transactional_id"] for batch in batches} == {"pay"}
    markers = tables.rows("markers")
    assert [(each["transaction"], each["committed"]) for each in markers] == [
        (name, not number % 2) for number, name in enumerate(names)
    ]
    assert [each["offset"] for each in markers] == [1, 3, 5, 7]
    ends = [
        (each["transaction"], each["state"])
        for each in tables.rows("transactions")
        if each["state"].startswith("Complete")
    ]
    assert ends == [
        (name, "CompleteAbort" if number % 2 else "CompleteCommit")
        for number, name in enumerate(names)
    ]
    [given] = tables.rows("transactions", state="InitProducerId")
    assert (given["producer_id"], given["transactional_id"]) == (producer_id, "pay")


def test_what_leaves_a_log_is_told_with_its_reason_and_cause(kafka):
    kafka.topic("replicated").create(1, 3)
    producer = producer_of(kafka, acks=1)
    send(producer, "a", "b", topic="replicated")
    leader = kafka.call(lambda cluster: cluster.partition("replicated", 0).leader_id)
    follower = next(node for node in (1, 2, 3) if node != leader)
    kafka.act("shrink_isr", topic="replicated", partition=0, nodes=[follower])
    send(producer, "c", "d", topic="replicated")
    kafka.act("elect_unclean", topic="replicated", partition=0, node=follower)
    send(producer, "e", topic="t")
    admin = AdminClient(settings(kafka.bootstrap_servers))  # its futures fail when it is gone
    admin.delete_topics(["t"])["t"].result(TIMEOUT_S)
    tables = tables_of(kafka)
    lost, deleted = tables.rows("removals")
    assert (lost["topic"], lost["first_offset"], lost["last_offset"]) == ("replicated", 2, 3)
    assert (lost["reason"], lost["cause"]) == ("unclean_election", "elect_unclean")
    assert (deleted["topic"], deleted["reason"], deleted["cause"]) == ("t", "topic_deleted", None)
    [change] = tables.rows("cluster", change="LeaderChanged", unclean=True)
    assert (change["leader"], change["former_leader"]) == (follower, leader)
    acknowledged = tables.rows("batches", topic="replicated", acknowledged=True)
    assert sum(batch["records"] for batch in acknowledged) == 4


def test_what_a_deposed_leader_wrote_is_lost_when_it_comes_back(kafka):
    kafka.topic("replicated").create(1, 3)
    old = producer_of(kafka, acks=1)
    send(old, "a", topic="replicated")
    send(producer_of(kafka, acks="all"), "b", topic="replicated")  # the followers have both now
    leader = kafka.call(lambda cluster: cluster.partition("replicated", 0).leader_id)
    kafka.act("cut_network", nodes=[leader])
    send(old, *"cde", topic="replicated")  # it knows this leader, and asks nobody
    others = addresses(kafka, *{1, 2, 3} - {leader})
    new = Producer(settings(others, acks=1, client_id="new"))
    send(new, "f", topic="replicated")
    kafka.act("heal_network")
    kafka.journal.wait(kind="watermark", change="LogTruncated", topic="replicated")
    tables = tables_of(kafka)
    [lost] = tables.rows("removals")
    # At offset 2 the new leader has a record of its own.
    assert (lost["first_offset"], lost["last_offset"], lost["reason"]) == (3, 4, "truncation")
    records = tables.rows("records", topic="replicated")
    assert [row["offset"] for row in records] == [0, 1, 2, 3, 4, 2]
    # Each append has the leader epoch of who wrote it.
    epochs = {
        row["base_offset"]: row["leader_epoch"] for row in tables.rows("batches", broker=leader)
    }
    assert epochs == dict.fromkeys(epochs, 0)
    assert {row["leader_epoch"] for row in tables.rows("batches", client_id="new")} == {1}


def test_a_broker_without_the_controller_appends_to_the_topic_that_it_knows(kafka):
    """Others have deleted it meanwhile, and made one of that name anew."""
    kafka.topic("replicated").create(1, 3)
    leader = kafka.call(lambda cluster: cluster.partition("replicated", 0).leader_id)
    producer = Producer(settings(addresses(kafka, leader), acks=1))
    send(producer, "a", topic="replicated")
    kafka.act("cut_network", nodes=[leader])
    kafka.act("recreate_topic", topic="replicated")
    send(producer, "b", topic="replicated")
    tables = tables_of(kafka)
    former, later = tables.rows("records", topic="replicated")
    assert former["topic_id"] == later["topic_id"]
    [batch] = tables.rows("batches", append_seq=later["append_seq"])
    assert batch["topic_id"] == former["topic_id"]
    ends = tables.rows("watermarks", topic="replicated", log_end_offset=2)
    assert {row["topic_id"] for row in ends} == {former["topic_id"]}


def test_an_unclean_election_that_time_brings_about_is_the_cause_of_what_it_loses(kafka):
    """No action led to it at once: a broker was fenced later."""
    configs = {"unclean.leader.election.enable": "true"}
    kafka.topic("replicated").create(1, 2, configs=configs)
    leader, follower = kafka.partitions("replicated")[0].isr
    kafka.act("shrink_isr", topic="replicated", partition=0, nodes=[follower])
    kafka.act("lag_follower", topic="replicated", partition=0, node=follower)
    send(producer_of(kafka, acks=1), "lost", topic="replicated")
    kafka.act("stop_broker", node=leader, how="unclean", fence_after=50)
    kafka.journal.wait(kind="remove", topic="replicated")
    [lost] = tables_of(kafka).rows("removals")
    assert (lost["reason"], lost["cause"]) == ("unclean_election", "unclean_election")


def test_what_still_waits_when_its_topic_is_made_anew_is_of_the_old_one(kafka):
    kafka.topic("replicated").create(1, 3)
    leader = kafka.call(lambda cluster: cluster.partition("replicated", 0).leader_id)
    for node in {1, 2, 3} - {leader}:
        kafka.act("lag_follower", topic="replicated", partition=0, node=node)
    producer = producer_of(kafka, acks="all")
    producer.produce("replicated", "a", partition=0)
    producer.poll(0)
    kafka.journal.wait(kind="append", topic="replicated")
    kafka.act("pause_broker", node=leader)
    kafka.act("recreate_topic", topic="replicated")
    tables = tables_of(kafka)
    [record] = tables.rows("records", topic="replicated")
    [batch] = tables.rows("batches", append_seq=record["append_seq"])
    assert batch["topic_id"] == record["topic_id"]


def test_a_topic_that_is_made_anew_is_another(kafka):
    send(producer_of(kafka), "old")
    kafka.act("recreate_topic", topic="t")
    send(producer_of(kafka), "new")
    first, second = tables_of(kafka).rows("records")
    assert first["offset"] == second["offset"] == 0
    assert first["topic"] == second["topic"] == "t"
    assert first["topic_id"] != second["topic_id"]


def test_a_watermark_that_was_put_back_is_told_with_its_cause(kafka):
    send(producer_of(kafka), "a", "b", "c")
    kafka.act("set_high_watermark", topic="t", partition=0, offset=1)
    tables = tables_of(kafka)
    [moved] = tables.rows("watermarks", source="event")
    assert (moved["high_watermark"], moved["log_end_offset"]) == (1, 3)
    assert (moved["cause"], moved["leader_epoch"]) == ("set_high_watermark", 0)
    [fault] = tables.rows("faults", kind="action")
    assert (fault["change"], fault["topic"], fault["partition"]) == ("set_high_watermark", "t", 0)


def test_a_fenced_producer_is_refused_and_told_so(kafka):
    old = producer_of(kafka, transactional_id="x", client_id="old")
    old.init_transactions(TIMEOUT_S)
    old.begin_transaction()
    send(old, "one")
    new = producer_of(kafka, transactional_id="x", client_id="new")
    new.init_transactions(TIMEOUT_S)
    old.produce("t", "zombie", partition=0)
    with pytest.raises(KafkaException):
        old.commit_transaction(TIMEOUT_S)
    old.flush(TIMEOUT_S)
    tables = tables_of(kafka)
    refused = [batch for batch in tables.rows("batches", client_id="old") if batch["error"]]
    epochs = [row["producer_epoch"] for row in tables.rows("transactions")]
    assert refused
    assert all(batch["producer_epoch"] < max(epochs) for batch in refused)
    assert all(batch["append_seq"] is None for batch in refused)


def test_the_first_high_watermark_after_a_truncation_names_its_cause(kafka):
    """A follower that lost its power has less than before, and is told of less."""
    kafka.topic("replicated").create(1, 3)
    follower = kafka.partitions("replicated")[0].isr[-1]
    send(producer_of(kafka, acks="all"), "a", "b", topic="replicated")
    kafka.act("delay_network", nodes=follower, by=1)
    kafka.act("stop_broker", node=follower, how="power_loss")
    kafka.act("start_broker", node=follower)
    kafka.settle()
    moved = {"broker": follower, "source": "event", "topic": "replicated"}
    first, *_ = tables_of(kafka).rows("watermarks", **moved)
    assert (first["high_watermark"], first["cause"]) == (2, "stop_broker")


def test_a_retry_behind_an_expiration_is_a_duplicate_that_the_config_explains():
    """Kafka's partitions take it as well. The journal's event and the table tell when the producer
    was forgotten, and the audit reports no bug.
    """
    configs = {
        "producer.id.expiration.ms": "10000",
        "producer.id.expiration.check.interval.ms": "1000",
    }
    with Cluster(brokers=1, topics={"t": 1}, configs=configs) as kafka:
        kafka.clock.freeze()
        record = Record(0, kafka.clock.now_ms, b"k", b"v", [("mb-id", b"once")])
        batch = build_batch([record], producer_id=7, producer_epoch=0, base_sequence=4)
        with Connection(*kafka.endpoint(1)) as connection:

            def offset() -> int:
                answer = connection.send(produce_request("t", batch), 9)
                (partition,) = answer.responses[0].partition_responses
                assert partition.error_code == 0
                return partition.base_offset

            assert [offset(), offset()] == [0, 0]
            kafka.clock.advance("9s")
            assert offset() == 0
            kafka.clock.advance("1s")
            assert [offset(), offset()] == [1, 1]
        (event,) = kafka.journal.exactly(1, kind="producer", producer_id=7)
        audit, tables = kafka.audit(), tables_of(kafka)
    (row,) = tables.rows("expirations")
    assert (event.change, event.topic, event.partition) == ("ProducersExpired", "t", 0)
    assert (event.broker, event.producer_id) == (1, (7,))
    appends = [batch["append_seq"] for batch in tables.rows("batches") if batch["append_seq"]]
    assert appends[0] < row["seq"] == event.seq < appends[1]
    assert (row["broker"], row["topic"], row["partition"], row["producer_id"]) == (1, "t", 0, 7)
    found = [(each.subject, each.verdict, each.offset, each.rule) for each in audit.findings]
    why = "producer.id.expiration.ms"
    assert sorted(found) == [("id:once", "report", 1, why), ("producer:7", "report", 1, why)]
