"""Views of share partitions: at their leaders, and as the share coordinator keeps them."""

from __future__ import annotations

from mockbroker import Cluster
from mockbroker.core.views.share import (
    UNLOADED,
    InFlightView,
    RecordCountsView,
    share_partition_views,
)
from tests.support.share_members import ACCEPT, RELEASE, PartitionMember
from tests.support.waiting import wait_until


def test_no_share_group_no_view(mock_kafka: Cluster) -> None:
    assert mock_kafka.call(share_partition_views) == []
    assert mock_kafka.share_partitions() == []


def test_a_share_partition_shows_who_has_which_records_until_when(mock_kafka: Cluster) -> None:
    mock_kafka.topic("t").create(1)
    mock_kafka.clock.freeze()
    with PartitionMember(mock_kafka, "g", "t", "m1") as member:
        for value in ("a", "b", "c", "d"):
            mock_kafka.topic("t").produce(value)
        assert member.row() is not None
        member.acknowledged((0, 0, [ACCEPT]), (1, 1, [RELEASE]), (3, 3, [ACCEPT]))
        (view,) = mock_kafka.group("g").share_partitions()
        locked_until_ms = mock_kafka.clock.now_ms + 30_000
        assert (view.state, view.start_offset, view.end_offset) == ("Active", 1, 3)
        assert view.counts == RecordCountsView(available=1, acquired=1, acknowledged=1)
        acquired = InFlightView(2, 2, "Acquired", 1, "m1", locked_until_ms, is_changing=False)
        assert acquired in view.in_flight
        assert (view.leader, view.delivery_count_limit) == (
            mock_kafka.partition("t", 0).view().leader_id,
            5,
        )
        assert mock_kafka.share_partitions("other") == []
    group = mock_kafka.group("g")
    wait_until(lambda: group.share_partitions()[0].state == UNLOADED, what="the end of the session")
    (view,) = group.share_partitions()
    assert (view.start_offset, view.counts.acknowledged) == (1, 1)
    assert [each.member_id for each in view.in_flight] == [None] * len(view.in_flight)
