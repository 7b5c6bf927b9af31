"""Scenario files: read, and checked as a whole before anything runs.

    name: a lost acknowledgement
    cluster: {brokers: 3, topics: [{name: orders}]}
    faults: {rules: [{match: {api: Produce}, when: {times: 1}, do: {drop_reply: reset}}]}
    steps:
      - wait: {match: {kind: append, topic: orders}}
      - action: {stop_broker: {node: 2}}
      - advance: 1h
    checks:
      - {match: {kind: append, topic: orders}, exactly: 1}

`cluster` is what `serve --config-file` reads; `faults` is a plan of rules and a timeline.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import msgspec

from mockbroker.cli.config_file import ConfigFile, ListenerEntry, server_config
from mockbroker.core.actions import parse_action
from mockbroker.core.faults.rules import FaultPlan, parse_plan
from mockbroker.core.journal.filters import EventMatcher, Filter
from mockbroker.core.journal.verify import Expectation, parse_expectation
from mockbroker.core.validation import Ms, Range, ValidationError, convert, to_data
from mockbroker.server.config import ListenerSpec, ServerConfig

DEFAULT_PLAN = "scenario"


class Wait(msgspec.Struct, frozen=True):
    """Wait until `count` events, past ones included, meet `match`; `timeout` is real time."""

    match: Filter
    count: Annotated[int, Range(1, 1_000_000)] = 1
    timeout: Ms = 30_000


class StepEntry(msgspec.Struct, frozen=True):
    """One step: exactly one of these."""

    wait: Wait | None = None
    action: dict[str, object] | None = None
    faults: dict[str, object] | None = None
    clear_faults: bool | None = None
    advance: Ms | None = None
    freeze: bool | None = None
    verify: dict[str, object] | None = None
    settle: Ms | None = None


class ScenarioFile(msgspec.Struct, frozen=True):
    """The whole file."""

    name: str = ""
    cluster: dict[str, object] = {}
    faults: dict[str, object] | None = None
    steps: list[StepEntry] = []
    checks: list[dict[str, object]] = []


class ParsedStep(NamedTuple):
    """A step of a kind of `StepEntry`, printed as `words`, with its parsed `value`."""

    kind: str
    words: str
    value: Any


class Scenario(NamedTuple):
    """A checked scenario."""

    name: str
    config: ServerConfig
    plan: FaultPlan | None
    steps: tuple[ParsedStep, ...]
    checks: tuple[Expectation, ...]


def parse_scenario(data: object) -> Scenario:
    """A scenario from plain data. Raises ValidationError that names the field, and ServerError."""
    file = convert(data, ScenarioFile, "")
    return Scenario(
        name=file.name,
        config=_config(file.cluster),
        plan=None if file.faults is None else _plan(file.faults, "faults"),
        steps=tuple(_step(step, f"steps[{number}]") for number, step in enumerate(file.steps)),
        checks=tuple(
            parse_expectation(check, f"checks[{number}]")
            for number, check in enumerate(file.checks)
        ),
    )


def _config(data: dict[str, object]) -> ServerConfig:
    """The cluster, on free ports by default."""
    try:
        file = msgspec.convert(data, ConfigFile)
    except msgspec.ValidationError as error:
        raise ValidationError("cluster", str(error)) from None
    if not file.listeners:
        file.listeners = [ListenerEntry(ListenerSpec().name, port=0)]
    return server_config(file)


def _plan(data: object, path: str) -> FaultPlan:
    try:
        return parse_plan(data, DEFAULT_PLAN)
    except ValidationError as error:
        raise ValidationError(f"{path}.{error.path}".rstrip("."), error.reason) from None


def _step(entry: StepEntry, path: str) -> ParsedStep:
    given = [name for name in entry.__struct_fields__ if getattr(entry, name) is not None]
    if len(given) != 1:
        known = ", ".join(entry.__struct_fields__)
        raise ValidationError(path, f"a step is one of {known}, not {', '.join(given) or 'none'}")
    [kind] = given
    value = getattr(entry, kind)
    read = _READERS.get(kind)
    words = msgspec.json.encode(to_data(value)).decode()
    return ParsedStep(kind, words, value if read is None else read(value, f"{path}.{kind}"))


def _wait(wait: Wait, path: str) -> Wait:
    EventMatcher(wait.match, 0, f"{path}.match")  # raises ValidationError for invalid patterns
    return wait


def _action(data: dict[str, object], path: str) -> tuple[str, msgspec.Struct]:
    if len(data) != 1:
        raise ValidationError(path, "give one action: {NAME: {arguments}}")
    [(name, arguments)] = data.items()
    return name, parse_action(name, arguments)


_READERS: dict[str, Callable[[Any, str], Any]] = {
    "wait": _wait,
    "action": _action,
    "faults": _plan,
    "verify": parse_expectation,
}
