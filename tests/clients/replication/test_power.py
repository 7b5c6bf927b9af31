"""Processes that are killed, and machines that lose their power."""

from __future__ import annotations

import pytest

from mockbroker import Cluster
from tests.support.librdkafka import produce, read_all, values
from tests.support.replicated import TOPIC, Brokers


@pytest.mark.covers("S4")
@pytest.mark.parametrize(("how", "kept"), [("unclean", 7), ("power_loss", 5)])
def test_a_kill_loses_nothing_and_the_loss_of_power_what_was_not_flushed(
    kafka: Cluster, brokers: Brokers, how: str, kept: int
) -> None:
    """The only copy is flushed every five records: of seven, acknowledged with acks=1, two are in
    memory only.
    """
    brokers.create((1,), flush_messages="5")
    produce(brokers.bootstrap, TOPIC, map(str, range(7)), acks=1, batch_num_messages=1)
    kafka.broker(1).stop(how=how)
    kafka.broker(1).start()
    assert brokers.ends() == {1: kept}
    assert values(read_all(brokers.bootstrap, TOPIC, kept)) == list(map(str, range(kept)))
    told = kafka.journal.events(kind="watermark", change="LogTruncated", topic=TOPIC)
    assert [(each.offset, each.broker) for each in told] == ([] if kept == 7 else [(kept, 1)])


@pytest.mark.covers("S4")
def test_what_all_replicas_acknowledged_outlives_the_power_of_one(
    kafka: Cluster, brokers: Brokers
) -> None:
    """Nothing is flushed by itself, but the record is on the followers, one of which leads next."""
    brokers.create((1, 2, 3))
    produce(brokers.bootstrap, TOPIC, ["safe"], acks="all")
    kafka.broker(1).stop(how="power_loss")
    assert brokers.ends() == {1: 0, 2: 1, 3: 1}
    kafka.broker(1).start()
    kafka.settle()
    assert brokers.ends() == {1: 1, 2: 1, 3: 1}
    assert values(read_all(brokers.bootstrap, TOPIC, 1)) == ["safe"]


@pytest.mark.covers("S4")
def test_what_only_the_leader_had_is_gone_with_its_power(kafka: Cluster, brokers: Brokers) -> None:
    """acks=1, and followers that are behind and out of the ISR."""
    brokers.create((1, 2, 3))
    brokers.do(lambda cluster: cluster.shrink_isr(TOPIC, 0, nodes=[2, 3]))
    produce(brokers.bootstrap, TOPIC, ["unsafe"], acks=1)
    kafka.broker(1).stop(how="power_loss")
    kafka.broker(1).start()
    brokers.release(2, 3)
    kafka.settle()
    assert brokers.ends() == {1: 0, 2: 0, 3: 0}


@pytest.mark.covers("S4")
def test_an_orderly_end_flushes_and_so_does_the_roll_of_a_segment(
    kafka: Cluster, brokers: Brokers
) -> None:
    brokers.create((1,), segment_bytes="1048576")
    produce(brokers.bootstrap, TOPIC, ["flushed"], acks=1)
    kafka.broker(1).stop()
    kafka.broker(1).start()
    produce(brokers.bootstrap, TOPIC, ["x" * 600_000] * 2, acks=1, batch_num_messages=1)
    produce(brokers.bootstrap, TOPIC, ["lost"], acks=1)
    kafka.broker(1).stop(how="power_loss")
    kafka.broker(1).start()
    assert brokers.ends() == {1: 2}
