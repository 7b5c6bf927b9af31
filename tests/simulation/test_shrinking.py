"""What breaks a law is made smaller, as long as it breaks the same law."""

from __future__ import annotations

from collections import Counter

import pytest

from mockbroker.simulation import NotReproducedError, Plan, PlanResult, generate, shrink, shrinking
from mockbroker.simulation.laws import Violation
from mockbroker.simulation.running import Mode
from mockbroker.simulation.shrinking import ddmin

LAW = "nobody stops broker 2 while producer-0 is there"


def broken_by(plan: Plan, mode: Mode = "fast") -> PlanResult:
    """A run that breaks the law if the plan has what it takes."""
    stops = any(s.do == "stop_broker" and s.arguments["node"] == 2 for s in plan.steps)
    writes = any(client.name == "producer-0" for client in plan.clients)
    violations = [Violation(LAW, "seen", 0, 0)] if stops and writes else []
    return PlanResult(plan, violations, "", Counter())


def plan_that_stops_broker_2() -> Plan:
    plans = (generate(seed) for seed in range(10_000))
    return next(p for p in plans if len(p.steps) > 15 and broken_by(p).violations)


def test_only_what_is_needed_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shrinking, "run", broken_by)
    shrunk = shrink(plan_that_stops_broker_2(), LAW)
    plan = shrunk.outcome.plan
    assert [step.do for step in plan.steps] == ["stop_broker"]
    assert [client.name for client in plan.clients] == ["producer-0"]
    assert plan.settings.configs == {}
    assert shrunk.outcome.laws == [LAW]
    assert shrunk.runs <= shrinking.RUNS_MAX


def test_what_cannot_be_seen_again_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shrinking, "run", broken_by)
    with pytest.raises(NotReproducedError, match="a second run of the plan of seed 1 "):
        shrink(Plan(seed=1), LAW)


def test_shrinking_ends_when_its_runs_are_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shrinking, "run", broken_by)
    assert shrink(plan_that_stops_broker_2(), LAW, runs_max=4).runs == 4


@pytest.mark.parametrize("wanted", [set(), {3}, {0, 19}, {4, 5, 6}])
def test_ddmin_finds_the_items_that_are_needed(wanted: set[int]) -> None:
    found = ddmin(list(range(20)), lambda items: wanted <= set(items))
    assert set(found) == wanted
