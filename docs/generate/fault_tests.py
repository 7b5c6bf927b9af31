"""Every effect, action and condition of rules, with the tests that show it with a client.

The tests are found in their source: `@pytest.mark.fault("drop_reply")`.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

from checklist import marked, shorter
from markdown import page as join
from markdown import table

from mockbroker.core.actions import ACTIONS
from mockbroker.core.faults.effects.table import EFFECTS
from mockbroker.core.faults.rules import Match, When
from mockbroker.core.validation import struct_fields

ROOT = Path(__file__).resolve().parents[2]

INTRO = """
# Faults and their tests

What rules can do, and the tests that show it with a client. [Inject faults](../howto/faults.md)
shows how to write rules. [Rules](../reference/rules.md) lists their fields.
"""

OTHERS = {
    "timeline": "Actions at given times, from the moment the plan was added or a rule first fired.",
    "do an action": "A rule may carry out actions as well, once the request is applied.",
}


def tests_by_name() -> dict[str, list[str]]:
    """Name -> node ids without parameters, in order."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests" / "clients" / "faults").rglob("test_*.py")):
        module = ast.parse(path.read_text(encoding="utf-8"))
        for node_id, names in marked(module, path.relative_to(ROOT).as_posix(), "fault"):
            for name in names:
                if node_id not in found[name]:
                    found[name].append(node_id)
    return found


def known_names() -> set[str]:
    """Every name that a mark may have."""
    return {*EFFECTS, *ACTIONS, *struct_fields(Match), *struct_fields(When), *OTHERS}


def page() -> str:
    tests = tests_by_name()
    unknown = sorted(set(tests) - known_names())
    if unknown:
        raise SystemExit(f"tests are marked with faults that there are not: {unknown}")
    effects = {name: _sentence(type_) for name, type_ in EFFECTS.items()}
    actions = {name: _sentence(action) for name, action in ACTIONS.items()}
    return join(
        INTRO,
        "## On requests and answers",
        _table(effects, tests),
        "## On the cluster",
        _table(actions, tests),
        "## Which requests: match",
        _names([*struct_fields(Match)], tests),
        "## Which of them: when",
        _names([*struct_fields(When)], tests),
        "## Besides",
        table(
            ("", "what it is", "tests"),
            [(name, text, _cell(tests, name)) for name, text in OTHERS.items()],
        ),
    )


def _table(rows: dict[str, str], tests: dict[str, list[str]]) -> str:
    return table(
        ("name", "what it is", "tests"),
        [(f"`{name}`", text, _cell(tests, name)) for name, text in rows.items()],
    )


def _names(names: list[str], tests: dict[str, list[str]]) -> str:
    return table(("name", "tests"), [(f"`{name}`", _cell(tests, name)) for name in names])


def _cell(tests: dict[str, list[str]], name: str) -> str:
    short = [shorter(test).removeprefix("clients/faults/") for test in tests.get(name, [])]
    return "<br>".join(f"`{test}`" for test in short)


def _sentence(documented: object) -> str:
    """The first paragraph of a docstring, on one line; empty without one."""
    text = documented.__doc__ or ""
    generated = isinstance(documented, type) and text.startswith(f"{documented.__name__}(")
    return "" if generated else " ".join(text.split("\n\n")[0].split())
