"""Views of streams tasks."""

from __future__ import annotations

from mockbroker.core.views.streams import streams_task_views
from tests.support.streams_node import StreamsNode


def test_a_task_is_shown_with_its_member_until_the_next_has_it() -> None:
    node = StreamsNode(configs={"group.streams.initial.rebalance.delay.ms": "0"})
    first = node.joins("g", "a")
    node.joins("g", "b")
    node.beats("g", "a", first.member_epoch, {"0": [0, 1, 2]})
    views = streams_task_views(node.cluster, "g")
    assert {(each.kind, each.subtopology, each.process_id) for each in views} == {
        ("active", "0", "p-a"),
        ("active", "0", "p-b"),
    }
    states = sorted((each.member_id, each.state) for each in views)
    assert states == [("a", "assigned"), ("a", "assigned"), ("a", "revoking"), ("b", "target")]
    assert len({each.partition for each in views if each.member_id == "a"}) == 3
    assert streams_task_views(node.cluster, "other") == []
