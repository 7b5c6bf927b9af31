"""Consumer groups on their log: what is stored, what a coordinator that moves reads back."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mockbroker.core.configs.values import ClusterConfigs
from mockbroker.core.groups.consumer.group import ConsumerGroup, ConsumerSettings
from mockbroker.core.groups.consumer.records import RECORD_TYPES
from mockbroker.core.groups.consumer.shard import ConsumerGroups
from mockbroker.core.groups.consumer.states import ConsumerGroupState
from mockbroker.core.groups.shard import GroupShard
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.delete_groups import DeleteGroupsRequest
from mockbroker_protocol.records import iter_records, split_batches
from tests.support.consumer_node import ConsumerNode
from tests.support.group_node import (
    commit_request,
    fetch_request,
    heartbeat_request,
    join_request,
    leave_request,
    sync_request,
)

STATE = (
    "assignment_epoch",
    "assignment_timestamp_ms",
    "assignors",
    "classic_count",
    "classic_protocols",
    "epoch",
    "members",
    "metadata_hash",
    "regexes",
    "resolved",
    "static_members",
    "targets",
    "subscribed_topic_names",
    "_regex_topics",
    "_partition_epochs",
)


def picture(group: ConsumerGroup) -> dict[str, object]:
    """Everything that is to survive a move."""
    return {name: getattr(group, name) for name in STATE}


def pictures(shard: GroupShard) -> object:
    classic = {
        # A Stable group is stored just before it becomes Stable, so its timestamp is older.
        name: (group.generation, group.protocol_name, sorted(group.members))
        for name, group in shard.classic.all().items()
    }
    new = {name: picture(group) for name, group in shard.consumers.all().items()}
    return classic, new, shard.offsets.committed


def fresh(node: ConsumerNode) -> GroupShard:
    """A second shard, read from the same log."""
    old = node.shard()
    shard = GroupShard(old.coordinator, old.partition)
    shard.read_at_once()
    shard.loading = False
    return shard


@pytest.fixture
def node() -> ConsumerNode:
    return ConsumerNode()


def test_a_refused_join_leaves_no_group_behind(node: ConsumerNode) -> None:
    node.joins("g", "m", subscribed_topic_names=None, subscribed_topic_regex="(")
    assert node.shard().consumers.all() == {}
    assert node.shard().partition.log_end_offset == 0


def test_a_group_that_is_missing_is_told_from_one_of_another_type(node: ConsumerNode) -> None:
    missing = [node.beats("g", "m", 1), node.leaves("g", "m")]
    node.member("g")
    other = [node.beats("g", "m", 1), node.leaves("g", "m")]
    assert {each.error_code for each in missing + other} == {ErrorCode.GROUP_ID_NOT_FOUND}
    assert [each.error_message for each in missing + other] == [
        "Consumer group g not found.",
        "Group g not found.",
        "Group g is not a consumer group.",
        "Group g is not a consumer group.",
    ]


def test_a_group_that_could_not_be_stored_is_not_there(node: ConsumerNode) -> None:
    with node.log_refuses():
        answer = node.joins("g", "m", subscribed_topic_regex="t.*")
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert node.shard().consumers.all() == {}
    assert node.cluster.runtime.timers.deadline_ms() is None or node.advance(10**6) is None


def test_a_heartbeat_that_changes_nothing_writes_nothing(node: ConsumerNode) -> None:
    epoch = node.joins("g", "m").member_epoch
    end = node.shard().partition.log_end_offset
    node.beats("g", "m", epoch, {"t": [0, 1, 2]})
    assert node.shard().partition.log_end_offset == end


def changes_of(node: ConsumerNode) -> list[list[str]]:
    """What each batch of the coordinator's log changes."""
    found = []
    for stored in node.shard().partition.log.batches():
        ((header, view),) = split_batches(bytearray(bytes(stored)))
        changes = [RECORD_TYPES.parse(record) for record in iter_records(header, view)]
        found.append([type(change.change).__name__ for change in changes if change])
    return found


def test_a_first_heartbeat_with_a_regex_computes_no_assignment(node: ConsumerNode) -> None:
    """The target assignment begins at epoch 1 (TargetAssignmentMetadata.INITIAL). So the heartbeat
    after the regex is resolved need not wait for `group.consumer.assignment.interval.ms`.
    """
    names = {"subscribed_topic_names": None, "subscribed_topic_regex": "t.*"}
    assert node.joins("g", "m", **names).member_epoch == 1
    assert changes_of(node)[0] == ["MemberChange", "CurrentAssignmentChange"]
    node.advance(60)
    told = node.beats("g", "m", 1, {})
    assert (told.member_epoch, told.assignment is not None) == (2, True)


def test_topics_that_were_there_at_a_lookup_of_a_regex_cause_no_other_one(
    node: ConsumerNode,
) -> None:
    """Whatever else changes in the metadata; a new topic does, at the next heartbeat."""
    names = {"subscribed_topic_names": None, "subscribed_topic_regex": "t.*"}
    node.joins("g", "m", **names)
    epoch = node.beats("g", "m", 1, {}).member_epoch
    end = node.shard().partition.log_end_offset
    node.topic("u", 1)
    node.cluster.delete_topic("u")
    node.advance(10_001)
    node.beats("g", "m", epoch, {"t": [0, 1, 2]})
    assert node.shard().partition.log_end_offset == end
    node.topic("u", 1)
    node.beats("g", "m", epoch, {"t": [0, 1, 2]})
    assert changes_of(node)[-1] == ["RegexChange"]


def test_one_heartbeat_is_one_batch(node: ConsumerNode) -> None:
    """In Kafka's order: member, group epoch, targets, assignment epoch, what the member owns."""
    node.joins("g", "m")
    (names,) = changes_of(node)
    assert names == [
        "MemberChange",
        "GroupChange",
        "TargetAssignmentChange",
        "TargetEpochChange",
        "CurrentAssignmentChange",
    ]


def test_members_keep_their_epochs_and_partitions_when_the_coordinator_moves(
    node: ConsumerNode,
) -> None:
    node.joins("g", "a", instance_id="one")
    node.joins("g", "b")
    node.settle("g", "a", "b")
    before = pictures(node.shard())
    epoch = node.consumer_group().members["a"].epoch
    node.reload()
    assert pictures(node.shard()) == before
    again = node.beats("g", "a", epoch, instance_id="one")
    assert (again.error_code, again.member_epoch, again.assignment) == (0, epoch, None)


def test_sessions_end_after_a_move_as_well(node: ConsumerNode) -> None:
    node.joins("g", "a")
    node.reload()
    assert node.consumer_group().state is ConsumerGroupState.STABLE
    node.advance(45_000)
    assert node.consumer_group().state is ConsumerGroupState.EMPTY


def test_a_rebalance_in_the_middle_of_a_move_goes_on(node: ConsumerNode) -> None:
    first = node.joins("g", "a").member_epoch
    second = node.joins("g", "b").member_epoch
    told = node.beats("g", "a", first)
    assert told.member_epoch == first
    node.reload()
    kept = node.owned("g", "a")
    done = node.beats("g", "a", first, {"t": kept})
    assert done.member_epoch == second
    node.reload()
    got = node.beats("g", "b", second)
    assert len(got.assignment.topic_partitions[0].partitions) == 3 - len(kept)


def test_a_deleted_group_is_gone_from_the_log(node: ConsumerNode) -> None:
    node.joins("g", "a")
    node.ask(commit_request({("t", 0): 5}, "g", "a", 2))
    node.leaves("g", "a")
    (deleted,) = node.ask(DeleteGroupsRequest(groups_names=["g"])).results
    assert deleted.error_code == 0
    shard = fresh(node)
    assert pictures(shard) == pictures(node.shard()) == ({}, {}, {})


def test_an_empty_group_without_offsets_is_dropped_by_and_by(node: ConsumerNode) -> None:
    node.joins("g", "a")
    node.leaves("g", "a")
    node.advance(600_000)
    assert node.shard().consumers.all() == {}


def test_offsets_of_topics_that_somebody_reads_do_not_expire(node: ConsumerNode) -> None:
    node.topic("u", 1)
    epoch = node.joins("g", "a").member_epoch
    node.ask(commit_request({("t", 0): 5, ("u", 0): 6}, "g", "a", epoch))
    week_ms = 7 * 24 * 3_600_000
    for _ in range(week_ms // 40_000 + 20):
        node.advance(40_000)
        node.beats("g", "a", epoch)
    offsets = node.shard().offsets.of_group("g")
    assert list(offsets) == ["t"]
    node.leaves("g", "a")
    node.advance(600_000)
    assert node.shard().offsets.of_group("g") == {}
    assert node.shard().consumers.all() == {}


def test_configs_of_a_group_count_from_the_next_heartbeat_on(node: ConsumerNode) -> None:
    assert node.joins("g", "a").heartbeat_interval_ms == 5_000
    node.cluster.configs.groups["g"] = {"consumer.heartbeat.interval.ms": "7000"}
    node.cluster.configs.changed()
    assert node.beats("g", "a", 2).heartbeat_interval_ms == 7_000
    assert node.joins("other", "a").heartbeat_interval_ms == 5_000


def test_settings_without_configs_are_the_defaults_of_the_configs() -> None:
    assert ConsumerGroups.read_settings(ClusterConfigs({}), "g") == ConsumerSettings()


def test_commits_alone_do_not_stand_in_the_way_of_a_consumer_group(node: ConsumerNode) -> None:
    """In the log as well, where the commits come before the group's own records."""
    node.ask(commit_request({("t", 0): 5}, "g"))
    node.joins("g", "a")
    node.reload()
    assert node.shard().classic.get("g") is None
    assert node.consumer_group().members["a"].epoch == 2
    (fetched,) = node.ask(fetch_request({"t": [0]}, "g")).groups
    assert fetched.topics[0].partitions[0].committed_offset == 5


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32))
def test_replaying_the_log_of_any_history_gives_the_same_state(seed: int) -> None:
    """Members of both protocols, topics and time come and go; the log is all that is needed."""
    draw = Random(seed)
    node = ConsumerNode()
    names = ["a", "b", "c", "d"]
    for step in range(50):
        group = draw.choice(["g", "h"])
        present = node.shard().consumers.get(group)
        member = present.members.get(draw.choice(names)) if present else None
        static = {"instance_id": f"i-{draw.choice(names)}"} if draw.random() < 0.3 else {}
        match draw.randrange(11):
            case 0 | 1 | 2:
                node.joins(group, draw.choice(names), draw.choice(["t", "u"]), **static)
            case 3 | 4 | 5 if present and member:
                topics = {t.topic_id: t.name for t in node.cluster.topics.values()}
                owned = {topics[t]: list(ps) for t, ps in member.assigned.items() if t in topics}
                static = {"instance_id": member.instance_id} if member.instance_id else {}
                node.beats(group, member.member_id, member.epoch, owned, **static)
            case 6 if member:
                epoch = -2 if member.instance_id and draw.random() < 0.5 else -1
                static = {"instance_id": member.instance_id} if member.instance_id else {}
                node.beats(group, member.member_id, epoch, **static)
            case 7:
                given_id = node.ask(join_request(group)).member_id
                answer = node.send(join_request(group, given_id))
                if not answer.parked:
                    generation = answer.response.generation_id
                    node.send(sync_request(group, given_id, generation))
            case 8:
                joins = {"subscribed_topic_names": None, "subscribed_topic_regex": "[tu]"}
                node.joins(group, draw.choice(names), **joins)
            case 9:
                node.advance(draw.choice([1, 1_000, 11_000, 46_000]))
            case 10:
                if "u" in node.cluster.topics:
                    node.cluster.delete_topic("u")
                else:
                    node.topic("u", draw.randrange(1, 4))
        if step % 10 == 9:
            live, replayed = node.shard(), fresh(node)
            assert {n: picture(g) for n, g in replayed.consumers.all().items()} == {
                n: picture(g) for n, g in live.consumers.all().items()
            }
            assert set(replayed.classic.all()) == set(live.classic.all())


def test_a_classic_member_without_an_id_is_given_one(node: ConsumerNode) -> None:
    node.joins("g", "new")
    given = node.ask(join_request("g")).member_id
    assert len(given) == len("AAAAAAAAAAAAAAAAAAAAAA")
    assert node.ask(join_request("g", given)).member_id == given
    assert node.ask(join_request("g")).member_id not in ("", given)


def test_a_classic_client_leaves_and_beats_through_the_same_requests(node: ConsumerNode) -> None:
    node.joins("g", "new")
    old = node.ask(join_request("g")).member_id
    epoch = node.ask(join_request("g", old)).generation_id
    assert node.ask(heartbeat_request("g", old, epoch)).error_code == 0
    (left,) = node.ask(leave_request("g", old)).members
    assert left.error_code == 0
    assert list(node.consumer_group().members) == ["new"]


def test_a_member_that_replaces_a_static_one_shares_with_those_that_are_there(
    node: ConsumerNode,
) -> None:
    """And not with the one that it replaces, although that one had all until then."""
    node.topic("u", 2)
    node.joins("g", "a", "t", "u", instance_id="one")
    node.beats("g", "a", -2, instance_id="one")
    node.joins("g", "b", "t", "u", instance_id="one", rebalance_timeout_ms=1_000)
    node.beats("g", "b", -2, instance_id="one")
    node.joins("g", "c", "t", instance_id="one")
    group = node.consumer_group("g")
    assert list(group.members) == ["c"]
    assert set(group.targets) == {"c"}
    topic = node.cluster.topics["t"]
    assert {key: set(value) for key, value in group.targets["c"].items()} == {
        topic.topic_id: set(range(len(topic.partitions)))
    }


def test_a_static_member_that_is_back_may_commit_with_an_epoch_from_before(
    node: ConsumerNode,
) -> None:
    """For what it keeps: its assignment has no epoch any more."""
    node.joins("g", "a", instance_id="one")
    node.beats("g", "a", -2, instance_id="one")
    epoch = node.joins("g", "b", instance_id="one").member_epoch
    for older in range(epoch):
        answer = node.ask(commit_request({("t", 0): 5}, "g", "b", older))
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE


def test_a_fenced_instance_is_taken_over_by_a_member_with_the_same_subscription(
    node: ConsumerNode,
) -> None:
    node.joins("g", "a", instance_id="one")
    group = node.consumer_group("g")
    before = group.members["a"]
    node.shard().consumers.fence_instance(group, "one")
    after = group.static_member("one")
    assert after is not None
    assert after.member_id != "a"
    assert (after.epoch, after.topic_names) == (before.epoch, before.topic_names)


@pytest.mark.parametrize("action", ["expire", "kick"])
@pytest.mark.parametrize("instance_id", [None, "one"])
def test_a_member_that_is_expired_or_kicked_is_gone(
    node: ConsumerNode, action: str, instance_id: str | None
) -> None:
    """Also a static one, as when its session ends or an administrator removes it."""
    node.joins("g", "a", instance_id=instance_id)
    epoch = node.joins("g", "b").member_epoch
    group = node.consumer_group("g")
    getattr(node.shard().consumers, action)(group, ["a"])
    assert list(group.members) == ["b"]
    assert group.epoch > epoch
    assert node.beats("g", "a", epoch).error_code == ErrorCode.UNKNOWN_MEMBER_ID
