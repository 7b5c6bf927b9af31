"""The situations are what their names say, without a console."""

from __future__ import annotations

from mockbroker import Cluster, TopicSpec
from tests.console import situations
from tests.support.waiting import wait_until


def kafka_with(topic: str = "orders", partitions: int = 1) -> Cluster:
    return Cluster(topics=[TopicSpec(topic, partitions, replication_factor=3)], seed=1)


def test_a_reader_of_committed_records_stops_at_an_open_transaction():
    with kafka_with() as kafka, situations.hanging_transaction(kafka) as billing:
        (view,) = kafka.partitions("orders")
        assert (view.last_stable_offset, view.high_watermark) == (3, 10)
        kafka.transaction("nightly-import").abort()
        billing.wait_for(9)
        assert "imported" not in billing.records


def test_a_reader_of_a_paused_leader_stops():
    with kafka_with() as kafka, situations.paused_broker(kafka) as billing:
        leader = kafka.partitions("orders")[0].leader_id
        assert kafka.broker(leader).view().state == "paused"
        assert len(billing.records) == 3
        kafka.broker(leader).resume()
        situations.produce(kafka, "orders", 2)
        billing.wait_for(5)


def test_a_member_that_reads_nothing_keeps_the_others_waiting():
    with kafka_with("jobs") as kafka, situations.hogging_member(kafka) as found:
        assert (len(found.hog.owned), len(found.idle.owned)) == (1, 0)
        kafka.group("billing").kick_member(member="abandoned-worker")
        found.wait_for(5)


def test_a_held_produce_has_not_been_answered():
    with kafka_with() as kafka, situations.held_produce(kafka) as held:
        assert held.reports == []
        (exchange,) = kafka.faults.held()
        exchange.release()
        wait_until(lambda: held.reports == [(None, 0)])


def test_a_group_has_been_rebalanced():
    with kafka_with(partitions=4) as kafka, situations.rebalanced(kafka):
        states = [event.state for event in kafka.journal.events(kind="group", group="kitchen")]
        assert states.count("Stable") >= 3


def test_an_acknowledged_record_is_lost():
    with kafka_with() as kafka:
        situations.lost_write(kafka)
        assert [each.anomaly for each in kafka.audit().reports] == ["lost_write"]


def test_a_killed_leader_is_replaced():
    with kafka_with() as kafka:
        leader = situations.killed_broker(kafka)
        (view,) = kafka.partitions("orders")
        assert view.leader_id != leader
        assert view.high_watermark == 6
