"""Exporting the rules in force: as YAML for files, as Python for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeAlias

from mockbroker.core.faults.engine import FaultEngine

Format: TypeAlias = Literal["yaml", "python"]
WIDTH = 100
_STEP = 4


def exported(engine: FaultEngine, format_: Format) -> str:
    """All plans in force, in the order in which they were added; empty without plans.

    Left out are removed rules with their timeline entries, hits, and steps of scenarios. In YAML
    each plan is a document of its own.
    """
    return _WRITERS[format_](plans_in_force(engine))


def plans_in_force(engine: FaultEngine) -> list[dict[str, object]]:
    """The plans in force as plain data that `FaultEngine.add` accepts."""
    rules = engine.rules
    found = []
    for plan in engine.plans.values():
        left = tuple(rule for rule in plan.rules if rule.name in rules)
        names = {"", *(rule.name for rule in left)}
        timeline = tuple(entry for entry in plan.timeline if entry.after in names)
        if left or timeline:
            found.append(plan._replace(rules=left, timeline=timeline).to_data())
    return found


def _as_yaml(plans: Sequence[Mapping[str, object]]) -> str:
    from msgspec import yaml

    return "---\n".join(yaml.encode(plan).decode() for plan in plans)


def _as_python(plans: Sequence[Mapping[str, object]]) -> str:
    """Statements for a cluster named `kafka`, as in the fixtures."""
    lead, tail = "kafka.faults.add(", ")"
    return "".join(f"{lead}{_literal(plan, 0, len(lead) + len(tail))}{tail}\n" for plan in plans)


def _literal(value: object, indent: int, around: int) -> str:
    """Plain data as Python; on one line if it fits beside `around` other characters."""
    line = repr(value)
    if indent + around + len(line) <= WIDTH or not value:
        return line
    inner = indent + _STEP
    if isinstance(value, Mapping):
        items = [
            f"{key!r}: {_literal(item, inner, len(repr(key)) + 3)}" for key, item in value.items()
        ]
        begin, end = "{}"
    elif isinstance(value, list):
        items = [_literal(item, inner, 1) for item in value]
        begin, end = "[]"
    else:
        return line
    body = "".join(f"{' ' * inner}{item},\n" for item in items)
    return f"{begin}\n{body}{' ' * indent}{end}"


_WRITERS: Mapping[Format, Callable[[Sequence[Mapping[str, object]]], str]] = {
    "yaml": _as_yaml,
    "python": _as_python,
}
