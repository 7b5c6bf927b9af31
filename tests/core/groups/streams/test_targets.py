"""A new target assignment, and the changes that store it."""

from __future__ import annotations

from mockbroker.core.groups.modern.events import TargetAssignmentChange, TargetEpochChange
from mockbroker.core.groups.streams.configured import ConfiguredTopology, configure
from mockbroker.core.groups.streams.faults import TopicConfigurationError
from mockbroker.core.groups.streams.states import StatusCode
from mockbroker.core.groups.streams.targets import new_targets
from mockbroker.core.groups.streams.tasks import NO_TASKS
from tests.support.streams_playbook import StreamsPlay, reading


def test_only_targets_that_differ_are_stored() -> None:
    play = StreamsPlay(t=2)
    play.join("a", reading("t"))
    assert play.group.topology is not None
    configured = configure(play.group.topology, play.group.partition_count, 100)
    targets, changes = new_targets(play.group, play.group.members, configured, 9, 5)
    assert targets["a"] == play.group.targets["a"]
    assert changes == [TargetEpochChange(9, 5)]


def test_nobody_gets_a_task_before_the_topology_is_ready() -> None:
    play = StreamsPlay(t=2)
    play.join("a", reading("t"))
    fault = TopicConfigurationError(StatusCode.MISSING_SOURCE_TOPICS, "gone")
    nothing = ConfiguredTopology(0, None, {}, fault)
    _, changes = new_targets(play.group, play.group.members, nothing, 9, 5)
    assert changes == [TargetAssignmentChange("a", NO_TASKS), TargetEpochChange(9, 5)]
