"""The events of streams groups: tasks that moved, and statuses."""

from __future__ import annotations

from mockbroker.core.events import Event, StreamsStatusSent, StreamsTasksMoved
from mockbroker.core.groups.streams.emitters import emit_tasks
from mockbroker.core.groups.streams.members import StreamsMember
from mockbroker.core.groups.streams.tasks import OwnedTasks
from tests.support.streams_node import StreamsNode, topology


def moves(events: list[Event]) -> list[tuple[str, str, int, str, str, tuple[int, ...]]]:
    """Member, change, member epoch, role, subtopology and partitions."""
    return [
        (e.member, e.change, e.member_epoch, e.role, e.subtopology, e.tasks)
        for e in events
        if isinstance(e, StreamsTasksMoved)
    ]


def test_tasks_of_a_member_that_joins_and_leaves() -> None:
    node = StreamsNode()
    events: list[Event] = []
    node.cluster.runtime.on_event.append(events.append)
    node.joins("g", "a")
    (assigned,) = moves(events)
    assert assigned[:2] == ("a", "assigned")
    assert assigned[3:] == ("active", "0", (0, 1, 2))
    assert assigned[2] == node.streams_group().members["a"].epoch
    events.clear()
    node.beats("g", "a", -1)
    assert moves(events) == [("a", "revoked", 0, "active", "0", (0, 1, 2))]


def test_a_task_is_revoking_before_it_is_revoked() -> None:
    """Each change is told once, by member, role and subtopology."""
    node = StreamsNode()
    events: list[Event] = []
    node.cluster.runtime.on_event.append(events.append)
    first = StreamsMember(
        member_id="a",
        epoch=1,
        assigned=OwnedTasks({"0": {0: 1, 1: 1}}, {"1": frozenset((4,))}),
    )
    second = StreamsMember(
        member_id="a",
        epoch=1,
        assigned=OwnedTasks({"0": {0: 1}}, {}, {"1": frozenset((5,))}),
        revoking=OwnedTasks({"0": {1: 1}}),
    )
    third = StreamsMember(member_id="a", epoch=2, assigned=second.assigned)
    for before, after in (({}, {"a": first}), ({"a": first}, {"a": second}),
                          ({"a": second}, {"a": third}), ({"a": third}, {"a": third})):  # fmt: skip
        emit_tasks(node.cluster.runtime, 1, "g", before, after)
    assert moves(events) == [
        ("a", "assigned", 1, "active", "0", (0, 1)),
        ("a", "assigned", 1, "standby", "1", (4,)),
        ("a", "revoked", 1, "standby", "1", (4,)),
        ("a", "revoking", 1, "active", "0", (1,)),
        ("a", "assigned", 1, "warmup", "1", (5,)),
        ("a", "revoked", 2, "active", "0", (1,)),
    ]


def test_a_status_is_told_as_often_as_it_is_sent() -> None:
    node = StreamsNode()
    events: list[Event] = []
    node.cluster.runtime.on_event.append(events.append)
    answer = node.joins("g", "a", topology=topology("missing"))
    statuses = [(e.member, e.status, e.detail) for e in events if isinstance(e, StreamsStatusSent)]
    assert [detail for _, _, detail in statuses] == [each.status_detail for each in answer.status]
    assert statuses[0][:2] == ("a", "MISSING_SOURCE_TOPICS")
