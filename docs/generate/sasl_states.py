"""The way of a SASL connection, drawn from the tables that it obeys."""

from __future__ import annotations

from markdown import page as join
from markdown import table
from state_tables import theory

from mockbroker.core.security.sasl import states
from mockbroker.core.security.sasl.states import (
    ADMISSION,
    TRANSITIONS,
    Admission,
    FrameKind,
    SaslEvent,
    SaslState,
)

INTRO = """
# The SASL connection

Drawn from `mockbroker/core/security/sasl/states.py`.
"""

VERDICTS = {
    Admission.ADMIT: "served",
    Admission.REFUSE: "`ILLEGAL_SASL_STATE`, then closed",
    Admission.CLOSE: "closed",
}


def page() -> str:
    return join(
        INTRO,
        theory(states),
        "## Accepted requests",
        "Each request, by the state of its connection. Between handshake and authentication every "
        "accepted frame is a token.",
        table(
            ("state", *(kind.value for kind in FrameKind)),
            [
                (f"**{state.value}**", *(VERDICTS[ADMISSION[state][kind]] for kind in FrameKind))
                for state in SaslState
            ],
        ),
        "## Transitions",
        "The event of a request, and the next state.",
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
