"""The journal of a running cluster with real clients."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from mockbroker import Cluster
from mockbroker.client.connection import Connection
from mockbroker.client.errors import ClientError
from mockbroker.core.cluster import Cluster as CoreCluster
from mockbroker.core.faults.engine import FaultEngine, Fired
from mockbroker.core.journal.journal import Journal
from mockbroker.core.journal.verify import JournalGapError
from mockbroker.core.validation import ValidationError
from mockbroker.handlers.slices import PARTITIONS_PER_SLICE
from mockbroker_protocol.messages.metadata import MetadataRequest
from mockbroker_protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.support.librdkafka import TIMEOUT_S

RECORDS = 5


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    """A producer wrote five records, a consumer of group "billing" read and committed them."""
    with Cluster(brokers=2, topics={"orders": 2}) as cluster:
        produced(cluster, "orders", RECORDS)
        consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "group.id": "billing",
                "client.id": "reader",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe(["orders"])
        assert len(consumer.consume(RECORDS, TIMEOUT_S)) == RECORDS
        consumer.commit(asynchronous=False)
        consumer.close()
        cluster.journal.wait(kind="group", group="billing", state="Empty", former="*Rebalance")
        yield cluster


def produced(cluster: Cluster, topic: str, count: int) -> None:
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "client.id": "loader",
            "enable.idempotence": True,
        }
    )
    for number in range(count):
        producer.produce(topic, str(number), partition=0)
    assert producer.flush(TIMEOUT_S) == 0


def test_every_answer_belongs_to_a_request(kafka: Cluster) -> None:
    requests = {event.seq: event for event in kafka.journal.events(kind="request")}
    answers = kafka.journal.events(kind="response")
    assert answers
    for answer in answers:
        assert answer.request_seq is not None
        asked = requests[answer.request_seq]
        assert (answer.api, answer.correlation_id) == (asked.api, asked.correlation_id)
        assert (answer.connection, answer.client_id) == (asked.connection, asked.client_id)
        assert answer.elapsed_ns is not None
        assert answer.elapsed_ns >= 0


def test_who_asked_is_told_with_its_software(kafka: Cluster) -> None:
    asked = kafka.journal.events(kind="request", client_id="loader", api="Produce")[0]
    assert asked.client_software is not None
    assert asked.client_software.startswith("confluent-kafka-python ")
    assert asked.principal == "User:ANONYMOUS"
    assert asked.source is not None
    assert asked.source.startswith("127.0.0.1:")
    assert asked.targets == (("orders", 0),)
    assert asked.acks == -1


def test_a_produced_batch_is_told_at_its_place_in_the_log(kafka: Cluster) -> None:
    appended = kafka.journal.events(kind="append", topic="orders")
    assert sum(event.records or 0 for event in appended) == RECORDS
    assert appended[0].first_offset == 0
    assert appended[-1].last_offset == RECORDS - 1
    assert {event.producer_epoch for event in appended} == {0}
    [first] = kafka.journal.exactly(1, kind="append", topic="orders", offset=0)
    assert first.base_sequence == 0


def test_what_was_delivered_and_committed_is_told(kafka: Cluster) -> None:
    delivered = kafka.journal.events(kind="deliver", client_id="reader", topic="orders")
    assert sum(event.records or 0 for event in delivered) == RECORDS
    commit = kafka.journal.events(kind="commit", group="billing")[-1]
    assert (commit.topic, commit.partition, commit.offset) == ("orders", 0, RECORDS)
    assert commit.generation == 1


def test_the_states_of_a_group_are_told_in_order(kafka: Cluster) -> None:
    kafka.journal.in_order(
        {"kind": "group", "group": "billing", "state": "PreparingRebalance"},
        {"kind": "group", "group": "billing", "state": "CompletingRebalance"},
        {"kind": "group", "group": "billing", "state": "Stable"},
        {"kind": "deliver", "client_id": "reader"},
        {"kind": "commit", "group": "billing"},
        {"kind": "group", "group": "billing", "state": "Empty"},
    )


def test_connections_are_told_with_who_ended_them(kafka: Cluster) -> None:
    opened = {event.connection for event in kafka.journal.events(change="opened")}
    closed = kafka.journal.wait(kind="connection", change="closed", reason="closed by the client")
    assert closed[0].connection in opened


def test_fields_of_the_decoded_request_can_be_asked_for(kafka: Cluster) -> None:
    [group] = {
        event.group
        for event in kafka.journal.events(
            kind="request", api="JoinGroup", where={"protocol_type": "consumer"}
        )
    }
    assert group == "billing"
    records = kafka.journal.events(kind="request", api="Produce")[0].message["topic_data"]
    assert json.loads(json.dumps(records))[0]["partition_data"][0]["records"][0]["count"] >= 1


def test_a_failure_names_what_came_near(kafka: Cluster) -> None:
    with pytest.raises(AssertionError, match=r"near .* append Produce client_id=loader") as failed:
        kafka.journal.exactly(1, kind="append", topic="orders", partition=1)
    assert "but topic/partition was" in str(failed.value)
    with pytest.raises(AssertionError, match="none were expected"):
        kafka.journal.never(kind="append", topic="orders")
    with pytest.raises(AssertionError, match="at least 1"):
        kafka.journal.wait(kind="append", topic="nowhere", timeout_s=0)
    with pytest.raises(ValidationError, match="topik"):
        kafka.journal.events(topik="orders")


def test_waiting_sees_what_comes_later(mock_kafka: Cluster) -> None:
    mark = mock_kafka.journal.last_seq
    mock_kafka.topic("late").create()
    produced(mock_kafka, "late", 1)
    [event] = mock_kafka.journal.wait(kind="append", topic="late", after_seq=mark)
    assert event.seq > mark


def test_a_refused_request_is_found_by_its_error(mock_kafka: Cluster) -> None:
    admin = AdminClient({"bootstrap.servers": mock_kafka.bootstrap_servers})
    future = admin.delete_topics(["nowhere"], operation_timeout=TIMEOUT_S)["nowhere"]
    with pytest.raises(KafkaException) as failed:
        future.result(TIMEOUT_S)
    assert failed.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    [event] = mock_kafka.journal.events(error="UNKNOWN_TOPIC_OR_PARTITION", api="DeleteTopics")
    assert event.targets == (("nowhere", -1),)


@pytest.mark.mock_kafka(topics={"gone": 1})
def test_a_deleted_topic_keeps_its_name(mock_kafka: Cluster) -> None:
    consumer = Consumer({"bootstrap.servers": mock_kafka.bootstrap_servers, "group.id": "g"})
    produced(mock_kafka, "gone", 1)
    consumer.assign([TopicPartition("gone", 0, 0)])
    assert consumer.consume(1, TIMEOUT_S)
    consumer.close()
    mock_kafka.call(lambda cluster: cluster.delete_topic("gone"))
    assert mock_kafka.journal.events(kind="deliver", topic="gone", api_version=[13, 14, 15, 16, 17])


def test_what_a_broker_goes_through_is_told(mock_kafka: Cluster) -> None:
    mock_kafka.broker(2).stop()
    mock_kafka.journal.in_order(
        {"kind": "broker", "broker": 2, "change": "shutting down"},
        {"kind": "broker", "broker": 2, "change": "stopped"},
    )


def test_a_journal_without_room_tells_the_gap(mock_kafka: Cluster) -> None:
    def shrink(cluster: object) -> None:
        journal: Journal = cluster.runtime.journal  # type: ignore[attr-defined]
        journal.bytes_max = 2_000

    mock_kafka.call(shrink)
    mock_kafka.topic("orders").create()
    produced(mock_kafka, "orders", 1)
    gap = mock_kafka.journal.events()[0]
    assert (gap.kind, gap.first_seq) == ("gap", 1)
    with pytest.raises(JournalGapError):
        mock_kafka.journal.never(kind="append")


def test_it_is_saved_as_json_lines(kafka: Cluster, tmp_path) -> None:
    path = tmp_path / "journal.jsonl"
    count = kafka.journal.save(path, kind="append")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == count > 0
    assert {line["kind"] for line in lines} == {"append"}


@pytest.mark.mock_kafka(security_protocol="SASL_PLAINTEXT", users={"alice": "wonderland"})
def test_secrets_are_not_shown(mock_kafka: Cluster) -> None:
    admin = AdminClient(
        {
            "bootstrap.servers": mock_kafka.bootstrap_servers,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": "wonderland",
        }
    )
    admin.list_topics(timeout=TIMEOUT_S)
    events = mock_kafka.journal.events(kind="request", api="SaslAuthenticate")
    assert [event.message["auth_bytes"] for event in events] == ["[hidden]"] * len(events)
    assert events
    assert "wonderland" not in str(mock_kafka.journal.events())
    metadata = mock_kafka.journal.events(kind="request", api="Metadata")[0]
    assert metadata.principal == "User:alice"


@pytest.mark.mock_kafka(journal_bytes=0)
def test_a_cluster_without_a_journal_says_so(mock_kafka: Cluster) -> None:
    with pytest.raises(RuntimeError, match="keeps no journal"):
        mock_kafka.journal.events()


@pytest.mark.mock_kafka(topics={"orders": 1})
def test_rules_leave_their_names_on_what_they_touch(mock_kafka: Cluster) -> None:
    mock_kafka.faults.add(
        name="lose-one",
        match={"api": "Produce"},
        when={"times": 1},
        do={"drop_reply": {"then": "reset"}},
    )
    produced(mock_kafka, "orders", 1)
    [hit] = mock_kafka.journal.exactly(1, kind="fault", change="hit", rule="lose-one")
    [lost] = mock_kafka.journal.exactly(1, kind="response", rule="lose-one")
    assert (hit.request_seq, hit.client_id, hit.api) == (lost.request_seq, "loader", "Produce")
    assert lost.outcome == "answer dropped"
    retry = mock_kafka.journal.events(kind="response", api="Produce")[-1]
    assert (retry.outcome, retry.rules, retry.errors) == (None, (), ())
    mock_kafka.journal.in_order(
        {"kind": "fault", "rule": "lose-one"},
        {"kind": "append", "topic": "orders"},
        {"kind": "response", "rule": "lose-one"},
    )
    mock_kafka.journal.exactly(1, kind="append", topic="orders")


@pytest.mark.mock_kafka(topics={"orders": 1})
@pytest.mark.parametrize(
    ("effect", "outcome"),
    [
        ({"drop_reply": {"then": "reset"}}, "answer dropped"),
        ({"truncate_reply": {"fraction": 0.5}}, "answer cut"),
        ({"truncate_reply": {"bytes": 3, "then": "reset"}}, "answer cut"),
        ({"corrupt_reply": {"how": "garbage"}}, "answer damaged"),
    ],
)
def test_an_answer_that_does_not_come_whole_delivers_nothing(
    mock_kafka: Cluster, effect: dict[str, object], outcome: str
) -> None:
    """The next one does, and is told once."""
    produced(mock_kafka, "orders", 1)
    mock_kafka.faults.add(name="half", match={"api": "Fetch"}, when={"times": 1}, do=effect)
    consumer = Consumer({"bootstrap.servers": mock_kafka.bootstrap_servers, "group.id": "bill"})
    consumer.assign([TopicPartition("orders", 0, 0)])
    assert consumer.consume(1, TIMEOUT_S)
    consumer.close()
    [half] = mock_kafka.journal.exactly(1, kind="response", rule="half")
    assert half.outcome == outcome
    assert half.bytes
    [whole] = mock_kafka.journal.exactly(1, kind="deliver", topic="orders")
    assert whole.seq > half.seq


@pytest.mark.mock_kafka(topics={"orders": 1})
def test_a_request_that_is_dropped_has_an_outcome_and_no_answer(mock_kafka: Cluster) -> None:
    mock_kafka.faults.add(
        name="deaf", match={"api": "Produce"}, when={"times": 1}, do={"close": {"how": "rst"}}
    )
    produced(mock_kafka, "orders", 1)
    [refused] = mock_kafka.journal.exactly(1, kind="response", rule="deaf")
    assert refused.outcome == "closed"
    assert refused.message == {}


@pytest.mark.mock_kafka(brokers=3)
def test_actions_of_a_timeline_are_told_with_their_cause(mock_kafka: Cluster) -> None:
    mock_kafka.clock.freeze()
    mock_kafka.faults.add(
        {
            "name": "outage",
            "timeline": [
                {"at": "5s", "do": {"stop_broker": {"node": 2}}},
                {"at": "6s", "do": {"stop_broker": {"node": 2}}},
            ],
        }
    )
    mock_kafka.clock.advance("10s")
    done, failed = mock_kafka.journal.exactly(2, kind="action", change="stop_broker")
    assert (done.rules, done.outcome) == (("outage",), None)
    assert (failed.outcome, failed.reason) == ("failed", "broker 2 is stopped already")
    assert failed.virtual_ms - done.virtual_ms == 1_000


def test_an_error_of_the_brokers_own_costs_one_connection_and_is_told(mock_kafka: Cluster) -> None:
    class Broken(FaultEngine):
        def evaluate(self, *_: object) -> Fired | None:
            raise KeyError("a rule that cannot be asked")

    def break_rules(cluster: CoreCluster) -> None:
        cluster.faults = Broken(cluster)

    def mend_rules(cluster: CoreCluster) -> None:
        cluster.faults = None

    mock_kafka.topic("orders").create()
    mock_kafka.call(break_rules)
    with Connection(*mock_kafka.endpoint(1), "raw") as connection, pytest.raises(ClientError):
        connection.send(MetadataRequest(topics=[]), 12)
    mock_kafka.journal.wait(kind="connection", change="closed", reason="KeyError: *")
    mock_kafka.call(mend_rules)
    produced(mock_kafka, "orders", 1)


@pytest.mark.mock_kafka(brokers=3)
def test_what_a_test_does_to_the_cluster_and_its_clock_is_told(mock_kafka: Cluster) -> None:
    mock_kafka.clock.freeze()
    mock_kafka.act("stop_broker", node=2, how="unclean")
    mock_kafka.clock.advance("5s")
    mock_kafka.clock.advance("8d", only="retention")
    mock_kafka.clock.thaw()
    told = mock_kafka.journal.in_order(
        {"kind": "clock", "change": "rate"},
        {"kind": "action", "change": "stop_broker"},
        {"kind": "clock", "change": "advance"},
        {"kind": "clock", "change": "advance"},
        {"kind": "clock", "change": "rate"},
    )
    assert told[0].message == {"rate": 0.0}
    assert told[1].message["arguments"]["node"] == 2  # type: ignore[index]
    assert [told[2].message["advance_ms"], told[3].message["only"]] == [5_000, "retention"]


def test_conditions_count_back_from_now_on_the_clusters_clock(mock_kafka: Cluster) -> None:
    mock_kafka.clock.freeze()
    mock_kafka.topic("orders").create()
    produced(mock_kafka, "orders", 1)
    mock_kafka.clock.advance("1h")
    assert mock_kafka.journal.events(kind="append", within_ms="30m") == []
    mock_kafka.journal.never(kind="append", within_ms="30m")
    mock_kafka.journal.exactly(1, kind="append", within_ms="2h")


def test_events_of_every_slice_have_the_request_as_their_cause() -> None:
    """A request for very many partitions is handled in slices."""
    count = 2 * PARTITIONS_PER_SLICE + 100
    marker = WritableTxnMarker(
        producer_id=7, topics=[WritableTxnMarkerTopic("many", list(range(count)))]
    )
    with Cluster(brokers=1, topics={"many": count}) as cluster:
        with Connection(*cluster.endpoint(1), "raw") as connection:
            connection.send(WriteTxnMarkersRequest([marker]), 1)
        (request,) = cluster.journal.events(kind="request", api="WriteTxnMarkers")
        markers = cluster.journal.events(kind="marker")
        assert len(markers) == count
        assert {each.cause_seq for each in markers} == {request.seq}
