"""Durations as text: `250ms`, `45s`, `1.5h`, `7d`."""

from __future__ import annotations

import re

PATTERN = r"([0-9]{1,15}(?:\.[0-9]{1,9})?) ?(ms|s|m|h|d)"
_DURATION = re.compile(PATTERN)
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def parse_duration(text: str) -> int | None:
    """The duration in ms, or None if the text is not a duration."""
    match = _DURATION.fullmatch(text.strip())
    return None if match is None else round(float(match[1]) * _UNIT_MS[match[2]])
