"""Requests and answers that a rule holds: breakpoints.

A *held* exchange is a request that was not applied yet, or an applied request with an answer that
was not sent yet. It waits for one verdict: go on (perhaps edited), another answer, drop, or close.
The first verdict counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from mockbroker.core.faults.effects.answers import check_field, error_code, rewritten
from mockbroker.core.faults.effects.delivery import BEFORE
from mockbroker.core.faults.facts import NO_BROKER, Facts
from mockbroker.core.faults.partial import Selection
from mockbroker.core.faults.paths import dotted_paths, request_shape, response_shape
from mockbroker.core.validation import ValidationError
from mockbroker_protocol import ErrorCode

Verdict = Literal["go on", "answer", "drop", "close", "reset"]
GO_ON: Verdict = "go on"
ANSWER: Verdict = "answer"
DROP: Verdict = "drop"
CLOSE: Verdict = "close"
RESET: Verdict = "reset"


class Held:
    """One held exchange. `response` is None before the request is applied, and if it gets none."""

    __slots__ = (
        "_on_verdict",
        "error",
        "facts",
        "held_ms",
        "id",
        "phase",
        "request",
        "response",
        "rule",
        "verdict",
    )

    def __init__(
        self,
        id: int,  # noqa: A002
        rule: str,
        phase: str,
        facts: Facts,
        request: Any,
        response: Any,
        now_ms: int,
    ) -> None:
        self.id = id
        self.rule = rule
        self.phase = phase
        self.facts = facts
        self.request = request
        self.response = response
        self.held_ms = now_ms
        self.verdict: Verdict | None = None
        self.error: ErrorCode | None = None
        self._on_verdict: Callable[[], None] | None = None

    def when_decided(self, call: Callable[[], None]) -> None:
        """Call `call` once, at the verdict."""
        self._on_verdict = call
        if self.verdict is not None:
            call()

    def release(self) -> None:
        """Go on, with the edited message."""
        self._decide(GO_ON)

    def edit(self, fields: dict[str, object]) -> None:
        """Set fields of the answer, or, before there is one, of the request, by path.

        Raises ValidationError for an unknown field or an invalid value.
        """
        if self.facts.from_broker != NO_BROKER:
            raise ValidationError("edit", "a request between brokers can be refused, not edited")
        is_applied = self.phase != BEFORE
        if is_applied and self.response is None:
            raise ValidationError("edit", "the request is applied and gets no answer")
        shape = (response_shape if is_applied else request_shape)(self.facts.api_key)
        known = {path.removesuffix("[]") for path in dotted_paths(shape)}
        for path, value in fields.items():
            if path.removesuffix("[]") not in known:
                raise ValidationError(path, "no such field")
            reason = check_field(shape, path, value)
            if reason is not None:
                raise ValidationError(path, reason)
        if is_applied:
            self.response = rewritten(self.response, (), Selection(None), fields)
        else:
            self.request = rewritten(self.request, (), Selection(None), fields)

    def answer(self, error: str | int) -> None:
        """Answer with an error instead. Raises ValueError for an unknown error."""
        self.error = error_code(error)
        self._decide(ANSWER)

    def drop(self) -> None:
        """Send no answer and keep the connection. A request that was not applied never will be."""
        self._decide(DROP)

    def close(self, *, reset: bool = False) -> None:
        """End the connection."""
        self._decide(RESET if reset else CLOSE)

    def _decide(self, verdict: Verdict) -> None:
        if self.verdict is None:
            self.verdict = verdict
            if self._on_verdict is not None:
                self._on_verdict()
