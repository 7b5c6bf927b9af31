"""Which tests cover each row of the checklist.

The tests are found in their source: `@pytest.mark.covers("S12")` on a function, a class or a
module.
"""

from __future__ import annotations

import ast
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from markdown import page as join
from markdown import table

ROOT = Path(__file__).resolve().parents[2]
ROWS = ROOT / "docs" / "_data" / "checklist.toml"

# Runs the examples of the docs' pages.
PAGES_TEST = "tests/house/test_docs.py::test_the_examples_of_a_page_run_as_they_stand"

INTRO = """
# Checklist

Behaviour of Kafka that a client can see, and the tests that cover it. A row without a test is not
covered. `make test ARGS="-k NAME"` runs a test.
"""

Definition = ast.FunctionDef | ast.AsyncFunctionDef


def tests_by_row() -> dict[str, list[str]]:
    """Row id -> node ids without parameters, in order."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        source = path.read_text(encoding="utf-8")
        if "covers(" not in source:
            continue
        for node_id, rows in marked(ast.parse(source), path.relative_to(ROOT).as_posix()):
            for row in rows:
                if node_id not in found[row]:
                    found[row].append(node_id)
    for row in rows_of_pages():
        found[row].append(PAGES_TEST)
    return found


def rows_of_pages() -> list[str]:
    """The rows that examples in the docs show: the literal `SHOWN` of the test that runs them."""
    source = (ROOT / PAGES_TEST.partition("::")[0]).read_text(encoding="utf-8")
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and _assigns(node, "SHOWN"):
            shown: dict[str, tuple[str, ...]] = ast.literal_eval(node.value)
            return sorted({row for rows in shown.values() for row in rows})
    raise SystemExit(f"{PAGES_TEST}: no SHOWN")


def marked(module: ast.Module, path: str, mark: str = "covers") -> Iterator[tuple[str, list[str]]]:
    """The tests of one module that carry rows of their own or their class's or module's."""
    shared = [
        row
        for node in module.body
        if isinstance(node, ast.Assign) and _assigns(node, "pytestmark")
        for row in rows_in(node.value, mark)
    ]
    yield from _marked_in(module.body, path, shared, mark)


def _marked_in(
    body: list[ast.stmt], prefix: str, shared: list[str], mark: str
) -> Iterator[tuple[str, list[str]]]:
    for node in body:
        if not isinstance(node, Definition | ast.ClassDef):
            continue
        rows = shared + [row for each in node.decorator_list for row in rows_in(each, mark)]
        name = f"{prefix}::{node.name}"
        if isinstance(node, ast.ClassDef):
            yield from _marked_in(node.body, name, rows, mark)
        elif rows and node.name.startswith("test"):
            yield name, rows


def _assigns(node: ast.Assign, name: str) -> bool:
    return any(isinstance(target, ast.Name) and target.id == name for target in node.targets)


def rows_in(expression: ast.expr, mark: str = "covers") -> list[str]:
    """The rows of every `pytest.mark.covers(...)`, or another mark, inside an expression."""
    return [
        argument.value
        for node in ast.walk(expression)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == mark
        for argument in node.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]


def page() -> str:
    data = tomllib.loads(ROWS.read_text(encoding="utf-8"))
    tests = tests_by_row()
    shown = sum(1 for row in data["rows"] if tests.get(row["id"]))
    parts = [INTRO, f"{shown} of {len(data['rows'])} rows have a test."]
    for number, title in data["sections"].items():
        rows = [row for row in data["rows"] if row["section"] == int(number)]
        parts += [
            f"## {title}",
            table(
                ("row", "behaviour", "tests"),
                [
                    (
                        row["id"],
                        row["title"],
                        "<br>".join(f"`{shorter(test)}`" for test in tests.get(row["id"], [])),
                    )
                    for row in rows
                ],
            ),
        ]
    return join(*parts)


def shorter(node_id: str) -> str:
    return node_id.removeprefix("tests/")
