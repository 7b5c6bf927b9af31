"""Heartbeats of streams members: joins, epochs, topologies, statuses, tasks."""

from __future__ import annotations

import pytest

from mockbroker.core.groups.streams.group import StreamsSettings
from mockbroker.core.groups.streams.members import Endpoint
from mockbroker.core.groups.streams.states import StreamsGroupState
from mockbroker.core.groups.streams.topology import Subtopology
from mockbroker_protocol import ErrorCode
from tests.support.streams_playbook import (
    SETTINGS,
    StreamsPlay,
    codes,
    reading,
)

T = reading("t")


def test_the_first_member_gets_all_tasks_at_once() -> None:
    play = StreamsPlay(t=3)
    answer = play.join("a", T)
    assert answer.error is ErrorCode.NONE
    assert answer.assigned == ((("0", (0, 1, 2)),), (), ())
    assert (answer.epoch, answer.statuses, answer.missing) == (2, (), ())
    assert play.group.state is StreamsGroupState.STABLE


def test_tasks_are_sent_only_when_they_change() -> None:
    play = StreamsPlay(t=3)
    play.join("a", T)
    assert play.own_all("a").assigned is None
    assert play.join("a", T).assigned == ((("0", (0, 1, 2)),), (), ())


def test_a_second_member_waits_until_the_first_has_revoked() -> None:
    play = StreamsPlay(t=4)
    play.join("a", T)
    assert play.join("b", T).assigned == ((), (), ())
    assert play.group.state is StreamsGroupState.RECONCILING
    assert play.beat("a", None, {"0": [0, 1, 2, 3]}).assigned == ((("0", (0, 1)),), (), ())
    assert play.own_all("b").assigned is None
    play.own_all("a")
    assert play.own_all("b").assigned == ((("0", (2, 3)),), (), ())
    assert play.group.state is StreamsGroupState.STABLE


def test_epochs_of_requests_are_fenced_unless_an_answer_was_lost() -> None:
    play = StreamsPlay(t=2)
    play.join("a", T)
    for epoch, which in ((3, "greater"), (1, "smaller")):
        refused = play.beat("a", epoch, {"0": [5]})
        assert refused.error is ErrorCode.FENCED_MEMBER_EPOCH
        assert which in str(refused.message)
    play.join("b", T)
    play.settle("a", "b")
    previous = play.group.members["a"].previous_epoch
    assert play.beat("a", previous, {"0": [0]}).error is ErrorCode.NONE
    assert play.beat("a", previous, None).error is ErrorCode.FENCED_MEMBER_EPOCH


def test_an_unknown_member_must_join() -> None:
    play = StreamsPlay(t=1)
    play.join("a", T)
    refused = play.beat("x", 1)
    assert refused.error is ErrorCode.UNKNOWN_MEMBER_ID
    assert refused.message == "Member x is not a member of group g."


def test_a_full_group_takes_no_more_members() -> None:
    play = StreamsPlay(StreamsSettings(initial_rebalance_delay_ms=0, size_max=1), t=1)
    play.join("a", T)
    refused = play.join("b", T)
    assert refused.error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert "1 members" in str(refused.message)


def test_a_member_with_an_older_topology_is_told_and_gets_tasks() -> None:
    play = StreamsPlay(t=2)
    play.join("a", reading("t", epoch=4))
    answer = play.join("b", reading("other", epoch=3))
    assert codes(answer) == ["STALE_TOPOLOGY"]
    assert answer.statuses[0].detail == (
        "The member's topology epoch 3 is behind the group's topology epoch 4."
    )
    play.settle("a", "b")
    assert play.active("b") == {"0": [1]}


@pytest.mark.parametrize("epoch", [0, 1])
def test_another_topology_is_refused(epoch: int) -> None:
    play = StreamsPlay(t=1)
    play.join("a", T)
    refused = play.join("b", reading("other", epoch=epoch))
    assert refused.error is ErrorCode.INVALID_REQUEST
    assert refused.message == "Topology updates are not supported yet."


def test_missing_source_topics_leave_the_group_not_ready() -> None:
    play = StreamsPlay()
    answer = play.join("a", T)
    assert codes(answer) == ["MISSING_SOURCE_TOPICS"]
    assert play.group.state is StreamsGroupState.NOT_READY
    play.topics.put("t", 2)
    assert play.own_all("a").assigned == ((("0", (0, 1)),), (), ())


def test_internal_topics_are_asked_for_until_they_exist() -> None:
    play = StreamsPlay(t=2)
    answer = play.join("a", reading("t", changelog="c"))
    assert codes(answer) == ["MISSING_INTERNAL_TOPICS"]
    assert [(topic.name, topic.partitions) for topic in answer.missing] == [("c", 2)]
    assert [topic.name for topic in play.own_all("a").missing] == ["c"]
    play.topics.put("c", 2)
    assert play.own_all("a").assigned == ((("0", (0, 1)),), (), ())


def test_a_source_topic_that_grows_makes_the_changelog_too_small() -> None:
    play = StreamsPlay(t=2, c=2)
    play.join("a", reading("t", changelog="c"))
    play.topics.put("t", 3)
    answer = play.own_all("a")
    assert codes(answer) == ["INCORRECTLY_PARTITIONED_TOPICS"]
    play.settle("a")
    assert play.active("a") == {}


def test_an_invalid_topology_creates_no_group() -> None:
    play = StreamsPlay(t=2)
    nothing = reading()
    refused = play.join("a", nothing)
    assert refused.error is ErrorCode.STREAMS_INVALID_TOPOLOGY
    assert not play.stored


def test_owned_tasks_must_be_tasks_of_the_topology() -> None:
    play = StreamsPlay(t=2)
    play.join("a", T)
    unknown = play.beat("a", None, {"7": [0]})
    assert unknown.message == "Subtopology 7 does not exist in the topology."
    outside = play.beat("a", None, {"0": [9]})
    assert outside.message == (
        "Task 9 for subtopology 0 is invalid. Number of tasks for this subtopology: 2"
    )


def test_equal_keys_are_errors_of_the_server_as_in_kafka() -> None:
    play = StreamsPlay(t=2)
    refused = play.join("a", T, client_tags=(("zone", "x"), ("zone", "y")))
    assert (refused.error, refused.message) == (ErrorCode.UNKNOWN_SERVER_ERROR, None)


def test_the_first_assignment_waits_for_the_initial_rebalance_delay() -> None:
    play = StreamsPlay(StreamsSettings(assignment_interval_ms=0), t=4)
    for member in "ab":
        answer = play.join(member, T)
        assert codes(answer) == ["ASSIGNMENT_DELAYED"]
        assert "initial rebalance delay" in answer.statuses[0].detail
        assert answer.assigned == ((), (), ())
    play.own_all("a")
    play.advance(2999)
    assert play.group.targets == {}
    play.advance(1)
    assert play.group.assignment_epoch == play.group.epoch
    assert set(play.group.targets) == {"a", "b"}
    play.settle("a", "b")
    assert sorted(play.active("a")["0"] + play.active("b")["0"]) == [0, 1, 2, 3]
    assert len(play.active("a")["0"]) == 2


def test_members_that_have_sent_one_heartbeat_are_assigned_by_the_second_one() -> None:
    """The end of the initial rebalance delay finds no configured topology."""
    play = StreamsPlay(StreamsSettings(assignment_interval_ms=0), t=4)
    play.join("a", T)
    play.advance(3000)
    assert play.group.targets == {}
    play.own_all("a")
    assert play.active("a") == {"0": [0, 1, 2, 3]}


def test_the_initial_rebalance_delay_of_an_empty_group_ends_without_an_assignment() -> None:
    play = StreamsPlay(StreamsSettings(assignment_interval_ms=0), t=4)
    play.join("a", T)
    play.own_all("a")
    play.leave("a")
    before = list(play.stored)
    play.advance(3000)
    assert play.stored == before


def test_assignments_are_an_interval_apart() -> None:
    play = StreamsPlay(StreamsSettings(initial_rebalance_delay_ms=0), t=4)
    play.join("a", T)
    answer = play.join("b", T)
    assert codes(answer) == ["ASSIGNMENT_DELAYED"]
    assert "assignment interval" in answer.statuses[0].detail
    play.now_ms += 1000
    play.settle("b", "a", "b")
    assert play.active("b") == {"0": [2, 3]}


def test_standbys_follow_a_change_of_the_config() -> None:
    play = StreamsPlay(t=2, c=2)
    topology = reading("t", changelog="c")
    play.join("a", topology)
    play.join("b", topology)
    play.settle("a", "b")
    assert play.standby("a") == {}
    play.group.settings = StreamsSettings(
        initial_rebalance_delay_ms=0, assignment_interval_ms=0, standby_replicas=1
    )
    play.settle("a", "b")
    assert play.standby("a") == play.active("b")
    assert play.standby("b") == play.active("a")


def test_a_requested_shutdown_is_told_to_every_member_until_all_are_gone() -> None:
    play = StreamsPlay(t=2)
    play.join("a", T)
    play.join("b", T)
    play.leave("b", shutdown=True)
    answer = play.own_all("a")
    assert codes(answer) == ["SHUTDOWN_APPLICATION"]
    assert "member b encountered a fatal error" in answer.statuses[0].detail
    play.leave("a")
    assert codes(play.join("c", T)) == []


def test_a_shutdown_that_a_heartbeat_requests_is_told_to_the_others_too() -> None:
    play = StreamsPlay(t=2)
    play.join("a", T)
    play.join("b", T)
    play.settle("a", "b")
    asked = play.beat("a", play.group.members["a"].epoch, shutdown=True)
    told = play.own_all("b")
    assert codes(asked) == codes(told) == ["SHUTDOWN_APPLICATION"]
    assert "member a encountered a fatal error" in told.statuses[0].detail


def test_topics_are_compared_once_for_each_version_of_the_metadata() -> None:
    play = StreamsPlay(t=2)
    play.join("a", T)
    play.own_all("a")
    assert play.group.compared_metadata_version == play.group.topics.version


def test_endpoints_are_sent_when_they_have_changed() -> None:
    play = StreamsPlay(t=2)
    endpoint = Endpoint("h", 1)
    first = play.join("a", T, endpoint=endpoint)
    assert first.endpoint_epoch == 0
    assert first.endpoints is not None
    assert play.beat("a", endpoint_epoch=0).endpoints is None
    second = play.join("b", T, endpoint=Endpoint("i", 2))
    assert second.endpoint_epoch == 1
    answer = play.beat("a", endpoint_epoch=0)
    assert answer.endpoints is not None
    assert {each.endpoint.host for each in answer.endpoints} == {"h", "i"}


def test_a_failed_write_changes_nothing() -> None:
    play = StreamsPlay(t=2)
    play.error = ErrorCode.NOT_COORDINATOR
    assert play.join("a", T).error is ErrorCode.NOT_COORDINATOR
    assert not play.group.members
    play.error = ErrorCode.NONE
    assert play.join("a", T).assigned == ((("0", (0, 1)),), (), ())


def test_a_new_group_keeps_nothing_that_is_not_in_the_log() -> None:
    """As Kafka, which makes another group of the first records."""
    play = StreamsPlay(SETTINGS, t=1)
    answer = play.join("a", T, shutdown=True)
    assert codes(answer) == ["SHUTDOWN_APPLICATION"]
    assert play.group.configured is None
    assert codes(play.own_all("a")) == []


def test_subtopologies_share_out_their_tasks() -> None:
    play = StreamsPlay(t=2, u=3)
    both = reading("t")
    topology = type(both)(0, (*both.subtopologies, Subtopology("1", ("u",))))
    play.join("a", topology)
    assert play.active("a") == {"0": [0, 1], "1": [0, 1, 2]}
