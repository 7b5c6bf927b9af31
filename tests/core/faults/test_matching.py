"""The conditions of rules that keep something of the requests before."""

from __future__ import annotations

from types import SimpleNamespace

from mockbroker.core.faults.matching import _NthConnectionMatcher


def facts(connection_id: int) -> SimpleNamespace:
    return SimpleNamespace(connection=SimpleNamespace(id=connection_id))


def test_the_nth_connection_is_found_and_no_later_one_is_kept() -> None:
    """A rule may be in force for as long as the cluster, and see each of its connections."""
    matches = _NthConnectionMatcher(2)
    seen = [number for number in (7, 7, 9, 8, 9, 7, *range(10, 1000), 9) if matches(facts(number))]
    assert seen == [9, 9, 9]
    assert len(matches._seen) == 2
