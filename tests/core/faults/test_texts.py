"""Patterns of a rule: globs, and RE2's expressions between slashes."""

from __future__ import annotations

import pytest

from mockbroker.core.faults.texts import text_matcher
from mockbroker.core.validation import ValidationError


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        ("orders", "orders", True),
        ("orders", "orders-2", False),
        ("orders*", "orders-2", True),
        ("order[sz]", "orderz", True),
        ("/der/", "orders", True),
        ("/^der/", "orders", False),
        (["a", "/^o/"], "orders", True),
    ],
)
def test_a_glob_fits_the_whole_text_and_an_expression_a_part(
    pattern: str | list[str], text: str, fits: bool
) -> None:
    assert text_matcher(pattern, "topic")(text) is fits


def test_an_expression_that_re2_refuses_is_refused_with_its_path() -> None:
    with pytest.raises(
        ValidationError,
        match=r"topic: /\(\?=a\)/ is no regular expression: invalid or unsupported Perl syntax",
    ):
        text_matcher("/(?=a)/", "topic")


@pytest.mark.timeout(10)
@pytest.mark.parametrize("pattern", ["/(a+)+z/", "/^(a|aa)+$b/", "*a" * 30 + "*z"])
def test_an_expression_with_exponential_backtracking_takes_linear_time(pattern: str) -> None:
    assert not text_matcher(pattern, "client_id")("a" * 2000)
