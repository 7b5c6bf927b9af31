"""What leader epochs are for, as a client sees it: with them a record stays that else is lost."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker import Cluster
from mockbroker.core.cluster import Cluster as CoreCluster
from mockbroker.core.events import LogTruncated
from mockbroker.core.replication.partition import Partition
from tests.support.librdkafka import open_consumer, poll, produce, read_all, values
from tests.support.replicated import TOPIC, Brokers


def configs(truncation: str) -> dict[str, str]:
    return {
        "mockbroker.replication": "stepwise",
        "mockbroker.replication.truncation": truncation,
    }


@pytest.mark.covers("S80", "S90")
@pytest.mark.parametrize(
    ("truncation", "kept"), [("hw", []), ("epoch", ["kept"]), ("fetch", ["kept"])]
)
def test_an_acknowledged_record_is_lost_by_watermarks_and_kept_by_epochs(
    truncation: str, kept: list[str]
) -> None:
    """The follower restarts before it has heard of the watermark, then the leader dies."""
    with Cluster(brokers=2, node_ids=[1, 2], configs=configs(truncation)) as kafka:
        brokers = Brokers(kafka)
        brokers.create((1, 2))
        produce(brokers.bootstrap, TOPIC, ["kept"], acks="all")

        def restart_and_kill(cluster: CoreCluster) -> None:
            cluster.stop_broker(2, "unclean")
            cluster.start_broker(2)
            cluster.stop_broker(1, "unclean")
            cluster.elect_unclean(TOPIC, 0, 2)

        brokers.do(restart_and_kill)
        produce(brokers.bootstrap, TOPIC, ["after"])
        assert values(read_all(brokers.bootstrap, TOPIC, len(kept) + 1)) == [*kept, "after"]


@pytest.mark.covers("S82", "S90")
@pytest.mark.parametrize(("truncation", "cut_at"), [("hw", 1), ("epoch", 2), ("fetch", 2)])
def test_both_ways_end_alike_and_cut_at_different_offsets(truncation: str, cut_at: int) -> None:
    """A: m1 m2 m3, B: m1 m2, C: m1, the watermark is 1. A dies, B takes m4 and m5, A returns."""
    with Cluster(brokers=3, node_ids=[1, 2, 3], configs=configs(truncation)) as kafka:
        brokers = Brokers(kafka)
        cut: list[Any] = []
        brokers.do(lambda cluster: cluster.runtime.on_event.append(cut.append))
        brokers.create()
        produce(brokers.bootstrap, TOPIC, ["m1"])
        brokers.until(lambda: brokers.partition(all_have_heard))
        brokers.hold(3)
        produce(brokers.bootstrap, TOPIC, ["m2"], acks=1)
        brokers.until(lambda: brokers.ends()[2] == 2)
        brokers.hold(2)
        produce(brokers.bootstrap, TOPIC, ["m3"], acks=1)
        kafka.broker(1).stop(how="unclean")
        brokers.release(2, 3)
        produce(brokers.bootstrap, TOPIC, ["m4", "m5"])
        kafka.broker(1).start()
        brokers.until(lambda: brokers.ends() == {1: 4, 2: 4, 3: 4})
        offsets = [each.offset for each in cut if isinstance(each, LogTruncated)]
        assert offsets == [cut_at]
        with open_consumer(brokers.bootstrap) as consumer:
            consumer.subscribe([TOPIC])
            assert values(poll(consumer, 4)) == ["m1", "m2", "m4", "m5"]


def all_have_heard(partition: Partition) -> bool:
    """Whether the followers know that the first record is committed."""
    return all(own.high_watermark == 1 for own in partition.own_replicas.values())
