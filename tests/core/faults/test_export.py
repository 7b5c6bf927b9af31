"""An export gives an equal engine: the same plans, rules, seeds and timelines, in order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mockbroker.core.cluster import Cluster
from mockbroker.core.faults.engine import FaultEngine, engine_of
from mockbroker.core.faults.export import Format, exported
from mockbroker.core.faults.rules import FaultPlan, parse_plan
from tests.core.faults.plans import plans, taken

FORMATS: tuple[Format, ...] = ("yaml", "python")


def engine(*sets: dict[str, Any]) -> FaultEngine:
    made = engine_of(Cluster(now_ms=lambda: 0))
    for data in sets:
        made.add(parse_plan(data, made.free_name()))
    return made


def read_again(text: str, format_: Format) -> FaultEngine:
    """A cluster that has read what was exported, as a file or as a test."""
    if format_ == "yaml":
        return engine(*(each for each in yaml.safe_load_all(text) if each is not None))
    sets: list[dict[str, Any]] = []
    kafka = SimpleNamespace(faults=SimpleNamespace(add=sets.append))
    exec(text, {"kafka": kafka})
    return engine(*sets)


def contents(of: FaultEngine) -> list[FaultPlan]:
    return list(of.plans.values())


@pytest.mark.parametrize("format_", FORMATS)
@settings(max_examples=40)
@given(sets=st.lists(plans(), max_size=3))
def test_an_export_gives_an_equal_engine(format_: Format, sets: list[dict[str, Any]]) -> None:
    """Whatever the rules are."""
    assume(all(map(taken, sets)))
    first = engine(*sets)
    text = exported(first, format_)
    second = read_again(text, format_)
    assert contents(second) == contents(first)
    assert exported(second, format_) == text


@pytest.mark.parametrize("format_", FORMATS)
def test_removed_rules_are_not_exported(format_: Format) -> None:
    """With what was to come after them."""
    do = {"drop_reply": {}}
    act = {"stop_broker": 2}
    first = engine(
        {
            "name": "story",
            "rules": [{"name": "one", "do": do}, {"name": "two", "do": do}],
            "timeline": [{"after": "one", "do": act}, {"after": "two", "do": act}, {"do": act}],
        },
        {"name": "gone", "do": do},
    )
    first.remove("one")
    first.remove("gone")
    [plan] = contents(read_again(exported(first, format_), format_))
    assert [rule.name for rule in plan.rules] == ["two"]
    assert [entry.after for entry in plan.timeline] == ["two", ""]


def test_an_export_without_rules_is_empty() -> None:
    assert [exported(engine(), format_) for format_ in FORMATS] == ["", ""]


def test_python_is_laid_out_for_people() -> None:
    """Short things stay on a line, long ones are broken where their parts begin."""
    match = {"api": "Produce", "topic": ["orders", "payments", "refunds"], "client_id": "shop-*"}
    made = engine(
        {"name": "short", "match": {"api": "Fetch"}, "do": {"delay": "5s"}},
        {"name": "long", "rules": [{"match": match, "when": {"times": 1}, "do": {"error": 6}}]},
    )
    assert exported(made, "python") == PYTHON


PYTHON = """\
kafka.faults.add({
    'name': 'short',
    'seed': 0,
    'rules': [{'name': 'short', 'match': {'api': 'Fetch'}, 'do': {'delay': {'by': 5000}}}],
})
kafka.faults.add({
    'name': 'long',
    'seed': 0,
    'rules': [
        {
            'name': 'long',
            'match': {
                'api': 'Produce',
                'topic': ['orders', 'payments', 'refunds'],
                'client_id': 'shop-*',
            },
            'when': {'times': 1},
            'do': {'error': {'code': 6}},
        },
    ],
})
"""
