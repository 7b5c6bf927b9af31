"""No interleaving of a few events breaks a transactional id; broken ones are found out."""

from __future__ import annotations

import pytest

from mockbroker.core.txn import machine
from mockbroker.core.txn.events import AddPartitions, Marked
from mockbroker.core.txn.machine import TransactionMetadata
from mockbroker.core.txn.states import ANSWERS, TransactionState, TxnAction, TxnRequest
from tests.simulation.exhaustive.explorer import Counterexample, explore
from tests.simulation.exhaustive.transactional_id import TransactionalIdWorld

SECOND, FIRST, BOTH, OPEN_SECOND, OPEN_FIRST, LAST = (
    (beginning,) for beginning in TransactionalIdWorld.beginnings
)


def counterexample(depth: int, beginnings: tuple[str, ...], settle_every: int = 0):
    found = explore(
        TransactionalIdWorld, depth, beginnings=beginnings, settle_every=settle_every
    ).counterexample
    assert isinstance(found, Counterexample)
    return found


@pytest.mark.parametrize("beginning", [OPEN_SECOND, OPEN_FIRST, LAST])
def test_the_open_beginnings_have_a_record_in_a_transaction(beginning: tuple[str, ...]):
    world = TransactionalIdWorld.begin(*beginning)
    assert world.id is not None
    assert world.id.state is TransactionState.ONGOING
    assert [entry.open for entry in world.entries.values()] == [1]


def test_a_commit_that_is_confirmed_after_an_abort_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(
        ANSWERS[TransactionState.COMPLETE_ABORT], TxnRequest.TV1_COMMIT, TxnAction.REPEAT
    )
    found = counterexample(5, OPEN_FIRST)
    assert found.violation == "an end is confirmed only if it is what was decided"


def test_two_producers_with_one_epoch_are_found(monkeypatch: pytest.MonkeyPatch):
    prepare = TransactionMetadata._begin_transition

    def without_a_new_epoch(self: TransactionMetadata, trigger, image, event) -> None:
        if trigger.name == "INITIALISED" and self.epoch >= 0:
            image = type(image)(
                **{f: getattr(image, f) for f in image.__struct_fields__} | {"epoch": self.epoch}
            )
        prepare(self, trigger, image, event)

    monkeypatch.setattr(TransactionMetadata, "_begin_transition", without_a_new_epoch)
    found = counterexample(4, SECOND)
    assert found.violation == "no two producers have the same epoch"
    assert found.events == (("init", 0), ("stored",), ("init", 1), ("stored",))


def test_an_end_before_all_markers_are_written_is_found(monkeypatch: pytest.MonkeyPatch):
    marked = TransactionMetadata._on_marked

    def takes_one_for_all(self: TransactionMetadata, event, now_ms: int) -> None:
        marked(self, Marked(tuple(self.partitions)), now_ms)

    monkeypatch.setitem(machine._HANDLERS, Marked, takes_one_for_all)
    assert counterexample(5, OPEN_SECOND).events[-1] == ("mark", 0)


def test_a_decision_that_a_new_coordinator_forgets_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(TransactionMetadata, "_complete", lambda *_: None)
    found = counterexample(2, OPEN_SECOND)
    assert found.violation == "markers are on their way to each partition that lacks one"


def test_a_move_that_does_not_wait_for_the_one_before_is_found(monkeypatch: pytest.MonkeyPatch):
    add = TransactionMetadata._on_add

    def at_once(self: TransactionMetadata, event, now_ms: int) -> None:
        pending, self.pending = self.pending, None
        add(self, event, now_ms)
        self.pending = self.pending or pending

    monkeypatch.setitem(machine._HANDLERS, AddPartitions, at_once)
    assert len(counterexample(3, OPEN_SECOND).events) == 2
