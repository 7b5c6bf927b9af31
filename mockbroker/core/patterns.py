r"""Regular expressions that clients and rules send, matched by RE2 in time linear in the text.

Kafka's brokers use RE2/J for a subscription (KIP-848) and for ListTransactions (KIP-1152). Python's
`re` backtracks: `(a+)+z` and 27 letters keep it busy for seconds, in which no request is served.
RE2 has no lookaround, no backreferences and no possessive quantifiers.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Protocol

# What RE2/J calls the errors that RE2 names otherwise; the rest has the same words.
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
    """RE2/J refuses the pattern; the message is its description of the error."""


class Pattern(Protocol):
    """A compiled pattern; its methods return None where it does not match."""

    def fullmatch(self, text: str, /) -> object | None: ...

    def search(self, text: str, /) -> object | None: ...


@lru_cache(maxsize=256)
def compile_pattern(text: str) -> Pattern:
    """Raises InvalidPatternError for what is no expression of RE2/J."""
    import re2  # a process without patterns starts faster

    # RE2 takes `\C`, one byte of a character; RE2/J does not.
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
        if part.startswith("(?<"):  # a lookbehind is to RE2/J a group with a bad name
            name = "invalid named capture group"
        raise InvalidPatternError(_DESCRIPTIONS.get(name, name)) from None
    return pattern
