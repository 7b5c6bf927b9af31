"""The definition of a config: its name, type, default and validator.

In messages a value is text. `ConfigDef.parse` returns the typed value, or raises ConfigValueError
with the message of Kafka's ConfigDef and its validators.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from mockbroker.core.errors import ConfigValueError

ConfigValue: TypeAlias = bool | int | float | str | tuple[str, ...] | None


class Validator(NamedTuple):
    """The validator of a config. `valid` describes the valid values for the docs. `check` gets the
    name and the typed value, and raises ConfigValueError with the message of Kafka's validator.
    """

    valid: str
    check: Callable[[str, ConfigValue], None]


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
    """Whether a broker config can change while the broker runs, for one broker or for all."""

    READ_ONLY = 0
    PER_BROKER = 1
    CLUSTER_WIDE = 2


PER_BROKER = UpdateMode.PER_BROKER
CLUSTER_WIDE = UpdateMode.CLUSTER_WIDE

LONG_MAX = "9223372036854775807"

_INTEGER_BITS = {INT: 32, SHORT: 16, LONG: 64}
# Patterns stay text until first used (re caches them): compiling costs start-up time.
_INTEGER = r"[+-]?\d+"  # java.lang.Long.parseLong takes the digits of every script
# java.lang.Double.parseDouble, hexadecimal floats left out
_DOUBLE = r"([+-]?(?:NaN|Infinity|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))[fFdD]?"
_COMMA = r"[ \t-\r]*,[ \t-\r]*"
_JAVA_TRIMS = "".join(map(chr, range(0x21)))  # java.lang.String.trim


class ConfigDef(NamedTuple):
    """One config. `default` is text or None. An `internal` one is described only if it is set."""

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
        """The typed value of `text`, validated. Raises ConfigValueError."""
        value = None if text is None else parse_as(self.name, self.type, text)
        if self.validator is not None:
            self.validator.check(self.name, value)
        return value

    def default_value(self) -> ConfigValue:
        """The typed default; defaults are not validated, as in Kafka."""
        return None if self.default is None else parse_as(self.name, self.type, self.default)


def cluster_wide(
    name: str, kind: ConfigType, default: str | None, validator: Validator | None = None
) -> ConfigDef:
    """A config that may change while the brokers run, for all of them."""
    return ConfigDef(name, kind, default, validator, CLUSTER_WIDE)


def per_broker(
    name: str, kind: ConfigType, default: str | None, validator: Validator | None = None
) -> ConfigDef:
    """A config that may change while its broker runs."""
    return ConfigDef(name, kind, default, validator, PER_BROKER)


def internal(
    name: str, kind: ConfigType, default: str | None, validator: Validator | None = None
) -> ConfigDef:
    """A config that is described only if it is set."""
    return ConfigDef(name, kind, default, validator, internal=True)


def parse_as(name: str, kind: ConfigType, text: str) -> ConfigValue:
    """Parse text as a value of `kind` (ConfigDef.parseType). Raises ConfigValueError."""
    trimmed = text.strip(_JAVA_TRIMS)
    match kind:
        case ConfigType.BOOLEAN:
            lowered = trimmed.lower()
            if lowered not in ("true", "false"):
                raise _invalid(name, text, "Expected value to be either true or false")
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
    raise _invalid(name, text, f"Not a number of type {kind.name}")


def _invalid(name: str, value: ConfigValue, reason: str) -> ConfigValueError:
    """The error with the message of Kafka's ConfigException."""
    shown = "null" if value is None else to_text(value)
    return ConfigValueError(name, f"Invalid value {shown} for configuration {name}: {reason}")


def to_text(value: ConfigValue) -> str | None:
    """The text of a typed value (ConfigDef.convertToString)."""
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
    return Validator(f"{low} or more", _within(low, None))


def between(low: float, high: float) -> Validator:
    """Numbers from `low` to `high`, both included."""
    return Validator(f"between {low} and {high}", _within(low, high))


def _within(low: float, high: float | None) -> Callable[[str, ConfigValue], None]:
    def check(name: str, value: ConfigValue) -> None:
        if not isinstance(value, int | float):
            raise _invalid(name, value, "Value must be non-null")
        if value < low:  # NaN passes, as in Java
            raise _invalid(name, value, f"Value must be at least {low}")
        if high is not None and value > high:
            raise _invalid(name, value, f"Value must be no more than {high}")

    return check


def one_of(*words: str) -> Validator:
    """One of the given words."""

    def check(name: str, value: ConfigValue) -> None:
        if value not in words:
            raise _invalid(name, value, f"String must be one of: {', '.join(words)}")

    return Validator(f"one of {', '.join(words)}", check)


def one_of_ignoring_case(*words: str) -> Validator:
    """One of the given upper-case words, in any case."""

    def check(name: str, value: ConfigValue) -> None:
        if not isinstance(value, str) or value.upper() not in words:
            known = ", ".join(words)
            raise _invalid(name, value, f"String must be one of (case insensitive): {known}")

    return Validator(f"one of {', '.join(words)}", check)


def list_of(*words: str, empty: bool = True) -> Validator:
    """A list without duplicates or empty items, of the given words if there are any.

    Null passes unless there are words.
    """

    def check(name: str, value: ConfigValue) -> None:
        config = f"Configuration '{name}'"
        if value is None:
            if words:
                raise ConfigValueError(name, f"{config} values must not be null.")
            return
        assert isinstance(value, tuple)
        if not value and not empty:
            known = f"[{', '.join(words)}]" if words else "any non-empty value"
            reason = f"{config} must not be empty. Valid values include: {known}"
            raise ConfigValueError(name, reason)
        if len(set(value)) != len(value):
            raise ConfigValueError(name, f"{config} values must not be duplicated.")
        for item in value:
            if not item:
                raise ConfigValueError(name, f"{config} values must not be empty.")
            if words and item not in words:
                raise _invalid(name, item, f"String must be one of: {', '.join(words)}")

    size = "" if empty else "one item or more, "
    return Validator(
        f"{size}a list of {', '.join(words)}" if words else f"{size}no duplicates", check
    )


def _check_non_empty(name: str, value: ConfigValue) -> None:
    """A string of at least one character, or null."""
    if value == "":
        raise _invalid(name, value, "String must be non-empty")


NON_EMPTY = Validator("a non-empty string", _check_non_empty)


def _check_gzip_level(name: str, value: ConfigValue) -> None:
    """1 to 9, or -1 for the codec's own default."""
    if not isinstance(value, int) or not (value == -1 or 1 <= value <= 9):
        raise _invalid(name, value, "Value must be between 1 and 9 or equal to -1")


GZIP_LEVEL = Validator("between 1 and 9, or -1", _check_gzip_level)


_REPLICA = r"([0-9]+:[0-9]+)?"


def _check_throttled_replicas(name: str, value: ConfigValue) -> None:
    """`*`, or partition:broker pairs (ThrottledReplicaListValidator)."""
    assert isinstance(value, tuple)
    if value != ("*",) and not all(re.fullmatch(_REPLICA, item) for item in value):
        raise _invalid(
            name,
            f"[{', '.join(value)}]",
            f"{name} must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
        )


THROTTLED_REPLICAS = Validator("* or a list of partition:broker pairs", _check_throttled_replicas)


_HOST_PORT = r"\[?[0-9a-zA-Z\-._%:]+\]?:[0-9]+"
_VOTER = r"[0-9]+@[0-9a-zA-Z\-._%:\[\]]+:[0-9]+"


def _check_host_ports(name: str, value: ConfigValue) -> None:
    """A list of host:port."""
    assert isinstance(value, tuple)
    for item in value:
        if re.fullmatch(_HOST_PORT, item) is None:
            raise ConfigValueError(
                name,
                f"Failed to parse host name from {item} for the configuration {name}. Each entry "
                'should be in the form "{host}:{port}"',
            )


HOST_PORTS = Validator("a list of host:port", _check_host_ports)


def _check_quorum_voters(name: str, value: ConfigValue) -> None:
    """A list of id@host:port."""
    assert isinstance(value, tuple)
    form = "Each entry should be in the form `{id}@{host}:{port}`."
    for item in value:
        if item.count("@") != 1:
            raise ConfigValueError(name, f"Invalid configuration value for {name}. {form}")
        if re.fullmatch(_VOTER, item) is None:
            reason = f"Failed to parse host name from entry {item} for the configuration {name}."
            raise ConfigValueError(name, f"{reason} {form}")


QUORUM_VOTERS = Validator("a list of id@host:port", _check_quorum_voters)


_DURATION = (
    r"by_duration:\+?[pP](?=[0-9]|[tT][0-9])([0-9]+[dD])?"
    r"([tT](?=[0-9])([0-9]+[hH])?([0-9]+[mM])?([0-9]+(\.[0-9]{0,9})?[sS])?)?"
)


def _check_share_offset_reset(name: str, value: ConfigValue) -> None:
    """`earliest`, `latest` or an ISO-8601 duration back from now (KIP-932)."""
    if value in ("earliest", "latest"):
        return
    if not isinstance(value, str) or re.fullmatch(_DURATION, value) is None:
        raise _invalid(
            name,
            value,
            f"Invalid value `{value}` for configuration {name}. The value must be either "
            "'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
        )


SHARE_OFFSET_RESET = Validator(
    "earliest, latest or by_duration:PnDTnHnMnS", _check_share_offset_reset
)
