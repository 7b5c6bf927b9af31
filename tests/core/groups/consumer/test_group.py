"""Counts and reverse maps follow the members; a group's log may have been compacted."""

from __future__ import annotations

import msgspec

from mockbroker.core.groups.consumer.events import RegexChange, ResolvedRegex
from mockbroker.core.groups.consumer.group import ConsumerGroup, ConsumerSettings, Counter
from mockbroker.core.groups.consumer.members import ConsumerMember
from mockbroker.core.groups.consumer.states import MemberState
from mockbroker.core.groups.modern.events import (
    CurrentAssignment,
    CurrentAssignmentChange,
    MemberChange,
)
from tests.support.consumer_playbook import Playbook, Topics, join, leave, topic_id

T = topic_id("t")


def owning(epoch: int, *partitions: int) -> CurrentAssignment:
    return CurrentAssignment(
        epoch, epoch - 1, MemberState.STABLE, {T: dict.fromkeys(partitions, epoch)}, {}
    )


def test_a_counter_forgets_what_is_not_there() -> None:
    counter = Counter()
    counter.count("a", 1)
    counter.count("a", 1)
    counter.count("", 1)
    counter.count(None, 1)
    assert counter == {"a": 2}
    counter.count("a", -2)
    counter.count("b", -1)
    counter.count("b", 1)
    assert counter == {}


def test_names_and_regexes_are_counted_by_member() -> None:
    play = Playbook(Topics(t=1, u=1))
    play >> join("a", "t", regex="u.*")
    play.take()
    play >> join("b", "t")
    play.take()
    assert play.group.subscribed_names() == {"t", "u"}
    play >> leave("a")
    play.take()
    assert play.group.subscribed_names() == {"t"}


def test_a_partition_that_went_to_another_is_not_freed_by_its_former_owner() -> None:
    """Compaction drops the record in between, so the new owner may be read first."""
    group = ConsumerGroup("g", ConsumerSettings(), Topics(t=2))
    group.apply(
        [
            CurrentAssignmentChange("a", owning(2, 0, 1)),
            CurrentAssignmentChange("b", owning(4, 1)),
            CurrentAssignmentChange("a", owning(3, 0)),
        ]
    )
    assert [group.current_partition_epoch(T, p) for p in range(3)] == [3, 4, -1]


def test_records_of_a_member_may_come_in_any_order() -> None:
    member = ConsumerMember(member_id="a", topic_names=frozenset({"t"}), instance_id="i")
    changes = [MemberChange("a", member), CurrentAssignmentChange("a", owning(2, 0))]
    forwards, backwards = (ConsumerGroup("g", ConsumerSettings(), Topics(t=1)) for _ in range(2))
    forwards.apply(changes)
    backwards.apply(reversed(changes))
    assert forwards.members == backwards.members
    assert forwards.static_members == backwards.static_members == {"i": "a"}


def test_tombstones_of_what_is_not_there_change_nothing() -> None:
    group = ConsumerGroup("g", ConsumerSettings(), Topics())
    group.apply(
        [CurrentAssignmentChange("a", None), MemberChange("a", None), RegexChange("r", None)],
    )
    assert (group.members, group.resolved) == ({}, {})


def test_a_regex_that_is_resolved_anew_replaces_its_topics() -> None:
    group = ConsumerGroup("g", ConsumerSettings(), Topics())
    resolved = ResolvedRegex(frozenset({"t", "u"}), 1, 1)
    group.apply([RegexChange("r", resolved)])
    group.apply([RegexChange("r", msgspec.structs.replace(resolved, topics=frozenset({"u"})))])
    assert group.subscribed_names() == {"u"}
