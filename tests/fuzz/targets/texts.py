"""What people write: rules, scenarios, plans, expectations, config files, in YAML, JSON and TOML.

An input is the number of a kind, and the text. A text is data that fits the kind more or less, or a
text with bytes changed. Each kind has the error of its contract, and a text of any other content is
a result.

Memory: PyYAML makes about 100 bytes a byte, of files that people write: the limit of other targets
does not hold here, and ITEMS_MAX and NODES_MAX bound what comes of them.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import yaml

from mockbroker.cli import config_file
from mockbroker.cli.scenario_file import ScenarioFile, parse_scenario
from mockbroker.core.actions import Actions  # noqa: F401  # registers them
from mockbroker.core.actions.registry import ACTIONS, parse_action
from mockbroker.core.errors import ActionError
from mockbroker.core.faults.effects.table import EFFECTS
from mockbroker.core.faults.rules import RuleData, parse_plan
from mockbroker.core.journal.verify import Expectation, parse_expectation
from mockbroker.core.validation import ValidationError
from mockbroker.core.yaml_documents import YamlError, read_yaml
from mockbroker.server.config import ServerError
from mockbroker.simulation import plan as plans
from tests.fuzz.corpus import kept
from tests.fuzz.engine import ROOT, Target
from tests.fuzz.mutate import amplified, mutated
from tests.fuzz.targets.drawn_data import anything, changed, drawn
from tests.fuzz.work import Broken

INPUT_BYTES_MAX = 4 * 1024  # PyYAML takes 10 ms a KiB of short nodes
DEEP_BYTES = 5_000
ERRORS = (ValidationError, ServerError, YamlError, plans.PlanError, ActionError)


def _rule(data: Any) -> object:
    return parse_plan(data, "f1")


def _action(data: Any) -> object:
    name, arguments = next(iter(data.items())) if isinstance(data, dict) and data else ("", {})
    return parse_action(name, arguments)


def _of_yaml(parse: Callable[[Any], object]) -> Callable[[bytes], object]:
    def read(text: bytes) -> list[object]:
        return [parse(data) for data in read_yaml(text.decode("utf-8", "replace"))]

    return read


def _of_json(parse: Callable[[Any], object]) -> Callable[[bytes], object]:
    def read(text: bytes) -> object:
        try:
            data = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None  # what reads JSON over HTTP is the target `http`
        return parse(data)

    return read


def _file(suffix: str, read: Callable[[Path], object]) -> Callable[[bytes], object]:
    def check(text: bytes) -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"file{suffix}"
            path.write_bytes(text)
            return read(path)

    return check


def _config(path: Path) -> object:
    return config_file.server_config(config_file.load(path))


RULE = {
    "match": {"api": "Produce", "topic": "orders", "partition": [0, 1], "client_id": "/a.*/"},
    "when": {"times": 2, "nth": [1, 3], "probability": 0.5, "after_offset": 3},
    "do": {"delay": "5s", "error": {"code": "NOT_LEADER_OR_FOLLOWER"}},
}
PLAN = {
    "name": "p",
    "rules": [RULE],
    "timeline": [{"at": "1s", "do": {"stop_broker": {"node": 1}}}],
}
TOML = b"""brokers = 3
[configs]
"num.partitions" = 3
[[listeners]]
name = "PLAINTEXT"
port = 0
[[topics]]
name = "orders"
partitions = 3
fill = [5, 5, 5]
records = [{value = "a", key = "b"}]
"""


class Texts(Target):
    """See the module."""

    name = "texts"
    modules = (
        "mockbroker.core.validation",
        "mockbroker.core.faults",
        "mockbroker.core.yaml_documents",
        "mockbroker.simulation.plan",
        "mockbroker.cli.scenario_file",
        "mockbroker.cli.config_file",
    )

    @cached_property
    def kinds(self) -> list[Callable[[bytes], object]]:
        return [
            _of_json(_rule),
            _of_yaml(_rule),
            _of_json(_action),
            _of_yaml(parse_scenario),
            _of_json(parse_expectation),
            _file(".json", plans.read),
            _file(".yaml", plans.read),
            _file(".toml", _config),
            lambda text: read_yaml(text.decode("utf-8", "replace")),
        ]

    @cached_property
    def scenarios(self) -> list[Any]:
        folder = ROOT / "docs" / "examples" / "orders" / "scenarios"
        return [yaml.safe_load(path.read_text()) for path in sorted(folder.glob("*.yaml"))]

    def draw(self, number: int) -> bytes:
        rng = self.rng(number)
        kind = rng.randrange(len(self.kinds))
        if kind == 7:
            text = TOML
        elif kept(self.name) and rng.random() < 0.2:
            text = rng.choice(kept(self.name))
            kind, text = text[0], text[1:]
        else:
            data = self._data(rng, kind)
            for _ in range(rng.choice((0, 1, 1, 2, 3))):
                data = changed(rng, data)
            text = json.dumps(data).encode()
            if kind in (1, 3, 6, 8) and rng.random() < 0.2:
                text = yaml.dump(data).encode("utf-8", "replace")
        drawn_share = rng.random()
        if kind == 7 or drawn_share < 0.25:
            text = mutated(
                rng, text, (b"&a [*a]", b"!!python/x ", b"? ", b"<<: ", TOML), INPUT_BYTES_MAX
            )
        elif drawn_share < 0.252:
            text = rng.choice((b"[", b'{"a":', b"- ", b"a:\n ", b"[[", b"(")) * DEEP_BYTES
            text = text[:DEEP_BYTES]
        elif drawn_share < 0.255:
            text = amplified(rng, text, INPUT_BYTES_MAX)
        return bytes([kind]) + text[:INPUT_BYTES_MAX]

    def _data(self, rng: random.Random, kind: int) -> Any:
        if rng.random() < 0.03:
            return anything(rng)
        if kind == 2:
            name = rng.choice(sorted(ACTIONS))
            return {name: drawn(rng, ACTIONS[name].arguments)}
        if kind == 3:
            return drawn(rng, ScenarioFile) if rng.random() < 0.3 else rng.choice(self.scenarios)
        if kind == 4:
            return drawn(rng, Expectation)
        if kind in (5, 6):
            return drawn(rng, plans.Plan)
        rule = json.loads(json.dumps(RULE))
        if rng.random() < 0.6:
            name = rng.choice(sorted(EFFECTS))
            rule["do"] = {name: drawn(rng, EFFECTS[name])}
        return rng.choice(
            (rule, {"rules": [rule]}, {**PLAN, "rules": [rule]}, drawn(rng, RuleData))
        )

    def check(self, data: bytes) -> None:
        if not data:
            return
        try:
            self.kinds[data[0] % len(self.kinds)](data[1:])
        except ERRORS as error:
            if not str(error):
                raise Broken("refused without a reason") from error

    def memory_bytes_max(self, data: bytes) -> int:
        return super().memory_bytes_max(data) + 1_000 * len(data)
