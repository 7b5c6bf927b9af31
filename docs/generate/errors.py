"""Kafka's error codes, from the enum that the handlers answer with."""

from __future__ import annotations

from markdown import page as join
from markdown import table

from mockbroker_protocol import ErrorCode

INTRO = """
# Error codes

All error codes of responses, with Kafka's messages. Kafka's clients retry after a retriable error.
"""


def page() -> str:
    rows = [
        (int(error), f"`{error.name}`", "yes" if error.retriable else "no", error.message)
        for error in sorted(ErrorCode, key=int)
    ]
    return join(INTRO, table(("code", "name", "retriable", "message"), rows))
