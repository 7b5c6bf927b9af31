"""Unchecked rules of the audits in the present test, for pytest's summary.

An assertion that allows a finding passes, but the summary of the run still lists what is open.
"""

from __future__ import annotations

from collections.abc import Iterable

_noted: dict[str, None] = {}


def note(lines: Iterable[str]) -> None:
    """Keep lines, each once."""
    _noted.update(dict.fromkeys(lines))


def taken() -> list[str]:
    """The lines since the last call, in their order."""
    lines = list(_noted)
    _noted.clear()
    return lines
