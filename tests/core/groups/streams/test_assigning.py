"""Tasks by the partitions that they read."""

from __future__ import annotations

import pytest

from mockbroker.core.errors import ActionError
from mockbroker.core.groups.streams.assigning import active_tasks, checked_tasks
from tests.support.streams_playbook import StreamsPlay, reading


def test_partitions_of_two_topics_of_a_subtopology_are_its_tasks() -> None:
    play = StreamsPlay(t=3, u=3)
    play.join("a", reading("t", "u"))
    assert active_tasks(play.group, {"t": [0], "u": [2]}) == {"0": frozenset({0, 2})}


def test_a_topic_of_no_subtopology_is_refused() -> None:
    play = StreamsPlay(t=3)
    play.join("a", reading("t"))
    with pytest.raises(ActionError, match="does not read 'x'"):
        active_tasks(play.group, {"x": [0]})


def test_tasks_are_known_before_the_heartbeat_that_configures_the_topology() -> None:
    play = StreamsPlay(t=3)
    play.join("a", reading("t"))
    assert play.group.configured is None
    assert checked_tasks(play.group, {"0": [0, 2]}) == {"0": frozenset({0, 2})}
    with pytest.raises(ActionError, match="has tasks 0 to 2, not 3"):
        checked_tasks(play.group, {"0": [3]})


def test_tasks_are_unknown_without_a_topology_or_its_topics() -> None:
    play = StreamsPlay()
    with pytest.raises(ActionError, match="not known yet"):
        checked_tasks(play.group, {})
    play.join("a", reading("t"))
    with pytest.raises(ActionError, match="not known yet"):
        checked_tasks(play.group, {})
