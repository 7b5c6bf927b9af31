"""Mutants of SQL: one word or sign of a query replaced."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

# What is replaced by what. Comments, strings and quoted names stay, but for verdicts.
SWAPS = {
    "=": "<>", "<>": "=", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "+": "-", "-": "+",
    "AND": "OR", "OR": "AND", "NOT EXISTS": "EXISTS", "EXISTS": "NOT EXISTS",
    "IS NULL": "IS NOT NULL", "IS NOT NULL": "IS NULL", "IN": "NOT IN", "NOT IN": "IN",
    "min": "max", "max": "min", "lag": "lead", "lead": "lag", "SEMI JOIN": "ANTI JOIN",
    "ANTI JOIN": "SEMI JOIN", "LEFT JOIN": "JOIN", "TRUE": "FALSE", "FALSE": "TRUE",
    "'bug'": "'report'", "'report'": "'bug'", "UNION ALL": "EXCEPT", "DISTINCT": "ALL",
}  # fmt: skip

_TOKEN = re.compile(
    r"""--[^\n]*|"[^"]*"|'[^']*'|\b(?:NOT\ EXISTS|IS\ NOT\ NULL|IS\ NULL|NOT\ IN|SEMI\ JOIN
    |ANTI\ JOIN|LEFT\ JOIN|UNION\ ALL)\b|\b\w+\b|<>|<=|>=|[=<>+-]""",
    re.VERBOSE,
)
_NUMBER = re.compile(r"\d+")


class Swap(NamedTuple):
    """A replacement in a text: what stands from `start` to `end` becomes `text`."""

    start: int
    end: int
    text: str


def swaps(query: str) -> Iterator[Swap]:
    """The replacements that are possible in a query, in its order."""
    for token in _TOKEN.finditer(query):
        word = token.group()
        if word in SWAPS:
            yield Swap(token.start(), token.end(), SWAPS[word])
        elif _NUMBER.fullmatch(word):
            yield Swap(token.start(), token.end(), str(int(word) + 1))
