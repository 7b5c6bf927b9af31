"""Long values in one line, as messages for people show them."""

from __future__ import annotations

SHOWN_CHARS_MAX = 40


def shortened(text: str, chars_max: int = SHOWN_CHARS_MAX) -> str:
    """A text of at most `chars_max` characters: a longer one ends with `…`."""
    return text if len(text) <= chars_max else text[: chars_max - 1] + "…"


def shown_bytes(value: bytes | None) -> str:
    """A key or value of a record."""
    return "null" if value is None else shortened(repr(value))
