"""Tests that pages name as FILE::FUNCTION."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tests.house.lint import ROOT


def missing(named: Iterable[str]) -> list[str]:
    """The named tests that do not exist."""
    return [each for each in named if not _exists(each)]


def _exists(test: str) -> bool:
    path, _, name = test.partition("::")
    file = ROOT / path
    pattern = rf"^(async )?def {re.escape(name)}\("
    return file.is_file() and bool(re.search(pattern, file.read_text("utf-8"), re.MULTILINE))
