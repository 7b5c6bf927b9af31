"""Share groups on their log: what is stored, initialized, deleted, and read back after a move."""

from __future__ import annotations

import pytest

from mockbroker.core.configs.values import ClusterConfigs
from mockbroker.core.errors import ActionError
from mockbroker.core.groups.shard import GroupShard
from mockbroker.core.groups.share.group import ShareGroup, ShareSettings
from mockbroker.core.groups.share.offsets import alter_offsets
from mockbroker.core.groups.share.records import RECORD_TYPES
from mockbroker.core.groups.share.shard import ShareGroups
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.delete_topics import DeleteTopicsRequest
from mockbroker_protocol.records import iter_records, split_batches
from tests.support.held_persister import HeldPersister, hold_persister
from tests.support.share_node import ShareNode

E = ErrorCode
STATE = (
    "assignment_epoch",
    "assignment_timestamp_ms",
    "epoch",
    "members",
    "metadata_hash",
    "noted",
    "targets",
)


@pytest.fixture
def node() -> ShareNode:
    return ShareNode()


@pytest.fixture
def held(node: ShareNode) -> HeldPersister:
    """The persister of the only broker, in the hands of the test."""
    return hold_persister(node)


def picture(group: ShareGroup) -> dict[str, object]:
    """All that is to survive a move."""
    return {name: getattr(group, name) for name in STATE}


def fresh(node: ShareNode) -> GroupShard:
    """A second shard, read from the same log."""
    old = node.shard()
    shard = GroupShard(old.coordinator, old.partition)
    shard.read_at_once()
    shard.loading = False
    return shard


def batches(node: ShareNode) -> list[list[str]]:
    """The changes in each batch of the coordinator's log."""
    found = []
    for stored in node.shard().partition.log.batches():
        ((header, view),) = split_batches(bytearray(bytes(stored)))
        changes = [RECORD_TYPES.parse(record) for record in iter_records(header, view)]
        found.append([type(change.change).__name__ for change in changes if change])
    return found


# ------------------------------------------------------------------------------------- the log


def test_a_join_is_one_batch_and_so_is_each_step_of_the_initialization(node: ShareNode) -> None:
    assert node.joins("g", "m").member_epoch == 2
    node.ticks("g", "m")
    assert batches(node) == [
        [
            "MemberChange",
            "GroupChange",
            "TargetAssignmentChange",
            "TargetEpochChange",
            "CurrentAssignmentChange",
            "PartitionsChange",
        ],
        ["PartitionsChange"],
        [
            "GroupChange",
            "TargetAssignmentChange",
            "TargetEpochChange",
            "CurrentAssignmentChange",
        ],
    ]
    assert node.assigned() == {"m": {"t": [0, 1, 2]}}


def test_a_heartbeat_that_changes_nothing_writes_nothing(node: ShareNode) -> None:
    node.stable("m")
    end = node.shard().partition.log_end_offset
    assert node.ticks("g", "m").assignment is None
    assert node.shard().partition.log_end_offset == end


def test_a_group_that_could_not_be_stored_is_not_there(node: ShareNode) -> None:
    node.shard().partition.topic.configs.replace({"max.message.bytes": "10"})
    answer = node.joins("g", "m")
    assert answer.error_code == E.UNKNOWN_SERVER_ERROR
    assert node.shard().groups == {}


def test_a_coordinator_that_moves_reads_the_same_group(node: ShareNode) -> None:
    node.stable("a", "b")
    node.stable("c", group="other")
    node.leaves("g", "b")
    node.leaves("other", "c")
    node.deletes("other")
    groups = fresh(node).shares.all()
    assert list(groups) == ["g"]
    assert picture(groups["g"]) == picture(node.share_group())


def test_after_a_move_each_member_has_a_whole_session(node: ShareNode) -> None:
    node.stable("m")
    node.advance(40_000)
    node.cluster.brokers[1].groups.reload("g", 0)
    node.advance(44_999)
    assert list(node.share_group().members) == ["m"]
    node.advance(1)
    assert node.share_group().state_name == "Empty"


# ------------------------------------------------------------------------------------- sessions


def test_a_silent_member_is_removed_after_its_session_timeout(node: ShareNode) -> None:
    node.stable("m", "n")
    epoch = node.share_group().epoch
    node.advance(30_000)
    node.ticks("g", "n")
    node.advance(15_000)
    assert list(node.share_group().members) == ["n"]
    assert node.share_group().epoch == epoch + 1
    assert node.beats("g", "m", epoch).error_code == E.UNKNOWN_MEMBER_ID


def test_the_session_timeout_is_a_config_of_the_group(node: ShareNode) -> None:
    node.cluster.configs.groups["g"] = {"share.session.timeout.ms": "60000"}
    node.cluster.configs.changed()
    node.stable("m")
    node.advance(59_999)
    assert list(node.share_group().members) == ["m"]
    node.advance(1)
    assert not node.share_group().members


def test_an_empty_group_never_expires(node: ShareNode) -> None:
    node.stable("m")
    node.leaves("g", "m")
    node.advance(30 * 86_400_000)
    assert "g" in node.shard().groups


def test_a_group_has_a_largest_size() -> None:
    node = ShareNode(configs={"group.share.max.size": "2"})
    node.stable("a", "b")
    answer = node.joins("g", "c")
    assert answer.error_code == E.GROUP_MAX_SIZE_REACHED
    assert answer.error_message == (
        "The share group has reached its maximum capacity of 2 members."
    )
    assert node.joins("g", "a").error_code == E.NONE


# ------------------------------------------------------------------------------- initialization


def test_partitions_are_assigned_once_they_have_state(node: ShareNode, held: HeldPersister) -> None:
    epoch = node.joins("g", "m").member_epoch
    assert node.noted()["initializing"] == {"t": [0, 1, 2]}
    assert node.beats("g", "m", epoch).member_epoch == epoch
    assert len(held.asked) == 1
    held.answer()
    assert node.noted() == {"initializing": {}, "initialized": {"t": [0, 1, 2]}, "deleting": []}
    assert node.beats("g", "m", epoch).member_epoch == epoch + 1


def test_a_failed_initialization_is_tried_again_by_the_next_heartbeat(
    node: ShareNode, held: HeldPersister
) -> None:
    node.joins("g", "m")
    held.answer(E.COORDINATOR_NOT_AVAILABLE)
    assert node.noted() == {"initializing": {}, "initialized": {}, "deleting": []}
    node.ticks("g", "m")
    held.answer()
    assert node.noted()["initialized"] == {"t": [0, 1, 2]}


def check_asked_again_in_1_ms(node: ShareNode, held: HeldPersister) -> None:
    assert len(held.asked) == 1
    node.advance(1)
    node.ticks("g", "m")
    assert len(held.asked) == 2


def test_an_initialization_without_an_answer_is_tried_again_after_a_while(
    node: ShareNode, held: HeldPersister
) -> None:
    node.joins("g", "m")
    node.advance(29_999)
    node.ticks("g", "m")
    check_asked_again_in_1_ms(node, held)


def test_altered_partitions_have_time_to_be_initialized_too(
    node: ShareNode, held: HeldPersister
) -> None:
    node.stable("m", group="other", topics=["none"])
    offsets = {node.cluster.topics["t"].topic_id: {0: 5, 1: 6, 2: 7}}
    alter_offsets(node.shard(), "g", offsets, lambda *_: None)
    node.advance(29_999)
    node.joins("g", "m")
    check_asked_again_in_1_ms(node, held)


def test_an_initialization_is_tried_again_a_while_after_its_coordinator_was_loaded(
    node: ShareNode, held: HeldPersister
) -> None:
    node.joins("g", "m")
    node.advance(20_000)
    node.cluster.brokers[1].groups.reload("g", 0)
    node.shard()
    node.advance(29_999)
    node.ticks("g", "m")
    check_asked_again_in_1_ms(node, held)


def test_members_with_other_topics_have_the_partitions_of_their_own(node: ShareNode) -> None:
    node.topic("u", 2)
    for member, topic in (("m", "t"), ("n", "u")):
        node.stable(member, topics=[topic])
    node.ticks("g", "m")
    node.ticks("g", "n")
    assert node.assigned() == {"m": {"t": [0, 1, 2]}, "n": {"u": [0, 1]}}


def test_new_partitions_are_initialized_alone(node: ShareNode, held: HeldPersister) -> None:
    node.joins("g", "m")
    held.answer()
    node.ticks("g", "m")
    node.cluster.topic_control.add_partitions(node.cluster.topics["t"], 5)
    node.ticks("g", "m")
    assert held.partitions() == [3, 4]
    held.answer()
    node.ticks("g", "m")
    assert node.assigned() == {"m": {"t": [0, 1, 2, 3, 4]}}


def test_an_answer_to_a_coordinator_that_has_moved_is_dropped(
    node: ShareNode, held: HeldPersister
) -> None:
    node.joins("g", "m")
    end = node.shard().partition.log_end_offset
    node.cluster.brokers[1].groups.reload("g", 0)
    held.answer()
    assert node.shard().partition.log_end_offset == end
    assert node.noted()["initializing"] == {"t": [0, 1, 2]}


def test_a_deleted_topic_is_forgotten(node: ShareNode) -> None:
    node.stable("m")
    node.cluster.topic_control.delete("t")
    assert node.noted() == {"initializing": {}, "initialized": {}, "deleting": []}
    node.ticks("g", "m")
    assert node.assigned() == {"m": {}}


def test_topics_deleted_by_one_request_are_forgotten_in_one_record_of_a_group(
    node: ShareNode,
) -> None:
    """Each record has all share partitions of the group: one for each topic would take a time of
    their square.
    """
    topics = [f"t{number}" for number in range(20)]
    for topic in topics:
        node.topic(topic, 1)
    node.stable("m", topics=("t", *topics))
    end = node.shard().partition.log_end_offset
    answer = node.ask(DeleteTopicsRequest(topic_names=topics, timeout_ms=1_000), 5)
    assert {each.error_code for each in answer.responses} == {0}
    assert node.noted() == {"initializing": {}, "initialized": {"t": [0, 1, 2]}, "deleting": []}
    assert node.shard().partition.log_end_offset == end + 1


# ------------------------------------------------------------------------------------- deletion


def test_a_group_is_deleted_after_its_state(node: ShareNode, held: HeldPersister) -> None:
    node.joins("g", "m")
    held.answer()
    node.leaves("g", "m")
    asked = node.start_delete("g")
    assert node.noted() == {"initializing": {}, "initialized": {}, "deleting": ["t"]}
    assert held.partitions() == [0, 1, 2]
    held.answer()
    assert asked() == {"g": E.NONE}
    assert node.shard().groups == {}


def test_groups_are_deleted_once_the_state_of_all_of_them_is(
    node: ShareNode, held: HeldPersister
) -> None:
    groups = ("g", "h", "i")
    for group in groups:
        node.joins(group, "m")
        held.answer()
        node.leaves(group, "m")
    asked = node.start_delete(*groups)
    held.answer()
    held.answer(E.COORDINATOR_NOT_AVAILABLE)
    assert list(node.shard().groups) == ["g", "h", "i"]
    held.answer()
    assert asked() == {"g": E.NONE, "h": E.COORDINATOR_NOT_AVAILABLE, "i": E.NONE}
    assert list(node.shard().groups) == ["h"]


def test_a_group_with_members_remains_although_they_leave_during_the_deletion(
    node: ShareNode, held: HeldPersister
) -> None:
    for group in ("g", "h"):
        node.joins(group, "m")
        held.answer()
    node.leaves("g", "m")
    asked = node.start_delete("g", "h")
    node.leaves("h", "m")
    held.answer()
    assert asked() == {"g": E.NONE, "h": E.NON_EMPTY_GROUP}
    assert list(node.shard().groups) == ["h"]


def test_a_deletion_whose_coordinator_moves_meanwhile_is_one_for_the_next(
    node: ShareNode, held: HeldPersister
) -> None:
    node.joins("g", "m")
    held.answer()
    node.leaves("g", "m")
    asked = node.start_delete("g", "none")
    node.cluster.brokers[1].groups.reload("g", 0)
    held.answer()
    assert asked() == {"g": E.NOT_COORDINATOR, "none": E.NOT_COORDINATOR}
    assert node.noted()["deleting"] == ["t"]


def test_nothing_of_a_deleted_group_is_left_in_a_compacted_log(node: ShareNode) -> None:
    node.joins("g", "m")
    node.leaves("g", "m")
    asked = node.start_delete("g")
    assert asked() == {"g": E.NONE}
    newest = {record.key: record.value for record in node.log("g")}
    assert newest
    assert set(newest.values()) == {None}


def test_a_group_whose_state_cannot_be_deleted_remains_and_may_be_deleted_later(
    node: ShareNode, held: HeldPersister
) -> None:
    node.joins("g", "m")
    held.answer()
    node.leaves("g", "m")
    asked = node.start_delete("g")
    held.answer(E.COORDINATOR_NOT_AVAILABLE)
    assert asked() == {"g": E.COORDINATOR_NOT_AVAILABLE}
    assert node.noted()["deleting"] == ["t"]
    asked = node.start_delete("g")
    assert held.partitions() == [0, 1, 2]
    held.answer()
    assert asked() == {"g": E.NONE}


def test_groups_of_all_types_are_deleted_together(node: ShareNode) -> None:
    node.stable("m")
    node.stable("n", group="empty")
    node.leaves("empty", "n")
    node.member("classic")
    assert node.deletes("g", "empty", "classic", "none") == {
        "g": E.NON_EMPTY_GROUP,
        "empty": E.NONE,
        "classic": E.NON_EMPTY_GROUP,
        "none": E.GROUP_ID_NOT_FOUND,
    }


# -------------------------------------------------------------------------------------- actions


def test_a_rebalance_raises_the_epoch(node: ShareNode) -> None:
    node.stable("m")
    epoch = node.share_group().epoch
    node.cluster.rebalance_group("g")
    assert node.share_group().epoch == epoch + 1
    assert node.ticks("g", "m").member_epoch == epoch + 1


@pytest.mark.parametrize("action", ["expire_member", "kick_member"])
def test_members_may_be_removed(node: ShareNode, action: str) -> None:
    node.stable("m", "n")
    assert getattr(node.cluster, action)("g", "n") == ["n"]
    assert list(node.share_group().members) == ["m"]
    node.ticks("g", "m")
    assert node.assigned() == {"m": {"t": [0, 1, 2]}}


def test_there_is_no_static_member_to_fence(node: ShareNode) -> None:
    node.stable("m")
    with pytest.raises(ActionError, match="members of share groups have no instance ids"):
        node.cluster.fence_instance("g", "i")


def test_an_assignment_is_overridden_until_the_group_changes(node: ShareNode) -> None:
    node.stable("m", "n")
    mine = {"m": {"t": [1]}, "n": {"t": [1]}}
    node.cluster.assign_group("g", mine)
    for _ in range(3):
        node.ticks("g", "m")
        node.ticks("g", "n")
    assert node.assigned() == mine
    node.leaves("g", "n")
    node.ticks("g", "m")
    assert node.assigned() == {"m": {"t": [0, 1, 2]}}


def test_an_override_may_be_taken_back(node: ShareNode) -> None:
    node.stable("m")
    node.cluster.assign_group("g", {"m": {"t": [1]}})
    node.ticks("g", "m")
    node.cluster.assign_group("g", {})
    node.ticks("g", "m")
    assert node.assigned() == {"m": {"t": [0, 1, 2]}}


def test_settings_without_configs_are_the_defaults_of_the_configs() -> None:
    assert ShareGroups.read_settings(ClusterConfigs({}), "g") == ShareSettings()


def test_a_group_is_subscribed_to_the_topics_of_its_members(node: ShareNode) -> None:
    node.joins("g", "a")
    group = node.share_group("g")
    assert group.is_subscribed("t")
    assert not group.is_subscribed("other")
