"""Every effect, action and condition of rules has a test with a real client."""

from __future__ import annotations

import importlib.util
import sys

import pytest

from mockbroker.core.actions import ACTIONS
from mockbroker.core.faults.effects.table import EFFECTS
from mockbroker.core.faults.rules import Match, When
from mockbroker.core.validation import struct_fields
from tests.house.lint import ROOT


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The names that tests are marked with."""
    folder = ROOT / "docs" / "generate"
    monkeypatch.syspath_prepend(str(folder))
    spec = importlib.util.spec_from_file_location(
        "docs_generate_fault_tests", folder / "fault_tests.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = {name for name, tests in module.tests_by_name().items() if tests}
    for name in ("checklist", "markdown"):
        sys.modules.pop(name, None)
    return found


def test_nothing_that_a_rule_can_say_is_without_a_client(shown: set[str]) -> None:
    known = {*EFFECTS, *ACTIONS, *struct_fields(Match), *struct_fields(When)}
    assert known - shown == set()
