"""Regexes are RE2's, and match whole names."""

from __future__ import annotations

import pytest

from mockbroker.core.groups.consumer.regex import InvalidRegexError, compile_regex


def matches(regex: str, name: str) -> bool:
    return compile_regex(regex).fullmatch(name) is not None


@pytest.mark.covers("S42")
@pytest.mark.parametrize(
    ("name", "expected"),
    [("topi", True), ("topic", True), ("topiccc", True), ("topic1", False), ("my-topic", False)],
)
def test_the_whole_name_has_to_match(name: str, expected: bool) -> None:
    assert matches("topic*", name) is expected


@pytest.mark.parametrize(
    ("regex", "yes", "no"),
    [
        (r"\pL+", "abc", "a1"),
        (r"\p{Lu}+", "ABC", "abc"),
        (r"\PL+", "12.3", "a"),
        (r"\p{^Lu}", "a", "A"),
        (r"[\pN.]+", "1.2", "a"),
        ("[[:alpha:]]+", "abc", "ab1"),
        ("[[:^alpha:]]+", "123", "a"),
        ("[[:digit:]-]+", "1-2", "a"),
        (r"\Qa.b\E.", "a.bc", "axbc"),
        (r"\Qa.b", "a.b", "axb"),
        (r"a\z", "a", "aa"),
        ("(?i)abc", "ABC", "abd"),
        ("(?P<n>a)b", "ab", "ba"),
        ("(?<n>a)b", "ab", "ba"),
        (r"a{2,3}", "aaa", "aaaa"),
        (r"[]a]", "]", "b"),
        (r"a|b|", "", "c"),
        (r"a\.b", "a.b", "axb"),
        (r"\d+\w", "12a", "a1"),
        ("(?U)a+", "aa", "b"),
        ("a(?i)b|c", "C", "A"),
        ("(a(?i)b|c)d", "aBd", "aBD"),
        ("(?i:a)b", "Ab", "AB"),
        ("(?i)a(?-i)b", "Ab", "AB"),
        ("^*a$*", "a", "^a"),
        (r"\x{41}\x42\103", "ABC", "abc"),
        ("[^a-c]", "d", "b"),
        (r"[\x61-c\-]+", "a-c", "d"),
        ("[a&&b]+", "a&b", "c"),
        ("a{", "a{", "a"),
        ("a{,2}", "a{,2}", "aa"),
        (r"[\p{Han}]?", "", "a"),
        (r"a??b", "b", "c"),
    ],
)
def test_what_re2_knows_is_understood(regex: str, yes: str, no: str) -> None:
    assert matches(regex, yes)
    assert not matches(regex, no)


@pytest.mark.parametrize(
    "regex",
    [
        *("(", ")", "[", "[b-a]", "*a", "a**", "a++", "a*+", "a{2}{3}", "a{1001}", "a{2,1001}"),
        *("(?=a)", "(?!a)", "(?<=a)", "(?<!a)", "(?>a)", "(?P=n)", "(?P>n)", r"\1", r"\y", r"\Z"),
        *(r"\C", "(?x)a", "(?)", "(a", "a)", r"[\b]", r"[a-\d]", "(|*a)", "a{3,2}", "[a-"),
        *("[[:nope:]]", r"\p{Nope}", "\\"),
    ],
)
def test_what_re2_refuses_is_refused(regex: str) -> None:
    with pytest.raises(InvalidRegexError):
        compile_regex(regex)
