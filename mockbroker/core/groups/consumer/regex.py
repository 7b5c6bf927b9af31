r"""Regexes that a member subscribes with: RE2 syntax, and the whole name has to match (KIP-848).

Kafka's brokers use RE2/J. A regex is read here as RE2 reads it and written anew for Python's `re`,
so that what RE2 refuses is refused (lookaround, backreferences, possessive quantifiers), and what
`re` does not know is understood (`\pL`, `[[:alpha:]]`, `\Q...\E`, flags in the middle). Names of
topics are ASCII, so classes are sets of ASCII characters. Unlike RE2, `re` backtracks: a pattern
made for it can take long on a long name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

REPEAT_MAX = 1000  # RE2's limit

_ASCII = frozenset(map(chr, range(128)))
_DIGITS = frozenset("0123456789")
_LOWER = frozenset("abcdefghijklmnopqrstuvwxyz")
_UPPER = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_ALPHA = _LOWER | _UPPER
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_PERL = {"d": _DIGITS, "s": frozenset("\t\n\f\r "), "w": _ALPHA | _DIGITS | {"_"}}
_POSIX = {
    "alnum": _ALPHA | _DIGITS,
    "alpha": _ALPHA,
    "ascii": _ASCII,
    "blank": frozenset("\t "),
    "cntrl": frozenset(map(chr, (*range(32), 127))),
    "digit": _DIGITS,
    "graph": _ALPHA | _DIGITS | _PUNCTUATION,
    "lower": _LOWER,
    "print": _ALPHA | _DIGITS | _PUNCTUATION | {" "},
    "punct": _PUNCTUATION,
    "space": frozenset("\t\n\v\f\r "),
    "upper": _UPPER,
    "word": _PERL["w"],
    "xdigit": _DIGITS | frozenset("abcdefABCDEF"),
}
# General categories and some scripts, as far as they have ASCII characters or are often named.
_UNICODE: dict[str, frozenset[str]] = {
    "Any": _ASCII,
    "L": _ALPHA,
    "Lu": _UPPER,
    "Ll": _LOWER,
    "Lt": frozenset(),
    "Lo": frozenset(),
    "N": _DIGITS,
    "Nd": _DIGITS,
    "M": frozenset(),
    "Pc": frozenset("_"),
    "Pd": frozenset("-"),
    "P": frozenset("!\"#%&'()*,-./:;?@[\\]_{}"),
    "Po": frozenset("!\"#%&'*,./:;?@\\"),
    "Ps": frozenset("([{"),
    "Pe": frozenset(")]}"),
    "S": frozenset("$+<=>^`|~"),
    "Z": frozenset(" "),
    "Zs": frozenset(" "),
    "C": _POSIX["cntrl"],
    "Cc": _POSIX["cntrl"],
    "Latin": _ALPHA,
    "Common": _ASCII - _ALPHA,
    "Greek": frozenset(),
    "Cyrillic": frozenset(),
    "Han": frozenset(),
    "Arabic": frozenset(),
    "Hebrew": frozenset(),
}
_CONTROLS = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ANCHORS = {"A": r"\A", "b": r"\b", "B": r"\B", "z": r"\Z"}

_GROUP = re.compile(r"\(\?(?:P?<(?P<name>\w+)>|(?P<on>[imsU]*)(?:-(?P<off>[imsU]+))?(?P<end>[:)]))")
_REPEAT = re.compile(r"\{(\d+)(?:(,)(\d*))?\}")
_HEX = re.compile(r"x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]+)\})")
_OCTAL = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{1,2}")
_PROPERTY = re.compile(r"[pP](?:\{(\^?)(\w+)\}|(\w))")
_POSIX_CLASS = re.compile(r"\[:(\^?)(\w+):\]")


class InvalidRegexError(ValueError):
    """RE2 would refuse the regex; the message says why."""


@lru_cache(maxsize=256)
def compile_regex(regex: str) -> re.Pattern[str]:
    """Compile a regex, to be used with `fullmatch`. Raises InvalidRegexError."""
    try:
        return re.compile(_Reader(regex).read(), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidRegexError(str(error)) from None


class _Reader:
    """Reads a regex of RE2 and writes it for `re`, piece by piece."""

    def __init__(self, regex: str) -> None:
        self.text = regex
        self.at = 0
        self.out: list[str] = []
        # For each open group, the flags set inside of it so far: each is a scope in `re`.
        self.scopes: list[list[str]] = [[]]
        self.repeatable = False  # something to repeat stands before
        self.repeated = False

    def read(self) -> str:
        while self.at < len(self.text):
            self._piece()
        if len(self.scopes) > 1:
            raise InvalidRegexError("a group is not closed")
        self.out.append(")" * len(self.scopes[0]))
        return "".join(self.out)

    def _piece(self) -> None:
        char = self.text[self.at]
        read = _PIECES.get(char)
        if read is not None:
            read(self)
        else:
            self.at += 1
            self._atom(re.escape(char))

    def _atom(self, text: str) -> None:
        self.out.append(text)
        self.repeatable, self.repeated = True, False

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.at)
        if found is not None:
            self.at = found.end()
        return found

    # ---------------------------------------------------------------------------------- groups

    def _open(self) -> None:
        self.repeatable = False
        if not self.text.startswith("(?", self.at):
            self.at += 1
            self.out.append("(")
            self.scopes.append([])
            return
        found = self._take(_GROUP)
        if found is None or (found["off"] is None and found["on"] == "" and found["end"] == ")"):
            raise InvalidRegexError("a group of a kind that RE2 has not")
        if found["name"] is not None:
            self.out.append(f"(?P<{found['name']}>")
            self.scopes.append([])
            return
        # Greediness makes no difference to a full match.
        on, off = found["on"].replace("U", ""), (found["off"] or "").replace("U", "")
        opening = f"(?{on}-{off}:" if off else f"(?{on}:"
        self.out.append(opening)
        if found["end"] == ":":
            self.scopes.append([])
        else:
            self.scopes[-1].append(opening)

    def _close(self) -> None:
        self.at += 1
        if len(self.scopes) == 1:
            raise InvalidRegexError("a group is closed that was not opened")
        self._atom(")" * (len(self.scopes.pop()) + 1))

    def _alternative(self) -> None:
        """Flags hold for what follows in the same group, other alternatives included."""
        self.at += 1
        scopes = self.scopes[-1]
        self.out.append(")" * len(scopes) + "|" + "".join(scopes))
        self.repeatable = False

    # ------------------------------------------------------------------------------ repetition

    def _star(self) -> None:
        self.at += 1
        self._repetition(self.text[self.at - 1])

    def _brace(self) -> None:
        found = self._take(_REPEAT)
        if found is None:
            self.at += 1
            self._atom(r"\{")
            return
        low, high = int(found[1]), int(found[3]) if found[3] else None
        if low > REPEAT_MAX or (high is not None and not low <= high <= REPEAT_MAX):
            raise InvalidRegexError(f"a bad repeat count: {found[0]}")
        self._repetition(found[0])

    def _repetition(self, operator: str) -> None:
        if not self.repeatable:
            raise InvalidRegexError(f"nothing to repeat before {operator}")
        if self.repeated:
            raise InvalidRegexError(f"a repetition of a repetition: {operator}")
        lazy = self.text.startswith("?", self.at)
        self.at += lazy
        self.out.append(operator + "?" * lazy)
        self.repeated = True

    # -------------------------------------------------------------------------------- one atom

    def _any(self) -> None:
        self.at += 1
        self._atom(".")

    def _begin(self) -> None:
        self.at += 1
        self._atom("(?:^)")

    def _end(self) -> None:
        self.at += 1
        self._atom("(?:$)")

    def _escape(self) -> None:
        self.at += 1
        following = self.text[self.at : self.at + 1]
        if following == "Q":
            quoted, _, _ = self.text[self.at + 1 :].partition("\\E")
            self.at = min(self.at + 1 + len(quoted) + 2, len(self.text))
            for char in quoted:
                self._atom(re.escape(char))
        elif following in _ANCHORS:
            self.at += 1
            self._atom(f"(?:{_ANCHORS[following]})")
        else:
            self._atom(_class(self._class_escape() or {self._character()}))

    def _class_escape(self) -> frozenset[str] | None:
        r"""What `\d`, `\pL` and their like stand for; None if it is another escape."""
        following = self.text[self.at : self.at + 1]
        perl = _PERL.get(following.lower()) if following else None
        if perl is not None:
            self.at += 1
            return perl if following.islower() else _ASCII - perl
        found = self._take(_PROPERTY)
        if found is None:
            return None
        members = _UNICODE.get(found[2] or found[3])
        if members is None:
            raise InvalidRegexError(f"an unknown character class: {found[0]}")
        negated = found[0].startswith("P") != bool(found[1])
        return _ASCII - members if negated else members

    def _character(self) -> str:
        """The character that the rest of an escape stands for."""
        found = self._take(_HEX)
        if found is not None:
            return _chr(int(found[1] or found[2], 16))
        found = self._take(_OCTAL)
        if found is not None:
            return _chr(int(found[0], 8))
        char = self.text[self.at : self.at + 1]
        self.at += 1
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char and char in _ASCII and not char.isalnum():
            return char
        raise InvalidRegexError(f"an unknown escape: \\{char}")

    # -------------------------------------------------------------------------------- a class

    def _brackets(self) -> None:
        self.at += 1
        negated = self.text.startswith("^", self.at)
        self.at += negated
        members: set[str] = set()
        first = True
        while first or not self.text.startswith("]", self.at):
            if self.at >= len(self.text):
                raise InvalidRegexError("a class is not closed")
            members |= self._class_item()
            first = False
        self.at += 1
        self._atom(_class(_ASCII - members if negated else members))

    def _class_item(self) -> set[str] | frozenset[str]:
        posix = self._take(_POSIX_CLASS)
        if posix is not None:
            named = _POSIX.get(posix[2])
            if named is None:
                raise InvalidRegexError(f"an unknown character class: {posix[0]}")
            return _ASCII - named if posix[1] else named
        if self.text.startswith("\\", self.at):
            self.at += 1
            several = self._class_escape()
            if several is not None:
                return several
            self.at -= 1
        low = self._class_character()
        ends = self.text.startswith("-]", self.at)
        if ends or not self.text.startswith("-", self.at):
            return {low}
        self.at += 1
        high = self._class_character()
        if high < low:
            raise InvalidRegexError(f"a bad range: {low}-{high}")
        return {char for char in _ASCII if low <= char <= high}

    def _class_character(self) -> str:
        char = self.text[self.at : self.at + 1]
        if not char:
            raise InvalidRegexError("a class is not closed")
        self.at += 1
        return self._character() if char == "\\" else char


_PIECES: dict[str, Callable[[_Reader], None]] = {
    "(": _Reader._open,
    ")": _Reader._close,
    "|": _Reader._alternative,
    "*": _Reader._star,
    "+": _Reader._star,
    "?": _Reader._star,
    "{": _Reader._brace,
    "[": _Reader._brackets,
    ".": _Reader._any,
    "^": _Reader._begin,
    "$": _Reader._end,
    "\\": _Reader._escape,
}


def _class(members: set[str] | frozenset[str]) -> str:
    """A class of exactly these characters."""
    if not members & _ASCII:
        return r"[^\s\S]"
    return "[" + "".join(f"\\x{ord(char):02x}" for char in sorted(members & _ASCII)) + "]"


def _chr(code: int) -> str:
    if code > 0x10FFFF:
        raise InvalidRegexError(f"no character has the code {code:x}")
    return chr(code)
