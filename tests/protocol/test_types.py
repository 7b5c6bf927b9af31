"""Numbers in texts, as Java reads them."""

from __future__ import annotations

import pytest

from mockbroker_protocol.types import parse_integer


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("1", 1),
        ("-1", -1),
        ("+7", 7),
        ("007", 7),
        ("0" * 10_000 + "7", 7),
        ("2147483647", 2**31 - 1),
        ("2147483648", None),
        ("-2147483648", -(2**31)),
        ("9" * 5_000, None),  # int() raises ValueError
        ("²", None),  # a digit that int() does not read
        ("1_0", None),
        (" 1", None),
        ("", None),
        ("-", None),
        ("x", None),
    ],
)
def test_a_text_is_an_integer_as_for_javas_parse_int(text: str, number: int | None) -> None:
    assert parse_integer(text) == number


def test_bounds_may_be_others() -> None:
    assert parse_integer("-1", 0) is None
    assert parse_integer("9223372036854775807", high=2**63 - 1) == 2**63 - 1
