"""The tables name the reasons of removed records as the core's events do."""

from __future__ import annotations

from mockbroker.core import events
from mockbroker.pipeline.tables import LOSSES, WANTED_REMOVALS


def test_losses_and_removals_from_the_start_of_a_log_are_those_of_the_events() -> None:
    assert LOSSES == events.LOSSES
    assert set(events.START_REMOVALS) < set(WANTED_REMOVALS)
    described = events.RecordsRemoved.__doc__ or ""
    assert all(reason in described for reason in (*WANTED_REMOVALS, *LOSSES))
