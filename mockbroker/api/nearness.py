"""How a record differs from what a test expects, and which record is most like it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

import msgspec

from mockbroker.api.payloads import as_bytes
from mockbroker.core.shortening import SHOWN_CHARS_MAX, shortened, shown_bytes
from mockbroker.core.views.stored import StoredRecord

# A text that differs late is shown from so many characters before the difference.
CHARS_BEFORE = 8
# So much of a payload counts for its likeness, and so many records are compared that closely.
LIKENESS_CHARS = 200
CLOSE_RECORDS_MAX = 50


class Field:
    """One field of an expectation."""

    def __init__(self, name: str, wanted: object) -> None:
        self.name = name
        self.wanted = wanted

    @property
    def shown(self) -> str:
        """What is expected."""
        if isinstance(self.wanted, re.Pattern):
            return f"/{self.wanted.pattern}/"
        return shortened(repr(self.wanted)) if self.wanted is not None else "null"

    def differences(self, record: StoredRecord) -> list[str]:
        """What the record has instead; empty if it is as expected."""
        found = getattr(record, self.name)
        return [] if found == self.wanted else [f"{self.name}={found!r}"]

    def likeness(self, record: StoredRecord) -> float:
        """1 for a record that is as expected, 0 for one with nothing in common."""
        return float(not self.differences(record))


class _Payload(Field):
    def differences(self, record: StoredRecord) -> list[str]:
        return _unlike(self.name, self.wanted, getattr(record, self.name))

    def likeness(self, record: StoredRecord) -> float:
        if not self.differences(record):
            return 1.0
        found = getattr(record, self.name)
        if not isinstance(self.wanted, bytes) or found is None:
            return 0.0
        return _alike(self.wanted, found)


class _Json(Field):
    """A payload as a JSON value."""

    def differences(self, record: StoredRecord) -> list[str]:
        side = self.name.removesuffix("_json")
        payload = getattr(record, side)
        if payload is None:
            return [f"{side}=null"]
        try:
            found = msgspec.json.decode(payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return [f"{side} is not JSON"]
        return list(_json_differences(self.wanted, found, self.name))

    def likeness(self, record: StoredRecord) -> float:
        if not self.differences(record):
            return 1.0
        found = getattr(record, self.name.removesuffix("_json"))
        if found is None:
            return 0.0
        return _alike(msgspec.json.encode(self.wanted, enc_hook=repr), found)


class _SomeHeaders(Field):
    """Headers that must be there; one of several with a name is enough."""

    wanted: dict[str, Any]

    def differences(self, record: StoredRecord) -> list[str]:
        wrong = []
        for name, wanted in self.wanted.items():
            found = [value for header, value in record.headers if header == name]
            at = f"headers[{name!r}]"
            if not found:
                wrong.append(f"no header {name!r}")
            elif all(_unlike(at, wanted, each) for each in found):
                wrong += _unlike(at, wanted, found[-1])
        return wrong

    def likeness(self, record: StoredRecord) -> float:
        return 1 - len(self.differences(record)) / max(1, len(self.wanted))


class _AllHeaders(Field):
    wanted: list[tuple[str, Any]]

    def differences(self, record: StoredRecord) -> list[str]:
        names = [name for name, _ in self.wanted]
        if names == [name for name, _ in record.headers] and not any(
            _unlike("", wanted, found)
            for (_, wanted), (_, found) in zip(self.wanted, record.headers, strict=True)
        ):
            return []
        return [f"headers={shortened(repr(list(record.headers)))}"]


def field_of(name: str, given: Any, path: str) -> Field:
    """A field as a test gives it. Raises TypeError with the path of a wrong one."""
    if name in ("value", "key"):
        return _Payload(name, _payload(given, path))
    if name.endswith("_json"):
        return _Json(name, given)
    if name != "headers":
        if isinstance(given, bool) or not isinstance(given, int):
            raise TypeError(f"{path}: it is an int, not {type(given).__name__}")
        return Field(name, given)
    if isinstance(given, Mapping):
        return _SomeHeaders(name, {key: _payload(each, path) for key, each in given.items()})
    if isinstance(given, str | bytes) or not isinstance(given, Sequence):
        raise TypeError(f"{path}: headers are a dict or a list of pairs")
    if any(isinstance(each, str | bytes) or len(each) != 2 for each in given):
        raise TypeError(f"{path}: a header is a pair of its name and its value")
    return _AllHeaders(name, [(key, _payload(each, path)) for key, each in given])


def key_of(fields: Sequence[Field]) -> tuple[bytes | None] | None:
    """The value that a record must have to the byte, if there is one."""
    for each in fields:
        if each.name == "value" and (each.wanted is None or isinstance(each.wanted, bytes)):
            return (each.wanted,)
    return None


class RecordDifference(NamedTuple):
    """A record, by its index, and what it has instead of what is expected."""

    record: int
    differences: list[str]


def near_miss(
    fields: Sequence[Field], found: Sequence[StoredRecord], *, taken: Mapping[int, int]
) -> RecordDifference | None:
    """The record most like an expectation; of equals one that no other expectation takes."""
    if not found:
        return None
    # The records with most fields as expected; only these are compared by content.
    equal = [sum(not each.differences(record) for each in fields) for record in found]
    order = sorted(range(len(found)), key=lambda index: (-equal[index], index in taken))
    best = max(
        order[:CLOSE_RECORDS_MAX],
        key=lambda index: (sum(each.likeness(found[index]) for each in fields), index not in taken),
    )
    return RecordDifference(
        best, [text for each in fields for text in each.differences(found[best])]
    )


def _json_differences(wanted: Any, found: Any, path: str) -> Iterator[str]:
    """By path. Objects with an `==` of their own decide themselves; true is not 1."""
    if isinstance(wanted, Mapping) and isinstance(found, dict):
        for key in [*wanted, *(key for key in found if key not in wanted)]:
            at = f"{path}.{key}"
            if key not in found:
                yield f"{at} is missing"
            elif key not in wanted:
                yield f"{at} is not expected"
            else:
                yield from _json_differences(wanted[key], found[key], at)
    elif isinstance(wanted, list | tuple) and isinstance(found, list):
        if len(wanted) != len(found):
            yield f"{path} has {len(found)} items, not {len(wanted)}"
            return
        for index, (one, other) in enumerate(zip(wanted, found, strict=True)):
            yield from _json_differences(one, other, f"{path}[{index}]")
    elif wanted != found or _is_truth_and_number(wanted, found):
        yield f"{path}={shortened(repr(found))}"


def _is_truth_and_number(one: object, other: object) -> bool:
    return isinstance(one, int | float) and isinstance(one, bool) is not isinstance(other, bool)


def _payload(given: Any, path: str) -> bytes | re.Pattern[str] | re.Pattern[bytes] | None:
    return given if isinstance(given, re.Pattern) else as_bytes(given, path)


def _unlike(name: str, wanted: object, found: bytes | None) -> list[str]:
    """What a payload is instead of the expected one."""
    if isinstance(wanted, re.Pattern):
        if found is not None and _searched(wanted, found):
            return []
        return [f"{name}={shown_bytes(found)}"]
    if wanted == found:
        return []
    if found is None:
        return [f"{name}=null"]
    return [f"{name}={_from_difference(repr(wanted), repr(found))}"]


def _searched(pattern: re.Pattern[Any], found: bytes) -> bool:
    text = found.decode(errors="replace") if isinstance(pattern.pattern, str) else found
    return pattern.search(text) is not None


def _from_difference(wanted: str, found: str) -> str:
    """A long text is shown from shortly before its first difference."""
    if len(found) <= SHOWN_CHARS_MAX:
        return found
    pairs = zip(wanted, found, strict=False)
    same = next((n for n, (one, other) in enumerate(pairs) if one != other), len(wanted))
    start = max(0, same - CHARS_BEFORE)
    return ("…" if start else "") + shortened(found[start:])


def _alike(one: bytes, other: bytes) -> float:
    a, b = (each[:LIKENESS_CHARS].decode("latin-1") for each in (one, other))
    # Below 1: it differs from what is expected, maybe behind the part that is compared.
    return 0.99 * SequenceMatcher(None, a, b, autojunk=False).ratio()
