"""Loaded by Schemathesis: waits get a timeout of zero."""

from __future__ import annotations

from typing import Any

import schemathesis

from mockbroker.core.timing.durations import parse_duration


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: dict[str, Any]) -> None:
    """Any valid patience becomes a short one; the rest of the body stays as it is."""
    if case.path.endswith("/wait") and isinstance(case.body, dict):
        patience = case.body.get("timeout_ms", 10_000)
        if isinstance(patience, str):
            if parse_duration(patience):
                case.body["timeout_ms"] = "1ms"
        elif type(patience) in (int, float) and patience > 0 and patience == int(patience):
            case.body["timeout_ms"] = 1
