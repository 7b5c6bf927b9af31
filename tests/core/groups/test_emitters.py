"""The events of groups."""

from __future__ import annotations

from typing import TypeVar

from mockbroker.core.events import Event, GroupLoaded, GroupMoved, OffsetCommitted, OffsetRemoved
from mockbroker_protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tests.support.consumer_node import ConsumerNode
from tests.support.group_node import GroupNode, commit_request

E = TypeVar("E", bound=Event)


def listen(node: GroupNode) -> list[Event]:
    """The events from now on."""
    events: list[Event] = []
    node.cluster.runtime.on_event.append(events.append)
    return events


def of_kind(events: list[Event], kind: type[E]) -> list[E]:
    return [each for each in events if isinstance(each, kind)]


def test_each_group_that_a_coordinator_loads_is_emitted_with_its_state_and_members() -> None:
    node = GroupNode()
    node.stable("g")
    node.shard("g").unload()
    events = listen(node)
    node.shard("g")
    (loaded,) = of_kind(events, GroupLoaded)
    assert (loaded.node_id, loaded.group, loaded.protocol) == (1, "g", "classic")
    assert (loaded.state, loaded.generation, loaded.members) == ("Stable", 1, 1)


def test_each_offset_that_a_request_commits_is_emitted() -> None:
    node = GroupNode()
    events = listen(node)
    node.ask(commit_request({("t", 0): 5, ("t", 2): 7}))
    told = of_kind(events, OffsetCommitted)
    assert [(each.topic, each.partition, each.offset) for each in told] == [
        ("t", 0, 5),
        ("t", 2, 7),
    ]
    assert {(each.node_id, each.group, each.transactional) for each in told} == {(1, "g", False)}


def test_each_offset_that_a_request_deletes_is_emitted() -> None:
    node = GroupNode()
    node.ask(commit_request({("t", 0): 5, ("t", 1): 6, ("t", 2): 7}))
    events = listen(node)
    partitions = [OffsetDeleteRequestPartition(index) for index in (0, 2)]
    topics = [OffsetDeleteRequestTopic(name="t", partitions=partitions)]
    node.ask(OffsetDeleteRequest(group_id="g", topics=topics))
    told = of_kind(events, OffsetRemoved)
    assert [(each.topic, each.partition, each.reason) for each in told] == [
        ("t", 0, "delete_offsets"),
        ("t", 2, "delete_offsets"),
    ]
    assert {(each.node_id, each.group) for each in told} == {(1, "g")}


def test_a_consumer_group_is_emitted_when_its_state_or_its_epoch_has_changed() -> None:
    node = ConsumerNode()
    events = listen(node)
    node.joins("g", "m")
    (moved,) = of_kind(events, GroupMoved)
    assert (moved.node_id, moved.group, moved.protocol) == (1, "g", "consumer")
    assert (moved.former, moved.state, moved.generation) == ("Empty", "Stable", 2)
    end = node.shard().partition.log_end_offset
    node.beats("g", "m", 2, rack_id="r")
    assert node.shard().partition.log_end_offset == end + 1
    assert of_kind(events, GroupMoved) == [moved]
