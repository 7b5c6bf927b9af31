"""What the fault engine does, as entries of the journal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from mockbroker.core.faults.convert import to_data
from mockbroker.core.faults.facts import Facts
from mockbroker.core.faults.holds import Held
from mockbroker.core.faults.rules import api_name

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster


def fault_observer(cluster: Cluster) -> Callable[[str, str, object], None]:
    """An observer for `FaultEngine.on_fault` that writes into the cluster's journal, if any."""

    def told(what: str, cause: str, details: Any) -> None:
        journal = cluster.journal
        if journal is None:
            return
        now_ms = cluster.now_ms()
        rules = (cause,)
        if isinstance(details, Facts):
            journal.fact(now_ms, "fault", change=what, rules=rules, **_request(details))
        elif isinstance(details, Held):
            about = _request(details.facts)
            journal.fact(now_ms, "fault", change=what, rules=rules, held=details.id, **about)
        elif what == "failed action":  # those that succeed are told where they are carried out
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

    return told


def _request(facts: Facts) -> dict[str, object]:
    """Which request it is about; without one it is a connection that is being accepted."""
    about: dict[str, object] = {
        "broker": facts.broker.node_id,
        "connection": facts.connection.id,
    }
    if facts.api_key >= 0:
        about |= {
            "client_id": facts.client_id,
            "api": api_name(facts.api_key),
            "api_version": facts.api_version,
            "request_seq": facts.seq,
        }
    return about
