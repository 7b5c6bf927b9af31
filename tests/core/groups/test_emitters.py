"""The events of groups."""

from __future__ import annotations

from mockbroker.core.events import Event, GroupLoaded
from tests.support.group_node import GroupNode


def test_each_group_that_a_coordinator_loads_is_emitted_with_its_state_and_members() -> None:
    node = GroupNode()
    node.stable("g")
    node.shard("g").unload()
    events: list[Event] = []
    node.cluster.runtime.on_event.append(events.append)
    node.shard("g")
    (loaded,) = [each for each in events if isinstance(each, GroupLoaded)]
    assert (loaded.node_id, loaded.group, loaded.protocol) == (1, "g", "classic")
    assert (loaded.state, loaded.generation, loaded.members) == ("Stable", 1, 1)
