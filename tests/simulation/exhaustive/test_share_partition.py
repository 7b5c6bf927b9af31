"""A share partition keeps its word after any few events; broken ones are found out."""

from __future__ import annotations

import pytest

from mockbroker.core.share import in_flight
from mockbroker.core.share.in_flight import InFlightState
from mockbroker.core.share.partition import SharePartition
from mockbroker.core.share.states import RETURN_STATES, RecordState, ReturnFacts
from tests.simulation.exhaustive.explorer import Counterexample, explore
from tests.simulation.exhaustive.share_partition import SharePartitionWorld


def counterexample(depth: int) -> Counterexample:
    found = explore(SharePartitionWorld, depth).counterexample
    assert found is not None
    return found


def test_a_record_that_is_released_at_the_limit_is_found(monkeypatch: pytest.MonkeyPatch):
    always = {**RETURN_STATES, ReturnFacts(False, True): RecordState.AVAILABLE}
    monkeypatch.setattr(in_flight, "RETURN_STATES", always)
    assert counterexample(5).violation == "no record is delivered above the limit"


def test_an_acknowledgement_that_is_answered_before_its_write_is_found(
    monkeypatch: pytest.MonkeyPatch,
):
    write = SharePartition.write

    def answers_first(self: SharePartition, changes, then):
        then(None)
        write(self, changes, lambda _: None)

    monkeypatch.setattr(SharePartition, "write", answers_first)
    found = counterexample(2)
    assert found.violation in (
        "an acknowledged record is written",
        "the share coordinator has what was accepted",
    )
    assert found.events[-1][0] == "accept"


def test_a_failed_write_that_is_not_rolled_back_is_found(monkeypatch: pytest.MonkeyPatch):
    complete = InFlightState.complete

    def keeps(self: InFlightState, *, written: bool, now_ms: int) -> None:
        complete(self, written=True, now_ms=now_ms)

    monkeypatch.setattr(InFlightState, "complete", keeps)
    assert counterexample(3).violation == "an acknowledged record is written"


def test_an_owner_that_remains_after_the_release_is_found(monkeypatch: pytest.MonkeyPatch):
    leave = InFlightState._leave_acquired

    def keeps_owner(self: InFlightState, event, limit, *, below_start):
        owner = self.member_id
        leave(self, event, limit, below_start=below_start)
        self.member_id = owner

    monkeypatch.setattr(InFlightState, "_leave_acquired", keeps_owner)
    assert counterexample(2).violation == "an acquired record has one owner"
