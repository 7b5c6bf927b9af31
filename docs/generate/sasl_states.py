"""The way of a SASL connection, drawn from the tables that it obeys."""

from __future__ import annotations

import ast
import inspect

from markdown import page as join
from markdown import table

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
        theory(),
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


def theory() -> str:
    """The opening words of the module, without its first line."""
    text = ast.get_docstring(ast.parse(inspect.getsource(states)))
    assert text is not None
    return text.partition("\n\n")[2]
