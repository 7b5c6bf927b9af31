"""No committed record is lost, and no logs differ, whatever happens to two replicas; unless the
follower goes by the high watermark, as up to Kafka 0.10, or is broken.
"""

from __future__ import annotations

import pytest

from mockbroker.core.replication import fetcher
from mockbroker.core.replication.fetcher import ReplicaFetcher, TruncationPoint
from tests.simulation.exhaustive.explorer import Counterexample, explore
from tests.simulation.exhaustive.replicas import (
    ReplicasByEpoch,
    ReplicasByFetch,
    ReplicasByHighWatermark,
    ReplicasWorld,
)

EMPTY, COMMITTED, ISOLATED = ((beginning,) for beginning in ReplicasWorld.beginnings)


def counterexample(
    world: type[ReplicasWorld], depth: int, beginnings: tuple[str, ...]
) -> Counterexample:
    found = explore(world, depth, beginnings=beginnings).counterexample
    assert found is not None
    return found


def test_a_follower_that_goes_by_the_high_watermark_loses_what_was_committed():
    """The first scenario of KIP-101: it comes back, cuts its log, and then is to lead."""
    found = counterexample(ReplicasByHighWatermark, 3, COMMITTED)
    assert found.violation == "a replica in the ISR has all committed records"
    assert found.events == (("crash", 1), ("restart", 1), ("learn", 1))


@pytest.mark.parametrize("world", [ReplicasByFetch, ReplicasByEpoch])
def test_one_that_goes_by_epochs_survives_that(world: type[ReplicasWorld]):
    assert explore(world, 3, beginnings=COMMITTED).counterexample is None


@pytest.mark.parametrize("world", [ReplicasByFetch, ReplicasByEpoch])
def test_a_follower_that_never_cuts_its_log_is_found(
    world: type[ReplicasWorld], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(
        fetcher, "truncation_point", lambda _, end_offset, *__: TruncationPoint(end_offset, True)
    )
    found = explore(world, 6, beginnings=ISOLATED, settle_every=20).counterexample
    assert found is not None


def test_a_follower_that_cuts_whenever_it_begins_is_found(monkeypatch: pytest.MonkeyPatch):
    begin = ReplicaFetcher._begin

    def cuts_first(self: ReplicaFetcher, leader):
        self.replica.truncate(self.replica.high_watermark)
        return begin(self, leader)

    monkeypatch.setattr(ReplicaFetcher, "_begin", cuts_first)
    found = counterexample(ReplicasByFetch, 3, COMMITTED)
    assert found.violation == "a replica in the ISR has all committed records"


def test_a_late_answer_that_is_taken_for_the_present_one_is_found(
    monkeypatch: pytest.MonkeyPatch,
):
    handle = ReplicaFetcher.handle

    def takes_any(self: ReplicaFetcher, event, now_ms: int):
        if hasattr(event, "number"):
            event = event._replace(number=self._number)
        return handle(self, event, now_ms)

    monkeypatch.setattr(ReplicaFetcher, "handle", takes_any)
    found = counterexample(ReplicasByFetch, 6, EMPTY)
    assert found.violation == "a log has each offset once"
    assert [event[0] for event in found.events[2:]] == ["wake", "serve", "deliver", "deliver"]
