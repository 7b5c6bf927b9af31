"""The ledger finds every kind of wrong; else the day would prove nothing."""

from __future__ import annotations

import pytest

from tests.clients.day.ledger import Fate, Got, Ledger, Outcome

P = ("t", 0)


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


def log(*values: str) -> list[Got]:
    return [Got(P, offset, value) for offset, value in enumerate(values)]


def test_what_was_acknowledged_has_to_be_at_its_offset(ledger: Ledger) -> None:
    ledger.tell("a", P, Outcome.ACKNOWLEDGED, 0)
    ledger.audit(log("a"))
    for wrong in (log(), [Got(P, 1, "a")], [Got(("t", 1), 0, "a")], log("a", "a")):
        with pytest.raises(AssertionError):
            ledger.audit(wrong)


def test_what_was_refused_must_not_be_there(ledger: Ledger) -> None:
    ledger.tell("a", P, Outcome.REFUSED)
    ledger.audit(log())
    with pytest.raises(AssertionError, match="never there, and yet there"):
        ledger.audit(log("a"))


def test_what_nobody_can_tell_may_be_there(ledger: Ledger) -> None:
    ledger.tell("a", P, Outcome.UNKNOWN)
    ledger.tell("b", P, Outcome.UNKNOWN, idempotent=False)
    ledger.audit(log())
    ledger.audit(log("a", "b", "b"))
    with pytest.raises(AssertionError, match="more than once"):
        ledger.audit(log("a", "a"))


def test_nothing_comes_from_nowhere(ledger: Ledger) -> None:
    with pytest.raises(AssertionError, match="nobody sent"):
        ledger.audit(log("a"))


def test_an_unclean_election_loses_what_the_new_leader_had_not_got(ledger: Ledger) -> None:
    """Offsets 0 and 1 before it, the leader has one record; offset 1 again after it."""
    for offset, value in enumerate("ab"):
        ledger.tell(value, P, Outcome.ACKNOWLEDGED, offset)
    ledger.elected(P, 1, unclean=True)
    ledger.tell("c", P, Outcome.ACKNOWLEDGED, 1)
    assert {told.value: ledger.fate(told) for told in ledger.told.values()} == {
        "a": Fate.THERE,
        "b": Fate.LOST,
        "c": Fate.THERE,
    }
    ledger.audit(log("a", "c"))
    with pytest.raises(AssertionError, match="lost in an election, and yet there"):
        ledger.audit(log("a", "c", "b"))


def test_a_clean_election_may_lose_acks_1_and_never_acks_all(ledger: Ledger) -> None:
    ledger.tell("a", P, Outcome.ACKNOWLEDGED, 0, acks="1", idempotent=False)
    ledger.elected(P, 0, unclean=False)
    ledger.audit(log())
    ledger.tell("b", P, Outcome.ACKNOWLEDGED, 0)
    ledger.elected(P, 0, unclean=False)
    with pytest.raises(AssertionError, match="a clean election lost"):
        ledger.audit(log())


def test_a_reader_has_to_get_everything_and_no_more(ledger: Ledger) -> None:
    ledger.tell("a", P, Outcome.ACKNOWLEDGED, 0)
    ledger.tell("b", P, Outcome.REFUSED)
    with pytest.raises(AssertionError, match="never got"):
        ledger.audit_reader("r", "t")
    ledger.take("r", Got(P, 0, "a"))
    ledger.audit_reader("r", "t")
    ledger.audit_reader("s", "another")
    ledger.take("r", Got(P, 1, "b"))
    with pytest.raises(AssertionError, match="r got"):
        ledger.audit_reader("r", "t")
