"""Faults and failed actions, as entries of the journal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mockbroker.core.faults.facts import NO_BROKER, Facts
from mockbroker.core.faults.holds import Held
from mockbroker.core.faults.rules import api_name
from mockbroker.core.validation import to_data

if TYPE_CHECKING:
    from mockbroker.core.runtime import Runtime


def fault_observer(runtime: Runtime) -> Callable[[str, str, object], None]:
    """An observer for `FaultEngine.on_fault` that writes into the journal, if any."""

    def observe(what: str, cause: str, details: Any) -> None:
        journal = runtime.journal
        if journal is None:
            return
        now_ms = runtime.now_ms()
        rules = (cause,)
        if isinstance(details, Facts):
            journal.fact(now_ms, "fault", change=what, rules=rules, **_request(details))
        elif isinstance(details, Held):
            about = _request(details.facts)
            journal.fact(now_ms, "fault", change=what, rules=rules, held=details.id, **about)
        elif what == "failed action":  # the others are journalled by the action itself
            name, arguments, reason = details
            journal.fact(
                now_ms,
                "action",
                change=name,
                rules=rules,
                arguments=to_data(arguments),
                outcome="failed",
                reason=reason,
            )

    return observe


def _request(facts: Facts) -> dict[str, object]:
    """The request of a fault; without one, the connection that is being accepted."""
    about: dict[str, object] = {"broker": facts.broker.node_id}
    if facts.from_broker != NO_BROKER:
        return about | {
            "from_broker": facts.from_broker,
            "to_broker": facts.to_broker,
            "api": api_name(facts.api_key),
            "api_version": facts.api_version,
            "request_seq": facts.seq,
        }
    about["connection"] = facts.connection.id
    if facts.api_key >= 0:
        about |= {
            "client_id": facts.client_id,
            "api": api_name(facts.api_key),
            "api_version": facts.api_version,
            "request_seq": facts.seq,
        }
    return about
