r"""Regexes that a member subscribes with: RE2 syntax, and the whole name has to match (KIP-848).

Kafka's brokers use RE2/J. Its common ground with Python's `re` is large; what RE2 refuses is
refused here as well (lookaround, backreferences, possessive quantifiers, atomic groups), and what
only RE2 knows is put into Python's words (`\pL`, `[[:alpha:]]`, `\Q...\E`, `\z`). Unlike RE2, `re`
backtracks: a pattern made for it can take long on a long name.
"""

from __future__ import annotations

import re
from functools import lru_cache

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7F",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1F\\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}

# Names of topics are ASCII, so that of Unicode's classes only these can ever match.
_UNICODE = {
    "L": "A-Za-z",
    "Lu": "A-Z",
    "Ll": "a-z",
    "N": "0-9",
    "Nd": "0-9",
    "P": "._\\-",
    "Pc": "_",
    "Pd": "\\-",
    "Po": ".",
    "Latin": "A-Za-z",
    "Greek": "",
    "Cyrillic": "",
    "Han": "",
}

_QUOTED = re.compile(r"\\Q(.*?)(?:\\E|$)", re.DOTALL)
_POSIX_CLASS = re.compile(r"\[:(\^?)(\w+):\]")
_UNICODE_CLASS = re.compile(r"\\([pP])(?:\{(\^?)(\w+)\}|(\w))")
_NAMED_GROUP = re.compile(r"\(\?P?<(\w+)>")
# Walks over escapes and character classes, so that what looks like more inside them is left alone.
_TOKEN = re.compile(
    r"\\(?P<escape>.)|(?P<klass>\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\])"
    r"|(?P<look>\(\?(?:[=!>(#]|<[=!]|P[=>]))|(?P<possessive>(?:[*+?]|\{\d+(?:,\d*)?\})[+])"
    r"|(?P<twice>(?:[*+]|\{\d+(?:,\d*)?\})[*]|\?[*])",
    re.DOTALL,
)
_REPEAT = re.compile(r"\{(\d+)(?:,(\d*))?\}")
REPEAT_MAX = 1000  # RE2's limit
# What RE2 has no meaning for, of ASCII letters and digits.
_UNKNOWN_ESCAPES = frozenset("123456789ceghijklmoquyEGHIJKLMNORTUVXYZ") - {"E"}


class InvalidRegexError(ValueError):
    """RE2 would refuse the regex; the message says why."""


@lru_cache(maxsize=256)
def compile_regex(regex: str) -> re.Pattern[str]:
    """Compile a regex, to be used with `fullmatch`. Raises InvalidRegexError."""
    text = _QUOTED.sub(lambda found: re.escape(found[1]), regex)
    _refuse_unknown(text)
    text = _POSIX_CLASS.sub(_posix, text)
    text = _replace_unicode(text)
    text = _NAMED_GROUP.sub(r"(?P<\1>", text)
    text = text.replace(r"\z", r"\Z").replace(r"\C", "(?s:.)")
    try:
        return re.compile(text, re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidRegexError(str(error)) from None


def _refuse_unknown(text: str) -> None:
    for token in _TOKEN.finditer(text):
        if token["look"] is not None:
            raise InvalidRegexError(f"{token[0]!r} is not of RE2")
        if token["possessive"] is not None or token["twice"] is not None:
            raise InvalidRegexError(f"a quantifier on a quantifier: {token[0]!r}")
        if token["escape"] is not None and token["escape"] in _UNKNOWN_ESCAPES:
            raise InvalidRegexError(f"unknown escape {token[0]!r}")
    for low, high in _REPEAT.findall(text):
        if int(low) > REPEAT_MAX or (high and int(high) > REPEAT_MAX):
            raise InvalidRegexError(f"more than {REPEAT_MAX} repetitions")


def _posix(found: re.Match[str]) -> str:
    characters = _POSIX.get(found[2])
    if characters is None:
        raise InvalidRegexError(f"unknown character class {found[0]}")
    if found[1]:
        inside = re.compile(f"[{characters}]")
        return "".join(re.escape(c) for c in map(chr, range(128)) if not inside.match(c))
    return characters


def _replace_unicode(text: str) -> str:
    r"""`\pL` and its kin, in and out of brackets."""
    if "\\p" not in text and "\\P" not in text:
        return text

    def one(found: re.Match[str], inside: bool) -> str:
        characters = _UNICODE.get(found[3] or found[4])
        if characters is None:
            raise InvalidRegexError(f"unknown character class {found[0]}")
        negated = (found[1] == "P") != bool(found[2])
        members = re.compile(f"[{characters}]") if characters else None
        chosen = [
            re.escape(c)
            for c in map(chr, range(128))
            if negated != (members is not None and members.match(c) is not None)
        ]
        listed = "".join(chosen)
        if inside:
            return listed
        return f"[{listed}]" if listed else r"[^\s\S]"

    out: list[str] = []
    end = 0
    for token in re.finditer(r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\[pP](?:\{\^?\w+\}|\w)|\\.", text):
        out.append(text[end : token.start()])
        piece = token[0]
        if piece.startswith("["):
            piece = _UNICODE_CLASS.sub(lambda found: one(found, inside=True), piece)
        elif piece[1] in "pP":
            piece = _UNICODE_CLASS.sub(lambda found: one(found, inside=False), piece)
        out.append(piece)
        end = token.end()
    return "".join(out) + text[end:]
