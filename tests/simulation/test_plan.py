"""Plans from people: what is wrong with one is said, with its place and what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mockbroker.simulation import PlanError, parse_plan, read_plan, run
from mockbroker.simulation.plan import FORMAT

PLAN: dict[str, Any] = {
    "seed": 3,
    "settings": {"brokers": 3, "topics": [{"name": "orders"}], "duration_ms": 1_000},
    "clients": [{"kind": "producer", "name": "p", "topics": ["orders"], "operations": 5}],
    "steps": [{"at_ms": 100, "do": "stop_broker", "arguments": {"node": 1}}],
}


def changed(**parts: Any) -> dict[str, Any]:
    return {**PLAN, **parts}


def test_a_plan_written_by_hand_runs() -> None:
    outcome = run(parse_plan(PLAN))
    assert outcome.counts["batches acknowledged"] == 5
    assert outcome.counts["step stop_broker"] == 1


WRONG: tuple[tuple[object, str], ...] = (
    ([], "a plan is an object"),
    (changed(format=FORMAT + 1), "run it with the version of mockbroker that wrote it"),
    (changed(sed=1), "plan: unknown field 'sed'; did you mean 'seed'?"),
    (changed(seed="x"), "Expected `int`"),
    (
        changed(settings={**PLAN["settings"], "broker": 1}),
        "settings: unknown field 'broker'; did you mean 'brokers'?",
    ),
    (changed(settings={**PLAN["settings"], "brokers": 0}), "at least one broker"),
    (changed(settings={**PLAN["settings"], "kafka_version": "9.9"}), "is not a release"),
    (
        changed(clients=[{"kind": "producer", "name": "p", "topics": ["ordres"]}]),
        "no topic 'ordres'",
    ),
    (changed(clients=[*PLAN["clients"], *PLAN["clients"]]), "two clients 'p'"),
    (changed(clients=[{"kind": "poducer", "name": "p"}]), "Invalid enum value 'poducer'"),
    (changed(steps=[{"at_ms": 1, "do": "stop_brokr"}]), "steps[0]: action: unknown action"),
    (
        changed(steps=[{"at_ms": 1, "do": "stop_broker", "arguments": {"nod": 1}}]),
        "stop_broker.nod",
    ),
    (
        changed(steps=[{"at_ms": 1, "do": "crash_client", "arguments": {"client": "q"}}]),
        "there is no client 'q'",
    ),
    (
        changed(steps=[{"at_ms": 1, "do": "add_rule", "arguments": {"do": {"delai": 5}}}]),
        "unknown field",
    ),
)


@pytest.mark.parametrize(("data", "said"), WRONG)
def test_what_is_wrong_is_said(data: object, said: str) -> None:
    with pytest.raises(PlanError) as caught:
        parse_plan(data)
    assert said in str(caught.value)


@pytest.mark.parametrize("name", ["plan.json", "plan.yaml"])
def test_plans_are_read_from_files(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(json.dumps(PLAN))  # JSON is YAML, too
    assert read_plan(tmp_path / name) == parse_plan(PLAN)


def test_a_file_that_is_no_plan_is_named(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match=r"nowhere\.json cannot be read"):
        read_plan(tmp_path / "nowhere.json")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(PlanError, match=r"bad\.json is neither JSON nor YAML"):
        read_plan(tmp_path / "bad.json")
    (tmp_path / "bad.json").write_text('{"clients": "\\ud800"}')  # half of a character
    with pytest.raises(PlanError, match=r"bad\.json is neither JSON nor YAML"):
        read_plan(tmp_path / "bad.json")
