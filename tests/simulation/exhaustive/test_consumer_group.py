"""No interleaving of a few events breaks a group of the new protocol; broken ones are found out."""

from __future__ import annotations

import pytest

from mockbroker.core.groups.consumer import classic, heartbeat, reconcile
from mockbroker.core.groups.consumer.group import ConsumerGroup
from mockbroker.core.groups.consumer.states import ConsumerGroupState, MemberState
from tests.simulation.exhaustive.consumer_group import ConsumerGroupWorld
from tests.simulation.exhaustive.explorer import Counterexample, explore

EMPTY, STABLE, WAITS = ((beginning,) for beginning in ConsumerGroupWorld.beginnings)


def counterexample(depth: int, beginnings: tuple[str, ...], settle_every: int = 0):
    found = explore(
        ConsumerGroupWorld, depth, beginnings=beginnings, settle_every=settle_every
    ).counterexample
    assert isinstance(found, Counterexample)
    return found


def test_the_stable_beginning_is_a_stable_group_of_three():
    world = ConsumerGroupWorld.begin(*STABLE)
    assert len(world.group.members) == 3
    assert world.group.state is ConsumerGroupState.STABLE


def test_the_third_beginning_has_a_member_with_something_to_give_up():
    world = ConsumerGroupWorld.begin(*WAITS)
    states = [member.state for member in world.group.members.values()]
    assert states == [MemberState.UNREVOKED, MemberState.UNRELEASED]


def test_a_partition_given_away_before_it_was_given_up_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reconcile, "_is_free", lambda *_: True)
    found = counterexample(3, EMPTY)
    assert found.violation == "a partition has one owner at a time"
    assert found.events == (("beat", 0), ("time_passes",), ("beat", 1))


def test_a_revocation_that_nobody_waits_for_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reconcile, "owns_any", lambda *_: False)
    found = counterexample(4, EMPTY)
    assert found.violation == "no member gets a partition that another still has"


def test_a_member_that_may_take_its_time_to_revoke_is_found(monkeypatch: pytest.MonkeyPatch):
    submit = heartbeat.submit

    def without_timers(group: ConsumerGroup, update, answer) -> None:
        update.timers = [timer for timer in update.timers if timer.kind.name == "SESSION"]
        submit(group, update, answer)

    for module in (heartbeat, classic):
        monkeypatch.setattr(module, "submit", without_timers)
    assert counterexample(4, EMPTY).violation == "a wait for a member has an end"


def test_epochs_that_are_not_checked_are_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(heartbeat, "_check_epoch", lambda *_: None)
    found = counterexample(2, EMPTY)
    assert found.violation == "an epoch that no answer had is fenced"


def test_a_group_that_never_comes_to_rest_is_found(monkeypatch: pytest.MonkeyPatch):
    """Each state is fine; only that it stays so for ever shows when all is left in peace."""

    def never(group: ConsumerGroup, now_ms: int) -> bool:
        return group.assignment_timestamp_ms == 0

    monkeypatch.setattr(ConsumerGroup, "may_assign", never)
    found = counterexample(2, EMPTY, settle_every=1)
    assert found.violation.startswith("a group in peace becomes Stable")
