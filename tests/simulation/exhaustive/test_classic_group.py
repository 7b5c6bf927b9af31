"""No interleaving of a few events breaks a classic group; broken ones are found out."""

from __future__ import annotations

import pytest

from mockbroker.core.groups import machine, rebalance
from mockbroker.core.groups.classic import ClassicGroup
from mockbroker_protocol import ErrorCode
from tests.simulation.exhaustive.classic_group import ClassicGroupWorld
from tests.simulation.exhaustive.explorer import Counterexample, explore

EMPTY, _, STABLE, _ = ((beginning,) for beginning in ClassicGroupWorld.beginnings)


def counterexample(depth: int, beginnings: tuple[str, ...]) -> Counterexample:
    found = explore(ClassicGroupWorld, depth, beginnings=beginnings).counterexample
    assert found is not None
    return found


def test_the_stable_beginning_is_a_stable_group_of_three():
    world = ClassicGroupWorld.begin(*STABLE)
    assert len(world.group.members) == 3
    assert all(client.step == "heartbeat" for client in world.clients)


def test_a_request_that_is_not_answered_when_its_member_leaves_is_found(
    monkeypatch: pytest.MonkeyPatch,
):
    def leaves_silently(self: ClassicGroup, member, error, member_id) -> None:
        self.take_join_callback(member)
        member.sync_callback = None

    monkeypatch.setattr(ClassicGroup, "fail_waiting_requests", leaves_silently)
    assert counterexample(2, STABLE).violation == "the group has each member that waits"


def test_a_round_without_an_end_is_found(monkeypatch: pytest.MonkeyPatch):
    prepare = rebalance.prepare_rebalance

    def forgets_the_timer(group: ClassicGroup, reason: str, now_ms: int) -> None:
        prepare(group, reason, now_ms)
        group.join_deadline_ms = None

    for module in (machine, rebalance):
        monkeypatch.setattr(module, "prepare_rebalance", forgets_the_timer)
    assert counterexample(2, STABLE).violation == "a wait for the join phase has an end"


def test_a_commit_of_an_old_generation_that_passes_is_found(monkeypatch: pytest.MonkeyPatch):
    check = ClassicGroup.check_commit

    def looks_at_no_generation(self: ClassicGroup, member_id, instance_id, generation, now_ms):
        return check(self, member_id, instance_id, self.generation, now_ms)

    monkeypatch.setattr(ClassicGroup, "check_commit", looks_at_no_generation)
    found = counterexample(3, EMPTY)
    assert found.violation == "a commit of another generation is refused"
    assert found.events == (("join", 1), ("join", 2))


def test_an_assignment_in_force_before_it_is_stored_is_found(monkeypatch: pytest.MonkeyPatch):
    """A failed write that is taken for a good one leaves a Stable group that the log lacks."""
    persisted = rebalance.on_assignment_persisted

    def takes_it_for_stored(group: ClassicGroup, outcome, now_ms: int) -> None:
        persisted(group, type(outcome)(outcome.persist, ErrorCode.NONE), now_ms)

    monkeypatch.setattr(machine, "on_assignment_persisted", takes_it_for_stored)
    assert counterexample(4, EMPTY).events[-1] == ("not_stored",)
