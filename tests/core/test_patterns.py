"""Patterns of clients and rules are RE2/J's, and are answered at once."""

from __future__ import annotations

import pytest

from mockbroker.core.patterns import InvalidPatternError, compile_pattern


def matches(regex: str, name: str) -> bool:
    return compile_pattern(regex).fullmatch(name) is not None


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
        ("(?)a", "a", "b"),
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
        *(r"\C", "(?x)a", "(?x", "(a", "a)", r"[\b]", r"[a-\d]", "(|*a)", "a{3,2}", "[a-"),
        *("[[:nope:]]", r"\p{Nope}", "\\"),
    ],
)
def test_what_re2_refuses_is_refused(regex: str) -> None:
    with pytest.raises(InvalidPatternError):
        compile_pattern(regex)


@pytest.mark.parametrize(
    ("regex", "description"),
    [
        ("a(", "missing closing )"),
        ("(?<=a)", "invalid named capture"),
        ("(?<!a)", "invalid named capture"),
        (")", "regexp/syntax: internal error"),
        ("[a", "missing closing ]"),
        ("[b-a]", "invalid character class range"),
        ("(?=a)", "invalid or unsupported Perl syntax"),
        ("(?P<>a)", "invalid named capture"),
        ("*a", "missing argument to repetition operator"),
        ("a++", "invalid nested repetition operator"),
        ("a{1001}", "invalid repeat count"),
        (r"(a)\1", "invalid escape sequence"),
        (r"a\C", "invalid escape sequence"),
        ("a\\", "trailing backslash at end of expression"),
    ],
)
def test_an_error_has_the_words_of_re2j(regex: str, description: str) -> None:
    """Checked against `PatternSyntaxException.getDescription()` of RE2/J 1.8."""
    with pytest.raises(InvalidPatternError) as refused:
        compile_pattern(regex)
    assert str(refused.value) == description


def test_a_quoted_backslash_and_c_are_text() -> None:
    assert matches(r"\Q\C\E", r"\C")
    assert matches(r"\\C", r"\C")


@pytest.mark.parametrize("regex", ["(a+)+z", "(a|aa)+z", "(a|a)*z", "(.*a){12}z", "(a?){30}a{30}z"])
@pytest.mark.timeout(10)
def test_a_pattern_that_makes_backtracking_explode_is_answered_at_once(regex: str) -> None:
    """A matcher that backtracks needs exponential time for most of these."""
    assert not matches(regex, "a" * 5000)
    assert compile_pattern(regex).search("a" * 5000) is None
