"""Which checklist rows a run has shown: collected from `@pytest.mark.covers("S12", …)`.

`--covers-report FILE` writes `{row: {test: outcome}}` as JSON; `docs/generate` makes the page.
Tests are named without their parameters, and a test counts as its worst outcome.
"""

from __future__ import annotations

import functools
import json
import tomllib
from pathlib import Path

import pytest

from tests.support.policy import bare

CHECKLIST = Path(__file__).resolve().parents[2] / "docs" / "_data" / "checklist.toml"
PROPERTY = "covers"

# worst last
OUTCOMES = ("passed", "skipped", "failed")


def add_options(parser: pytest.Parser) -> None:
    parser.addoption(
        "--covers-report",
        metavar="FILE",
        default=None,
        help="write which tests showed which checklist rows, and how they ended, as JSON",
    )


@functools.cache
def known_rows() -> frozenset[str]:
    rows = tomllib.loads(CHECKLIST.read_text(encoding="utf-8"))["rows"]
    return frozenset(row["id"] for row in rows)


def worse(one: str, other: str) -> str:
    return max(one, other, key=OUTCOMES.index)


class Covers:
    def __init__(self, config: pytest.Config) -> None:
        self.path: str | None = config.getoption("--covers-report")
        # With xdist the workers' reports all pass through the controller, which alone writes.
        self.writes = self.path is not None and not hasattr(config, "workerinput")
        self.rows: dict[str, dict[str, str]] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            rows = [row for mark in item.iter_markers("covers") for row in mark.args]
            if not rows:
                continue
            unknown = set(rows) - known_rows()
            if unknown:
                raise pytest.UsageError(f"{item.nodeid} covers unknown rows {sorted(unknown)}")
            item.user_properties.append((PROPERTY, " ".join(rows)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not self.writes or (report.when != "call" and report.outcome == "passed"):
            return
        test = bare(report.nodeid).partition("[")[0]
        for name, value in report.user_properties:
            if name == PROPERTY:
                for row in str(value).split():
                    tests = self.rows.setdefault(row, {})
                    tests[test] = worse(report.outcome, tests.get(test, "passed"))

    def pytest_sessionfinish(self) -> None:
        if self.writes and self.path is not None:
            path = Path(self.path)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(self.rows, indent=1, sort_keys=True), encoding="utf-8")
