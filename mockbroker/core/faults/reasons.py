"""Why a rule does not fire for one request, as a sentence. Nothing is counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.faults.facts import Facts
from mockbroker.core.faults.matching import ENTITIES
from mockbroker.core.faults.rules import api_name

if TYPE_CHECKING:
    from mockbroker.core.faults.active import ActiveRule

VALUES_SHOWN_MAX = 5


def reason_of(rule: ActiveRule, facts: Facts, at_ms: int) -> str:
    """Why `rule` did not fire for a request of `at_ms` (ms since the epoch)."""
    if at_ms < rule.trigger.added_ms:
        return "it was added after this request"
    if rule.scope == "hop":
        return "it is for requests between brokers"
    if rule.scope == "connection":
        return "it is for new connections"
    if rule.api_keys and facts.api_key not in rule.api_keys:
        apis = " or ".join(sorted(map(api_name, rule.api_keys)))
        return f"it is for {apis}, not for {api_name(facts.api_key)}"
    failed = rule.matcher.failed_of(facts, (), within=False) or rule.matcher.failed_where(facts)
    if failed is not None:
        wanted = getattr(rule.rule.match, failed, None)
        condition = failed if wanted is None else f"{failed}: {wanted}"
        found = _actual(failed, facts)
        return f"its condition {condition} does not hold" + (
            f"; here it is {found}" if found else ""
        )
    if rule.trigger.stopped:
        parts = ", ".join(rule.trigger.stopped)
        return f"it matches, but its `when` held it back ({parts}), or an earlier rule fired"
    return "it matches, but an earlier rule ended the request, or its state was another one"


def _actual(name: str, facts: Facts) -> str:
    """The request's values for a condition; empty if they are not simple."""
    match name:
        case "topic" | "topic_id":
            values: list[object] = list(dict.fromkeys(each.topic for each in facts.targets))
        case "partition":
            values = [f"{each.topic}-{each.partition}" for each in facts.targets]
        case "broker":
            values = [facts.broker.node_id]
        case "client_id" | "api_version" | "listener":
            values = [getattr(facts, name) or "empty"]
        case "principal":
            values = [facts.connection.principal]
        case _ if name in ENTITIES:
            values = facts.values(ENTITIES[name])
        case _:
            return ""
    if not values:
        return "not in the request"
    shown = ", ".join(map(str, values[:VALUES_SHOWN_MAX]))
    return shown + (", …" if len(values) > VALUES_SHOWN_MAX else "")
