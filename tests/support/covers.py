"""The rows of the checklist that a run's marks name: `@pytest.mark.covers("S12", …)`.

An unknown row stops the run. `docs/generate` reads the marks from the source.
"""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path

import pytest

CHECKLIST = Path(__file__).resolve().parents[2] / "docs" / "_data" / "checklist.toml"


@functools.cache
def known_rows() -> frozenset[str]:
    rows = tomllib.loads(CHECKLIST.read_text(encoding="utf-8"))["rows"]
    return frozenset(row["id"] for row in rows)


class Covers:
    """The plugin: refuses a test that covers a row which is not in the checklist."""

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            rows = {row for mark in item.iter_markers("covers") for row in mark.args}
            if unknown := rows - known_rows():
                raise pytest.UsageError(f"{item.nodeid} covers unknown rows {sorted(unknown)}")
