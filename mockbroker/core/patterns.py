r"""Regular expressions of clients and rules, matched by RE2 in linear time.

Kafka uses RE2/J for subscriptions (KIP-848) and for ListTransactions (KIP-1152). Python's `re`
backtracks: `(a+)+z` with 27 letters takes seconds, in which no request is served. RE2 has no
lookaround, no backreferences and no possessive quantifiers.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Protocol

# RE2/J's descriptions of errors that differ from RE2's.
_DESCRIPTIONS = {
    "bad repetition operator": "invalid nested repetition operator",
    "invalid named capture group": "invalid named capture",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid repetition size": "invalid repeat count",
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "trailing \\": "trailing backslash at end of expression",
    "unexpected )": "regexp/syntax: internal error",
}
_QUOTED_OR_ESCAPED = re.compile(r"\\Q.*?(?:\\E|\Z)|\\.", re.DOTALL)


class InvalidPatternError(ValueError):
    """RE2/J does not accept the pattern; the message is RE2/J's description."""


class Pattern(Protocol):
    """A compiled pattern; its methods return None if it does not match."""

    def fullmatch(self, text: str, /) -> object | None: ...

    def search(self, text: str, /) -> object | None: ...


# A compiled pattern may take 1.6 MB, and more once it is used.
@lru_cache(maxsize=32)
def compile_pattern(text: str) -> Pattern:
    """Compile a pattern. Raises InvalidPatternError if RE2/J does not accept it."""
    import re2  # imported here for a fast start

    # RE2 accepts `\C`, one byte of a character; RE2/J does not.
    if r"\C" in _QUOTED_OR_ESCAPED.findall(text):
        raise InvalidPatternError("invalid escape sequence")
    options = re2.Options()
    options.log_errors = False
    try:
        pattern: Pattern = re2.compile(text, options)
    except UnicodeEncodeError:
        raise InvalidPatternError("invalid UTF-8") from None
    except re2.error as error:
        name, _, part = error.args[0].decode().partition(": ")
        if part.startswith("(?<"):  # RE2/J reads a lookbehind as a group with an invalid name
            name = "invalid named capture group"
        raise InvalidPatternError(_DESCRIPTIONS.get(name, name)) from None
    return pattern
