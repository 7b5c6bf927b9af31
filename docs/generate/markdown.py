"""The little Markdown that the generated pages need."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A pipe table; `|` in a cell is escaped."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(cell(value) for value in row) + " |" for row in rows]
    return "\n".join(lines)


def cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("\n", " ")


def part(text: str) -> str:
    """A page as a part of another one: each heading is a level lower."""
    return re.sub(r"^(?=#{1,5} )", "#", text, flags=re.MULTILINE)


def page(*blocks: str) -> str:
    return "\n\n".join(block.strip("\n") for block in blocks) + "\n"
