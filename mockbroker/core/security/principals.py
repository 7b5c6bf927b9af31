"""Principals, and the principal of a client certificate.

A *principal* is `TYPE:NAME`; its type is always User here. The principal of the SASL user `alice`
is `User:alice`. That of a client certificate is the distinguished name of its subject in Java's
form (RFC 2253), mapped by the first matching rule of `ssl.principal.mapping.rules`:
`RULE:pattern/replacement/[LU]` or DEFAULT (KIP-371, SslPrincipalMapper).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

ANONYMOUS = "User:ANONYMOUS"

# The keywords of Java's X500Principal.getName(); other attributes have their object id.
_KEYWORDS = {
    "commonName": "CN",
    "countryName": "C",
    "domainComponent": "DC",
    "localityName": "L",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "userId": "UID",
}
# Object id and ASN.1 tag of the other attributes that certificates use.
_IA5, _PRINTABLE, _UTF8 = 0x16, 0x13, 0x0C
_OBJECT_IDS = {
    "dnQualifier": ("2.5.4.46", _PRINTABLE),
    "emailAddress": ("1.2.840.113549.1.9.1", _IA5),
    "generationQualifier": ("2.5.4.44", _UTF8),
    "givenName": ("2.5.4.42", _UTF8),
    "initials": ("2.5.4.43", _UTF8),
    "name": ("2.5.4.41", _UTF8),
    "pseudonym": ("2.5.4.65", _UTF8),
    "serialNumber": ("2.5.4.5", _PRINTABLE),
    "surname": ("2.5.4.4", _UTF8),
    "title": ("2.5.4.12", _UTF8),
}

_ESCAPED = re.compile(r'[,+"\\<>;]|^[ #]| $')


def user(name: str) -> str:
    """The principal of a user."""
    return f"User:{name}"


def distinguished_name(subject: Sequence[Sequence[tuple[str, str]]]) -> str:
    """A subject in Java's form, the most specific part first: `CN=alice,OU=tests,O=mockbroker`.

    `subject` is that of `ssl`: a sequence of parts, each of (long attribute name, value) pairs.
    """
    return ",".join(
        "+".join(_attribute(name, value) for name, value in part) for part in reversed(subject)
    )


def _attribute(name: str, value: str) -> str:
    keyword = _KEYWORDS.get(name)
    if keyword is not None:
        return f"{keyword}={_ESCAPED.sub(lambda match: chr(92) + match[0], value)}"
    object_id, tag = _OBJECT_IDS.get(name, (name, _UTF8))
    text = value.encode()
    return f"{object_id}=#{(bytes([tag]) + _der_length(len(text)) + text).hex()}"


def _der_length(length: int) -> bytes:
    if length < 0x80:
        return bytes([length])
    digits = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes([0x80 | len(digits)]) + digits


class NoMatchingRuleError(Exception):
    """No mapping rule matches a distinguished name; the client is refused."""


class _Rule(NamedTuple):
    """One rule. Without a pattern it is DEFAULT, which does not change the name."""

    pattern: re.Pattern[str] | None
    replacement: str
    case: str  # "L", "U" or ""

    def replace(self, match: re.Match[str]) -> str:
        """The replacement of a match; `$1` is a group, or text if the group does not exist."""

        def expand(part: re.Match[str]) -> str:
            escaped, digits = part.groups()
            if escaped is not None:
                return str(escaped)
            used = len(digits)
            while used > 1 and int(digits[:used]) > match.re.groups:
                used -= 1  # with one group, $12 is group 1 followed by a 2
            if int(digits[:used]) > match.re.groups:
                return part[0]
            return (match[int(digits[:used])] or "") + str(digits[used:])

        return _EXPANDED.sub(expand, self.replacement)


_EXPANDED = re.compile(r"\\(.)|\$(\d+)")
_CASES: dict[str, Callable[[str], str]] = {"L": str.lower, "U": str.upper, "": str}

# A pattern or replacement ends at the first unescaped slash.
_PART = r"((?:\\.|[^\\/])*)"
_RULE = re.compile(rf"\s*(?:(DEFAULT)|RULE:{_PART}/{_PART}/([LU]?))\s*(?:,|$)\s*")


class PrincipalMapper:
    """The parsed `ssl.principal.mapping.rules`. Raises ValueError for an invalid rule."""

    __slots__ = ("_rules",)

    def __init__(self, rules: str = "DEFAULT") -> None:
        self._rules: list[_Rule] = []
        at = 0
        while at < len(rules):
            found = _RULE.match(rules, at)
            if found is None:
                raise ValueError(f"not a principal mapping rule: {rules[at:]!r}")
            at = found.end()
            if found[1]:
                self._rules.append(_Rule(None, "", ""))
                continue
            try:
                pattern = re.compile(found[2])
            except re.error as error:
                raise ValueError(f"the pattern {found[2]!r} is invalid: {error}") from None
            self._rules.append(_Rule(pattern, found[3], found[4]))

    def name(self, distinguished: str) -> str:
        """The user name of a distinguished name. Raises NoMatchingRuleError."""
        for rule in self._rules:
            if rule.pattern is None:
                return distinguished
            if rule.pattern.fullmatch(distinguished):
                return _CASES[rule.case](rule.pattern.sub(rule.replace, distinguished))
        raise NoMatchingRuleError(f"no principal mapping rule matches {distinguished}")
