"""Rules for what brokers send each other, on a core cluster."""

from __future__ import annotations

from collections.abc import Mapping

from mockbroker.core.cluster import Cluster
from mockbroker.core.faults.active import ActiveRule
from mockbroker.core.faults.engine import engine_of
from mockbroker.core.faults.rules import parse_plan


def add_hop_rule(
    cluster: Cluster,
    do: Mapping[str, object],
    when: Mapping[str, object] | None = None,
    **match: object,
) -> ActiveRule:
    """A rule for hops, in force at once."""
    engine = engine_of(cluster)
    data = {"match": {"between_brokers": True, **match}, "when": when or {}, "do": do}
    (rule,) = engine.add(parse_plan(data, engine.free_name()))
    return rule


def remove_rule(cluster: Cluster, rule: ActiveRule) -> None:
    engine_of(cluster).remove(rule.name)
