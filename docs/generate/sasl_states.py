"""The way of a SASL connection, drawn from the tables that it obeys."""

from __future__ import annotations

from markdown import page as join
from markdown import table
from state_tables import theory

from mockbroker.core.security.sasl import states
from mockbroker.core.security.sasl.states import (
    ADMISSION,
    TRANSITIONS,
    RequestKind,
    SaslEvent,
    SaslState,
    Verdict,
)

INTRO = """
# The SASL connection

Drawn from `mockbroker/core/security/sasl/states.py`. Only its tables decide; what is not in
them cannot happen.
"""

VERDICTS = {
    Verdict.ADMIT: "served",
    Verdict.REFUSE: "`ILLEGAL_SASL_STATE`, then closed",
    Verdict.CLOSE: "closed",
}


def page() -> str:
    return join(
        INTRO,
        theory(states),
        "## What is taken",
        "Each request, by the state of its connection. Between handshake and proof every frame "
        "that is taken is a token.",
        table(
            ("state", *(kind.value for kind in RequestKind)),
            [
                (f"**{state.value}**", *(VERDICTS[ADMISSION[state][kind]] for kind in RequestKind))
                for state in SaslState
            ],
        ),
        "## What follows",
        "What came of a request, and the state after it.",
        table(
            ("state", "event", "next state"),
            [
                (f"**{state.value}**", event.value, following.value)
                for state in SaslState
                for event in SaslEvent
                if (following := TRANSITIONS[state][event]) is not None
            ],
        ),
    )
