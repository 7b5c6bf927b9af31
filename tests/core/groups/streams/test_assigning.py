"""Tasks by the partitions that they read."""

from __future__ import annotations

import pytest

from mockbroker.core.errors import ActionError
from mockbroker.core.groups.streams.assigning import active_tasks
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
