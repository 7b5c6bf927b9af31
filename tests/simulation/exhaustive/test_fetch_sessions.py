"""Fetch sessions are what KIP-227 says after any few requests; broken ones are found out."""

from __future__ import annotations

import pytest

from mockbroker.core.fetching import fetch_session
from mockbroker.core.fetching.fetch_session import FetchSessionCache
from tests.simulation.exhaustive.explorer import Counterexample, explore
from tests.simulation.exhaustive.fetch_sessions import FetchSessionsWorld


def counterexample(depth: int) -> Counterexample:
    found = explore(FetchSessionsWorld, depth).counterexample
    assert found is not None
    return found


def test_an_epoch_after_the_last_one_that_is_zero_is_found(monkeypatch: pytest.MonkeyPatch):
    """Zero would be a full request (the epochs go round to 1)."""
    monkeypatch.setattr(
        fetch_session, "next_epoch", lambda epoch: (epoch + 1) & fetch_session.EPOCH_MAX
    )
    found = counterexample(2)
    assert found.beginning == "a session whose epochs are used up"
    assert found.violation == "the epoch that is due is that of KIP-227"


def test_partitions_that_are_never_forgotten_are_found(monkeypatch: pytest.MonkeyPatch):
    open_context = FetchSessionCache.open_context

    def forgets_nothing(self: FetchSessionCache, request, **how):
        request.forgotten_topics_data = []
        return open_context(self, request, **how)

    monkeypatch.setattr(FetchSessionCache, "open_context", forgets_nothing)
    found = counterexample(2)
    assert found.events[-1][0] == "incremental"
    assert found.violation.startswith("what is fetched is")


def test_a_cache_that_grows_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(FetchSessionCache, "_evict", lambda *_: True)
    assert counterexample(2).violation == "a session is kept if there is room for it"


def test_a_follower_that_has_to_wait_for_a_consumer_is_found(monkeypatch: pytest.MonkeyPatch):
    evictable = FetchSessionCache._evictable

    def knows_no_privilege(self: FetchSessionCache, now_ms: int, privileged: bool):
        return evictable(self, now_ms, False)

    monkeypatch.setattr(FetchSessionCache, "_evictable", knows_no_privilege)
    found = counterexample(2)
    assert found.beginning == "a consumer, a follower and one slot"
