"""`__consumer_offsets` compacted: groups of the new protocol survive it, in whatever order their
records are left.
"""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from mockbroker.core.groups.shard import GroupShard
from tests.core.groups.consumer.test_shard import fresh, picture
from tests.support.consumer_node import ConsumerNode
from tests.support.group_node import commit_request, fetch_request, join_request, sync_request

OFFSETS = "__consumer_offsets"
DAY_MS = 86_400_000


def known(shard: GroupShard) -> object:
    """Everything that a coordinator knows from the log."""
    new = {name: picture(group) for name, group in shard.consumers.all().items()}
    classic = {name: group.image() for name, group in shard.classic.all().items()}
    return new, classic, shard.offsets.committed


def compact(node: ConsumerNode) -> None:
    before = known(fresh(node))
    node.cluster.run_compaction(OFFSETS).run()
    assert known(fresh(node)) == before


def test_offsets_that_are_left_in_front_of_their_group_belong_to_it() -> None:
    """A commit stays where it was, while the group's records are written again behind it."""
    node = ConsumerNode()
    epoch = node.joins("g", "a").member_epoch
    node.ask(commit_request({("t", 0): 5}, "g", "a", epoch))
    node.joins("g", "b")
    node.settle("g", "a", "b")
    compact(node)
    node.leaves("g", "b")
    node.settle("g", "a")
    compact(node)
    node.reload()
    assert node.shard().classic.get("g") is None
    assert set(node.consumer_group().members) == {"a"}
    assert node.owned("g", "a") == [0, 1, 2]
    (fetched,) = node.ask(fetch_request({"t": [0]}, "g")).groups
    assert fetched.topics[0].partitions[0].committed_offset == 5


def test_members_that_left_stay_away_when_their_tombstones_are_gone() -> None:
    node = ConsumerNode()
    node.joins("g", "a")
    node.joins("g", "b")
    node.settle("g", "a", "b")
    node.leaves("g", "b")
    node.settle("g", "a")
    topic = node.cluster.topics[OFFSETS]
    node.cluster.replace_topic_configs(
        topic, {**topic.configs.overrides, "delete.retention.ms": "1000"}
    )
    compact(node)
    assert [record.value for record in node.log()].count(None) > 0
    node.advance(1000)
    compact(node)
    shard = fresh(node)
    assert set(shard.groups["g"].members) == {"a"}
    assert all(record.value is not None for record in node.log())


@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_compaction_at_any_moment_of_any_history_changes_nothing(seed: int) -> None:
    """Members of both protocols, commits, topics and time; compacted now and then."""
    draw = Random(seed)
    node = ConsumerNode()
    names = ["a", "b", "c"]
    for _ in range(50):
        group = draw.choice(["g", "h"])
        present = node.shard().consumers.get(group)
        member = present.members.get(draw.choice(names)) if present else None
        match draw.randrange(11):
            case 0 | 1:
                node.joins(group, draw.choice(names), draw.choice(["t", "u"]))
            case 2 | 3 | 4 if present and member:
                topics = {t.topic_id: t.name for t in node.cluster.topics.values()}
                owned = {topics[t]: list(ps) for t, ps in member.assigned.items() if t in topics}
                node.beats(group, member.member_id, member.epoch, owned)
            case 5 if member:
                node.leaves(group, member.member_id)
            case 6:
                given_id = node.ask(join_request(group)).member_id
                answer = node.send(join_request(group, given_id))
                if not answer.parked:
                    node.send(sync_request(group, given_id, answer.response.generation_id))
            case 7:
                name, epoch = (member.member_id, member.epoch) if member else ("", -1)
                offsets = {("t", draw.randrange(3)): draw.randrange(1000)}
                node.send(commit_request(offsets, group, name, epoch))
            case 8:
                node.advance(draw.choice([1, 1_000, 46_000, DAY_MS]))
            case 9:
                if "u" in node.cluster.topics:
                    node.cluster.delete_topic("u")
                else:
                    node.topic("u", draw.randrange(1, 4))
            case 10:
                compact(node)
    compact(node)
    keys = [record.key for record in node.log()]
    assert len(keys) == len(set(keys))
