"""Actions on leaders, followers and watermarks."""

from __future__ import annotations

import pytest

from mockbroker.core.errors import ActionError
from mockbroker.core.validation import ValidationError
from mockbroker_protocol import ErrorCode
from tests.support.replicas import Replicas, error_of, waiting


@pytest.fixture
def node() -> Replicas:
    node = Replicas(4, replicas=[1, 2, 3])
    node.sent("a")
    return node


# -- leaders ---------------------------------------------------------------------------------------


def test_a_leader_moves_to_another_member_of_the_isr(node):
    node.cluster.move_leader("t", 0, 3)
    assert node.leadership() == (3, 1, [1, 2, 3])
    node.cluster.move_leader("t", 0, 3)
    assert node.leadership() == (3, 1, [1, 2, 3])


def test_a_partition_is_left_without_a_leader_until_one_is_chosen(node):
    node.cluster.drop_leader("t", 0)
    assert node.leadership() == (-1, 1, [1, 2, 3])
    node.cluster.move_leader("t", 0, 2)
    assert node.leadership() == (2, 2, [1, 2, 3])
    assert node.read() == "a"


def test_an_unclean_choice_lets_any_live_replica_lead(node):
    node.cluster.shrink_isr("t", 0, nodes=[3])
    node.sent("b")
    node.cluster.elect_unclean("t", 0, 3)
    node.release(3)
    node.settle()
    assert node.leadership() == (3, 1, [1, 2, 3])
    assert node.contents() == dict.fromkeys((1, 2, 3), "a")


def test_shuffled_leaders_are_members_of_their_isr_and_the_seed_decides(node):
    node.cluster.create_topic("many", 30, 3)
    before = [p.leader_id for p in node.cluster.topics["many"].partitions]
    moved = node.cluster.shuffle_leaders("many")
    after = [p.leader_id for p in node.cluster.topics["many"].partitions]
    assert moved == sum(a != b for a, b in zip(before, after, strict=True)) > 5
    assert node.cluster.shuffle_leaders() >= 0
    node.cluster.drop_leader("t", 0)
    for node_id in (1, 2, 3):
        node.cluster.stop_broker(node_id)
    node.cluster.shuffle_leaders("t")
    assert node.partition.leader_id == -1


# -- followers -------------------------------------------------------------------------------------


def test_followers_of_all_partitions_are_held_at_once(node):
    node.cluster.create_topic("many", assignments={0: [1, 4], 1: [4, 2], 2: [2, 3]})
    node.cluster.lag_follower("many", None, node=4)
    assert [list(p.own_replicas) for p in node.cluster.topics["many"].partitions] == [[4], [], []]
    node.cluster.lag_follower("many", None, node=4, release=True)
    node.settle()
    assert [list(p.own_replicas) for p in node.cluster.topics["many"].partitions] == [[], [], []]


def test_a_shrunk_isr_stays_small_until_the_followers_are_released(node):
    node.cluster.shrink_isr("t", 0, nodes=[2, 3])
    node.advance(100_000)
    assert node.leadership() == (1, 0, [1])
    node.release(2)
    node.settle()
    assert node.leadership() == (1, 0, [1, 2])


# -- watermarks ------------------------------------------------------------------------------------


def test_a_held_watermark_lets_nobody_see_or_acknowledge_more(node):
    node.cluster.hold_high_watermark("t", 0)
    answer = node.send("b")
    node.settle()
    assert waiting(answer)
    assert (node.read(), node.ends()) == ("a", {1: 2, 2: 2, 3: 2})
    node.cluster.hold_high_watermark("t", 0, release=True)
    assert (error_of(answer), node.read()) == (0, "a b")


def test_a_watermark_can_go_back_although_kafka_never_lets_it(node):
    node.sent("b")
    node.sent("c")
    node.cluster.set_high_watermark("t", 0, 1)
    assert node.read() == "a"
    node.send("d", acks=1)
    assert (node.partition.high_watermark, node.partition.last_stable_offset) == (1, 1)
    node.cluster.hold_high_watermark("t", None, release=True)
    assert node.read() == "a b c d"


@pytest.mark.parametrize("action", ["hold_high_watermark", "set_high_watermark"])
def test_acks_all_times_out_above_a_watermark_that_is_held_and_its_records_stay(node, action):
    """Whether it waits already, for a follower that lags, or comes later."""
    node.sent("b")
    node.cluster.lag_follower("t", 0, node=3)
    waits = node.send("c", timeout_ms=1000)
    if action == "set_high_watermark":
        node.cluster.set_high_watermark("t", 0, 1)
    else:
        node.cluster.hold_high_watermark("t", 0)
    node.cluster.lag_follower("t", 0, node=3, release=True)
    later = node.send("d", timeout_ms=1000)
    node.advance(999)
    assert waiting(waits)
    assert waiting(later)
    node.advance(1)
    timed_out = ErrorCode.REQUEST_TIMED_OUT
    assert (error_of(waits), error_of(later)) == (timed_out, timed_out)
    node.cluster.hold_high_watermark("t", 0, release=True)
    assert node.read() == "a b c d"
    assert node.sent("e").error_code == 0


# -- arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "arguments", "why"),
    [
        ("move_leader", ("none", 0, 1), "no topic 'none'"),
        ("move_leader", ("t", 7, 1), "partitions 0 to 0, not 7"),
        ("move_leader", ("t", 0, 4), r"4 is not a replica of t-0; its replicas are \[1, 2, 3\]"),
        ("move_leader", ("t", 0, 3), r"3 is not in the ISR of t-0, which is \[1, 2\]"),
        ("move_leader", ("t", 0, 2), "2 is not alive"),
        ("elect_unclean", ("t", 0, 2), "2 is not alive"),
        ("elect_unclean", ("t", 0, 9), "9 is not a replica"),
        ("shuffle_leaders", ("none",), "no topic 'none'"),
        ("lag_follower", {"topic": "t", "partition": 0, "node": 4}, "4 is not a replica"),
        ("lag_follower", {"topic": "t", "node": 4}, "4 has no replica of 't'"),
        ("shrink_isr", {"topic": "t", "partition": 0, "nodes": [1]}, "1 leads t-0"),
        ("set_high_watermark", ("t", 0, 9), "9 is not within the log of t-0: its offsets are 0"),
    ],
)
def test_what_is_refused_says_why_and_changes_nothing(node, action, arguments, why):
    node.cluster.shrink_isr("t", 0, nodes=[3])
    node.cluster.brokers[2].fenced = True
    node.events.clear()
    before = node.leadership()
    named = arguments if isinstance(arguments, dict) else {}
    placed = () if named else arguments
    with pytest.raises(ActionError, match=why):
        getattr(node.cluster, action)(*placed, **named)
    assert (node.leadership(), node.events) == (before, [])


def test_a_follower_that_lags_does_so_by_some_time(node):
    with pytest.raises(ValidationError, match="not by 0"):
        node.cluster.lag_follower("t", 0, node=3, by_ms=0)
    with pytest.raises(ValidationError, match="release does not go with by"):
        node.cluster.lag_follower("t", 0, node=3, by_ms=5, release=True)


def test_a_leader_cannot_be_dropped_twice(node):
    node.cluster.drop_leader("t", 0)
    with pytest.raises(ActionError, match="has no leader already"):
        node.cluster.drop_leader("t", 0)
