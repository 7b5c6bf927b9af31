"""What a config definition is: a name, a type, a default, and the values it accepts.

Values travel as text. `ConfigDef.parse` gives the typed value and raises ConfigError in the cases
in which Kafka's ConfigDef and its validators refuse one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from mockbroker.core.errors import ConfigError

ConfigValue: TypeAlias = bool | int | float | str | tuple[str, ...] | None
# Gets the typed value, gives what a value must be instead when it is refused, or None.
Validator: TypeAlias = Callable[[ConfigValue], str | None]


class ConfigType(IntEnum):
    """Types by their code in DescribeConfigs responses."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


BOOLEAN = ConfigType.BOOLEAN
STRING = ConfigType.STRING
INT = ConfigType.INT
SHORT = ConfigType.SHORT
LONG = ConfigType.LONG
DOUBLE = ConfigType.DOUBLE
LIST = ConfigType.LIST
CLASS = ConfigType.CLASS
PASSWORD = ConfigType.PASSWORD


class UpdateMode(IntEnum):
    """Whether a broker config can change while the broker runs, and for whom."""

    READ_ONLY = 0
    PER_BROKER = 1
    CLUSTER_WIDE = 2


PER_BROKER = UpdateMode.PER_BROKER
CLUSTER_WIDE = UpdateMode.CLUSTER_WIDE

_INTEGER_BITS = {INT: 32, SHORT: 16, LONG: 64}
# Patterns stay text until first used (re caches them): compiling costs start-up time.
_INTEGER = r"[+-]?\d+"  # java.lang.Long.parseLong takes the digits of every script
# java.lang.Double.parseDouble, hexadecimal floats left out
_DOUBLE = r"([+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))[fFdD]?"
_COMMA = r"[ \t-\r]*,[ \t-\r]*"
_JAVA_TRIMS = "".join(map(chr, range(0x21)))  # java.lang.String.trim


class ConfigDef(NamedTuple):
    """One config. `default` is text, None if there is none. `internal` ones are never described."""

    name: str
    type: ConfigType
    default: str | None
    validator: Validator | None = None
    mode: UpdateMode = UpdateMode.READ_ONLY
    internal: bool = False

    @property
    def sensitive(self) -> bool:
        return self.type is PASSWORD

    def parse(self, text: str | None) -> ConfigValue:
        """The typed value of `text`, validated; ConfigError names the key and the reason."""
        value = None if text is None else parse_as(self.name, self.type, text)
        if self.validator is not None:
            wanted = self.validator(value)
            if wanted is not None:
                raise ConfigError(self.name, f"{text!r} is not {wanted}")
        return value

    def default_value(self) -> ConfigValue:
        """The typed default; defaults are not validated, as in Kafka."""
        return None if self.default is None else parse_as(self.name, self.type, self.default)


def parse_as(name: str, kind: ConfigType, text: str) -> ConfigValue:
    """Turn text into a value of `kind` (ConfigDef.parseType); ConfigError when it is none."""
    trimmed = text.strip(_JAVA_TRIMS)
    match kind:
        case ConfigType.BOOLEAN:
            lowered = trimmed.lower()
            if lowered not in ("true", "false"):
                raise ConfigError(name, f"{text!r} is neither true nor false")
            return lowered == "true"
        case ConfigType.INT | ConfigType.SHORT | ConfigType.LONG:
            if re.fullmatch(_INTEGER, trimmed) and len(trimmed) < 64:
                number = int(trimmed)
                if -(1 << (_INTEGER_BITS[kind] - 1)) <= number < 1 << (_INTEGER_BITS[kind] - 1):
                    return number
        case ConfigType.DOUBLE:
            matched = re.fullmatch(_DOUBLE, trimmed)
            if matched:
                return float(matched.group(1))
        case ConfigType.LIST:
            return tuple(re.split(_COMMA, trimmed)) if trimmed else ()
        case _:
            return trimmed
    raise ConfigError(name, f"{text!r} is not a number of type {kind.name}")


def to_text(value: ConfigValue) -> str | None:
    """The text Kafka shows for a typed value (ConfigDef.convertToString)."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case float():
            return _java_double(value)
        case tuple():
            return ",".join(value)
        case _:
            return str(value)


def _java_double(value: float) -> str:
    """java.lang.Double.toString: plain between 10^-3 and 10^7, else with an exponent."""
    if value != value:  # noqa: PLR0124 - NaN is the only value unlike itself
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        plain = f"{value!r}"
        return plain if "e" not in plain else f"{value:f}"
    digits, exponent = f"{value:e}".split("e")
    shortest = repr(value).lower().split("e")[0].lstrip("-").replace(".", "").strip("0") or "0"
    sign = "-" if digits.startswith("-") else ""
    return f"{sign}{shortest[0]}.{shortest[1:] or '0'}E{int(exponent)}"


def at_least(low: float) -> Validator:
    """Numbers from `low` up."""

    def check(value: ConfigValue) -> str | None:
        fits = isinstance(value, int | float) and not value < low  # NaN passes, as in Java
        return None if fits else f"{low} or more"

    return check


def between(low: float, high: float) -> Validator:
    """Numbers from `low` to `high`, both included."""

    def check(value: ConfigValue) -> str | None:
        fits = isinstance(value, int | float) and not value < low and not value > high
        return None if fits else f"between {low} and {high}"

    return check


def one_of(*names: str) -> Validator:
    """One of the given words."""

    def check(value: ConfigValue) -> str | None:
        return None if value in names else f"one of {', '.join(names)}"

    return check


def one_of_ignoring_case(*names: str) -> Validator:
    """One of the given upper-case words, in any case."""

    def check(value: ConfigValue) -> str | None:
        fits = isinstance(value, str) and value.upper() in names
        return None if fits else f"one of {', '.join(names)}"

    return check


def list_of(*names: str, empty: bool = True) -> Validator:
    """A list without duplicates or empty items, of the given words if there are any.

    Null passes unless there are words.
    """

    def check(value: ConfigValue) -> str | None:
        if value is None:
            return "a list" if names else None
        assert isinstance(value, tuple)
        if not value and not empty:
            return "a list of one item or more"
        if len(set(value)) != len(value):
            return "a list without duplicates"
        if not all(value):
            return "a list without empty items"
        if names and not set(value) <= set(names):
            return f"a list of {', '.join(names)}"
        return None

    return check


def NON_EMPTY(value: ConfigValue) -> str | None:  # noqa: N802 - reads as a table cell
    """A string of at least one character, or null."""
    return "a non-empty string" if value == "" else None


def GZIP_LEVEL(value: ConfigValue) -> str | None:  # noqa: N802
    """1 to 9, or -1 for the codec's own default."""
    fits = isinstance(value, int) and (value == -1 or 1 <= value <= 9)
    return None if fits else "between 1 and 9, or -1"


_REPLICA = r"([0-9]+:[0-9]+)?"


def THROTTLED_REPLICAS(value: ConfigValue) -> str | None:  # noqa: N802
    """`*`, or partition:broker pairs (ThrottledReplicaListValidator)."""
    assert isinstance(value, tuple)
    fits = value == ("*",) or all(re.fullmatch(_REPLICA, item) for item in value)
    return None if fits else "* or a list of partition:broker pairs"


_HOST_PORT = r"\[?[0-9a-zA-Z\-._%:]+\]?:[0-9]+"
_VOTER = r"[0-9]+@[0-9a-zA-Z\-._%:\[\]]+:[0-9]+"


def HOST_PORTS(value: ConfigValue) -> str | None:  # noqa: N802
    """A list of host:port."""
    assert isinstance(value, tuple)
    fits = all(re.fullmatch(_HOST_PORT, item) for item in value)
    return None if fits else "a list of host:port"


def QUORUM_VOTERS(value: ConfigValue) -> str | None:  # noqa: N802
    """A list of id@host:port."""
    assert isinstance(value, tuple)
    fits = all(re.fullmatch(_VOTER, item) for item in value)
    return None if fits else "a list of id@host:port"


_DURATION = (
    r"by_duration:\+?[pP](?=[0-9]|[tT][0-9])([0-9]+[dD])?"
    r"([tT](?=[0-9])([0-9]+[hH])?([0-9]+[mM])?([0-9]+(\.[0-9]{0,9})?[sS])?)?"
)


def SHARE_OFFSET_RESET(value: ConfigValue) -> str | None:  # noqa: N802
    """`earliest`, `latest` or an ISO-8601 duration back from now (KIP-932)."""
    fits = value in ("earliest", "latest") or (
        isinstance(value, str) and re.fullmatch(_DURATION, value)
    )
    return None if fits else "earliest, latest or by_duration:PnDTnHnMnS"
