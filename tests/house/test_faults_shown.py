"""Every effect, action and condition of rules has a test with a real client."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

from mockbroker.core.actions import ACTIONS
from mockbroker.core.faults.effects.table import EFFECTS
from mockbroker.core.faults.rules import Match, When
from mockbroker.core.validation import struct_fields


def test_nothing_that_a_rule_can_say_is_without_a_client(
    generator: Callable[[str], ModuleType],
) -> None:
    marks = generator("fault_tests").tests_by_name()
    shown = {name for name, tests in marks.items() if tests}
    known = {*EFFECTS, *ACTIONS, *struct_fields(Match), *struct_fields(When)}
    assert known - shown == set()
