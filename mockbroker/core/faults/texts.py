"""Matchers of texts, client addresses and API versions."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from fnmatch import translate

from mockbroker.core.patterns import InvalidPatternError, compile_pattern
from mockbroker.core.validation import ValidationError

PATTERN_CHARS_MAX = 1000

TextMatcher = Callable[[str], bool]


def text_matcher(pattern: str | list[str], path: str) -> TextMatcher:
    """A test for one of the patterns: a glob, or an RE2 expression between slashes.

    Raises ValidationError for an invalid expression.
    """
    patterns = pattern if isinstance(pattern, list) else [pattern]
    plain = literals(pattern)
    if plain is not None:
        if len(plain) == 1:
            (only,) = plain
            return only.__eq__
        return plain.__contains__
    compiled = [_compiled(each, path) for each in patterns]
    return lambda text: any(search(text) for search in compiled)


def literals(pattern: str | list[str]) -> frozenset[str] | None:
    """The texts themselves if no pattern has a wildcard; None otherwise."""
    patterns = pattern if isinstance(pattern, list) else [pattern]
    if any(_is_regex(each) or set(each) & set("*?[") for each in patterns):
        return None
    return frozenset(patterns)


def _is_regex(pattern: str) -> bool:
    return len(pattern) > 2 and pattern[0] == pattern[-1] == "/"


def _compiled(pattern: str, path: str) -> Callable[[str], object]:
    if len(pattern) > PATTERN_CHARS_MAX:
        raise ValidationError(path, f"a pattern has at most {PATTERN_CHARS_MAX} characters")
    if not _is_regex(pattern):
        return re.compile(translate(pattern)).match
    try:
        return compile_pattern(pattern[1:-1]).search
    except InvalidPatternError as error:
        raise ValidationError(path, f"{pattern} is no regular expression: {error}") from None


def source_matcher(pattern: str | list[str], path: str) -> Callable[[str, int], bool]:
    """A test of a client's address: `10.0.0.0/8`, `127.0.0.1`, `127.0.0.1:5000*`, a glob."""
    networks, texts = [], []
    for each in pattern if isinstance(pattern, list) else [pattern]:
        try:
            networks.append(ipaddress.ip_network(each, strict=False))
        except ValueError:
            texts.append(each)
    fits = text_matcher(texts, path) if texts else None

    def matches(host: str, port: int) -> bool:
        if networks:
            try:
                address = ipaddress.ip_address(host)
            except ValueError:
                address = None
            if address is not None and any(address in network for network in networks):
                return True
        return fits is not None and (fits(host) or fits(f"{host}:{port}"))

    return matches


def version_matcher(wanted: int | str | list[int], path: str) -> Callable[[int], bool]:
    """A test of a version: equal, one of a list, or in a range: "3-9", "9+", "-2"."""
    if not isinstance(wanted, str):
        return frozenset(wanted if isinstance(wanted, list) else [wanted]).__contains__
    match = re.fullmatch(r"([0-9]{0,5})(-([0-9]{0,5})|\+)?", wanted.replace(" ", ""))
    if match is None or not wanted.strip("+- "):
        raise ValidationError(
            path, f'{wanted!r} is no range of versions; write 9, "3-9", "9+" or "-2"'
        )
    low = int(match[1] or 0)
    high = int(match[3] or 32767) if match[2] else low
    return lambda version: low <= version <= high
