"""`kafka.audit()`: the audit of a test's cluster, with real clients."""

from __future__ import annotations

import pytest
from confluent_kafka import Consumer, Producer

from mockbroker import Cluster
from mockbroker.api.audit import Audit
from mockbroker.client import Client
from tests.support.group_node import commit_request


def produce(kafka: Cluster, *values: str, **settings: object) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, **settings})
    for value in values:
        producer.produce("orders", value)
        assert producer.flush(30) == 0


def consume(kafka: Cluster, count: int) -> None:
    settings = {"group.id": "kitchen", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, **settings})
    consumer.subscribe(["orders"])
    messages = consumer.consume(count, 30)
    assert len(messages) == count
    consumer.commit(asynchronous=False)
    consumer.close()


def test_a_cluster_where_nothing_went_wrong_is_clean(mock_kafka: Cluster) -> None:
    """Records were produced and read, and every rule that applies says so."""
    mock_kafka.topic("orders").create()
    produce(mock_kafka, "one coffee", "two teas")
    consume(mock_kafka, 2)
    audit = mock_kafka.audit()
    assert audit.findings == []
    audit.assert_clean()
    audit.assert_no("lost_write", "skip")
    assert audit.not_checked == []
    assert {outcome.outcome for outcome in audit.report.outcomes} == {"clean", "not applicable"}


@pytest.mark.covers("S267")
@pytest.mark.mock_kafka(brokers=3)
def test_a_lost_write_is_found_with_the_rule_that_lost_it(mock_kafka: Cluster, tmp_path) -> None:
    """An unclean election throws away what one broker alone had acknowledged."""
    mock_kafka.topic("orders").create(replication_factor=3)
    mock_kafka.act("move_leader", topic="orders", partition=0, node=1)
    mock_kafka.act("lag_follower", topic="orders", node=2)
    produce(mock_kafka, "one coffee", acks=1)
    election = {"elect_unclean": {"topic": "orders", "partition": 0, "node": 2}}
    mock_kafka.faults.add(
        name="bad-night", match={"api": "Produce"}, when={"times": 1}, do=election
    )
    produce(mock_kafka, "two teas", "three cakes", acks=1)

    audit = mock_kafka.audit()
    lost = audit.of("lost_write")
    assert {found.rule for found in lost} == {"bad-night"}
    assert lost[0].offset == 0
    assert lost[0].verdict == "report"
    with pytest.raises(AssertionError, match="the audit is not clean: 3 reports"):
        audit.assert_clean()
    audit.assert_clean(allow=["lost_write", "inconsistent_offset"])
    with pytest.raises(AssertionError, match="because of bad-night") as told:
        audit.assert_no("lost_write")
    assert "removed: truncation, because of bad-night" in str(told.value)
    assert "elect_unclean" in str(told.value)
    audit.save(tmp_path / "report.html")
    assert "bad-night" in (tmp_path / "report.html").read_text()


def test_a_retry_without_idempotence_is_found_by_the_records_id(mock_kafka: Cluster) -> None:
    """Its acknowledgement was lost; the id in the header tells that both are the same."""
    mock_kafka.topic("orders").create()
    mock_kafka.faults.add(
        match={"api": "Produce"}, when={"times": 1}, do={"drop_reply": {"then": "reset"}}
    )
    producer = Producer({"bootstrap.servers": mock_kafka.bootstrap_servers})
    producer.produce("orders", "one coffee", headers={"mb-id": "order-1"})
    assert producer.flush(30) == 0
    audit = mock_kafka.audit()
    [twice] = audit.of("duplicate")
    assert (twice.subject, twice.offset, twice.verdict) == ("id:order-1", 1, "report")
    with pytest.raises(AssertionError, match="order-1"):
        audit.assert_clean()
    audit.assert_clean(bugs_only=True)


def test_equal_records_without_an_id_are_not_clean(mock_kafka: Cluster) -> None:
    """They may be duplicates, as when a Spark job stores a micro-batch twice."""
    mock_kafka.topic("orders").create()
    produce(mock_kafka, *map(str, range(500)))
    produce(mock_kafka, *map(str, range(500)))
    audit = mock_kafka.audit()
    [told] = audit.not_checked
    assert told == (
        "duplicates in orders: 500 records without an id have the key and value of another"
    )
    assert f"nothing found; not checked: {told}" in str(audit)
    assert "clean" not in str(audit)
    with pytest.raises(AssertionError, match=r"kafka\.topic\('orders'\)\.track\(key='\$\.id'\)"):
        audit.assert_clean()
    audit.assert_clean(allow=["duplicate"])
    audit.assert_clean(bugs_only=True)
    mock_kafka.topic("orders").track(unique_values=True)
    assert len(mock_kafka.audit().of("duplicate")) == 500


def test_hidden_records_are_a_skip(mock_kafka: Cluster) -> None:
    """A broker that leaves out what its log holds."""
    mock_kafka.topic("orders").create()
    produce(mock_kafka, "one", "two", "three")
    mock_kafka.faults.add(match={"api": "Fetch"}, do={"hide_records": {"offsets": [1]}})
    consume(mock_kafka, 2)
    audit = mock_kafka.audit()
    assert {found.offset for found in audit.of("skip")} == {1}
    with pytest.raises(AssertionError, match="a consumer skipped a record without a seek"):
        audit.assert_clean()


def test_what_the_application_says_is_judged_too(mock_kafka: Cluster) -> None:
    """It committed both records and processed one of them, twice."""
    mock_kafka.topic("orders").create()
    produce(mock_kafka, "one coffee", "two teas")
    consume(mock_kafka, 2)
    said = {"op": "processed", "group": "kitchen", "topic": "orders", "partition": 0}
    audit = mock_kafka.audit([{**said, "offset": 0}, {**said, "offset": 0}])
    assert [found.offset for found in audit.of("committed_not_processed")] == [1]
    assert [found.offset for found in audit.of("processed_again")] == [0]


@pytest.mark.parametrize("offset", [-(2**63), -1, 2**63 - 1])
def test_no_committed_offset_stops_the_audit(mock_kafka: Cluster, offset: int) -> None:
    """As in Kafka, a group can commit any; the lag counts to the end of the log at most."""
    mock_kafka.topic("orders").create()
    produce(mock_kafka, "one coffee")
    consume(mock_kafka, 1)
    with Client(mock_kafka.bootstrap_servers) as client:
        request = commit_request({("orders", 0): offset}, group="till")
        response = client.coordinator("till").send(request)
    assert response.topics[0].partitions[0].error_code == 0
    lag = mock_kafka.lag("till")
    assert lag == (1 if offset < 0 else 0)
    audit = mock_kafka.audit()
    audit.assert_clean()
    measured = audit.report.measures["lag"]
    assert [row["lag"] for row in measured if row["group"] == "till"][-1] == lag


def test_after_the_journal_was_cleared_nobody_knows(mock_kafka: Cluster) -> None:
    """What was not found may have happened."""
    mock_kafka.topic("orders").create()
    produce(mock_kafka, "one coffee")
    mock_kafka.journal.clear()
    produce(mock_kafka, "two teas")
    audit = mock_kafka.audit()
    assert audit.findings == []
    for settings in ({}, {"bugs_only": True}):
        with pytest.raises(AssertionError, match=r"not checked: entr.* which the journal lacks"):
            audit.assert_clean(**settings)
    with pytest.raises(AssertionError, match="skip could not be checked"):
        audit.assert_no("skip")


def test_an_anomaly_that_there_is_not_is_refused(mock_kafka: Cluster) -> None:
    """With the one that was meant."""
    audit = mock_kafka.audit()
    assert isinstance(audit, Audit)
    with pytest.raises(ValueError, match="did you mean 'lost_write'"):
        audit.assert_no("lost_writes")
    with pytest.raises(ValueError, match="did you mean 'duplicate'"):
        audit.assert_clean(allow=["duplicates"])
