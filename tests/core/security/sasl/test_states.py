"""The tables are total: each state judges each kind of request and knows each event."""

from __future__ import annotations

import pytest

from mockbroker.core.security.sasl.states import (
    ADMISSION,
    TRANSITIONS,
    Admission,
    FrameKind,
    SaslEvent,
    SaslState,
)


@pytest.mark.parametrize("state", SaslState)
def test_every_state_judges_every_request_and_knows_every_event(state):
    assert set(ADMISSION[state]) == set(FrameKind)
    assert set(TRANSITIONS[state]) == set(SaslEvent)


def test_every_state_can_be_reached():
    reached = {SaslState.INITIAL}
    while True:
        more = {
            following
            for state in reached
            for following in TRANSITIONS[state].values()
            if following is not None
        }
        if more <= reached:
            break
        reached |= more
    assert reached == set(SaslState)


def test_every_event_happens_somewhere():
    happening = {
        event for row in TRANSITIONS.values() for event, following in row.items() if following
    }
    assert happening == set(SaslEvent)


def test_a_failed_connection_takes_and_becomes_nothing_more():
    assert set(ADMISSION[SaslState.FAILED].values()) == {Admission.CLOSE}
    assert set(TRANSITIONS[SaslState.FAILED].values()) == {None}


def test_a_refusal_always_fails_the_connection():
    for state, row in ADMISSION.items():
        if Admission.REFUSE in row.values():
            assert TRANSITIONS[state][SaslEvent.REFUSED] is SaslState.FAILED


def test_only_an_established_session_serves_other_requests():
    serving = {s for s, row in ADMISSION.items() if row[FrameKind.OTHER] is Admission.ADMIT}
    assert serving == {SaslState.COMPLETE}
