"""Long values are shown in one short line."""

from __future__ import annotations

from mockbroker.core.shortening import SHOWN_CHARS_MAX, shortened, shown_bytes


def test_a_text_is_cut_where_it_is_too_long() -> None:
    assert shortened("x" * SHOWN_CHARS_MAX) == "x" * SHOWN_CHARS_MAX
    assert shortened("x" * (SHOWN_CHARS_MAX + 1)) == "x" * (SHOWN_CHARS_MAX - 1) + "…"
    assert shortened("abcd", 3) == "ab…"


def test_keys_and_values_are_bytes_or_null() -> None:
    assert shown_bytes(None) == "null"
    assert shown_bytes(b"") == "b''"
    assert shown_bytes(b"\0" * 40) == "b'" + r"\x00" * 9 + r"\…"
