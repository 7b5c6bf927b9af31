"""Filters: conditions on a journal's events, as data.

The names and patterns are those of a rule's `match`: texts are globs, or RE2 expressions between
slashes; a list matches any of its items. Invalid data raises `ValidationError` that names the
field, as for rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from mockbroker.core.faults.matching import value_matcher
from mockbroker.core.faults.rules import api_key, api_name
from mockbroker.core.faults.texts import text_matcher
from mockbroker.core.journal.events import KINDS, WIRE_KINDS, JournalEvent
from mockbroker.core.validation import Ms, ValidationError, convert, nearest

Text = str | list[str] | None
Ints = int | list[int] | None


class Filter(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Conditions on an event; all must hold.

    `topic` and `partition` hold together for one of the partitions that an event names. If an event
    names several groups, members, ids or producers, one must match.

    `offset` lies within the records of an append or deliver, or is the committed offset. `error` is
    the name of an error code in an answer; `any` for any at all, `none` for answers without one.
    `where` has conditions on the decoded message: {path: value}, as `topics[].partitions[].index`.
    `within_ms` counts on the cluster's clock, back from now.
    """

    kind: Text = None
    api: str | int | list[str | int] | None = None
    api_version: Ints = None
    broker: Ints = None
    from_broker: Ints = None
    to_broker: Ints = None
    listener: Text = None
    connection: Ints = None
    source: Text = None
    client_id: Text = None
    client_software: Text = None
    principal: Text = None
    correlation_id: Ints = None
    topic: Text = None
    partition: Ints = None
    offset: Ints = None
    group: Text = None
    member: Text = None
    instance_id: Text = None
    generation: Ints = None
    transactional_id: Text = None
    producer_id: Ints = None
    producer_epoch: Ints = None
    acks: Ints = None
    transactional: bool | None = None
    state: Text = None
    former: Text = None
    change: Text = None
    reason: Text = None
    outcome: Text = None
    error: Text = None
    rule: Text = None
    where: dict[str, object] | None = None
    after_seq: int | None = None
    within_ms: Ms | None = None


class FilterCondition(NamedTuple):
    """`holds` tests an event; `shown` is the event's value in messages."""

    name: str
    holds: Callable[[JournalEvent], bool]
    shown: Callable[[JournalEvent], object]


def parse_filter(data: object, path: str = "") -> Filter:
    """A filter from plain data. Raises ValidationError that names the field."""
    return convert(data, Filter, path)


class EventMatcher:
    """A filter as a function of an event. `now_ms` is the cluster's clock."""

    __slots__ = ("after_seq", "conditions", "facts_only", "filter", "needs_message")

    def __init__(self, wanted: Filter, now_ms: int, path: str = "") -> None:
        self.filter = wanted
        self.conditions = tuple(_conditions(wanted, path, now_ms))
        self.after_seq = wanted.after_seq or 0
        self.needs_message = bool(wanted.where)
        # No event of the wire can match: its kind is not wanted.
        self.facts_only = wanted.kind is not None and not WIRE_KINDS & set(_listed(wanted.kind))

    def __call__(self, event: JournalEvent) -> bool:
        return all(condition.holds(event) for condition in self.conditions)

    def failed(self, event: JournalEvent) -> list[FilterCondition]:
        """The conditions that an event does not meet."""
        return [condition for condition in self.conditions if not condition.holds(event)]


# Conditions on more than the field of their name.
_SPECIAL = ("kind", "api", "topic", "partition", "offset", "error", "rule")
_TEXTS, _NUMBERS = (
    tuple(
        name
        for name, declared in Filter.__annotations__.items()
        if declared == kind and name not in _SPECIAL
    )
    for kind in ("Text", "Ints")
)


def _conditions(wanted: Filter, path: str, now_ms: int) -> Iterator[FilterCondition]:
    if wanted.kind is not None:
        yield _kind(wanted.kind, _at(path, "kind"))
    if wanted.api is not None:
        yield _api(wanted.api, _at(path, "api"))
    for name in _NUMBERS:
        given = getattr(wanted, name)
        if given is not None:
            yield _any_of(name, _numbers(given).__contains__)
    if wanted.topic is not None or wanted.partition is not None:
        yield _target(wanted.topic, wanted.partition, _at(path, "topic"))
    for name in _TEXTS:
        given = getattr(wanted, name)
        if given is not None:
            yield _text(name, given, _at(path, name))
    if wanted.transactional is not None:
        yield _field("transactional", lambda value: bool(value) is wanted.transactional)
    if wanted.offset is not None:
        yield _offset(wanted.offset)
    if wanted.error is not None:
        yield _error(wanted.error, _at(path, "error"))
    if wanted.rule is not None:
        rules = text_matcher(wanted.rule, _at(path, "rule"))
        yield _field("rules", lambda names: any(rules(name) for name in names))
    for field, value in (wanted.where or {}).items():
        yield _where(field, value, _at(path, f"where.{field}"))
    if wanted.after_seq is not None:
        after = wanted.after_seq
        yield _field("seq", lambda seq: seq > after)
    if wanted.within_ms is not None:
        since = now_ms - wanted.within_ms
        yield _field("virtual_ms", lambda at: at >= since)


def _at(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _numbers(given: int | list[int]) -> frozenset[int]:
    return frozenset(given if isinstance(given, list) else [given])


def _field(name: str, test: Callable[[Any], bool]) -> FilterCondition:
    return FilterCondition(
        name, lambda event: test(getattr(event, name)), lambda event: getattr(event, name)
    )


def _text(name: str, given: str | list[str], path: str) -> FilterCondition:
    return _any_of(name, text_matcher(given, path))


def _any_of(name: str, test: Callable[[Any], bool]) -> FilterCondition:
    """A condition on a field with one value or several; one must match."""

    def holds(value: Any) -> bool:
        if isinstance(value, tuple):
            return any(map(test, value))
        return value is not None and test(value)

    return _field(name, holds)


def _listed(given: str | list[str]) -> list[str]:
    return given if isinstance(given, list) else [given]


def _kind(given: str | list[str], path: str) -> FilterCondition:
    kinds = frozenset(_listed(given))
    for kind in sorted(kinds):
        if kind not in KINDS:
            raise ValidationError(path, f"unknown kind {kind!r}{nearest(kind, KINDS)}")
    return _field("kind", kinds.__contains__)


def _api(given: str | int | list[str | int], path: str) -> FilterCondition:
    names = frozenset(
        api_name(api_key(each, path)) for each in (given if isinstance(given, list) else [given])
    )
    return _field("api", names.__contains__)


def _target(topic: Text, partition: Ints, path: str) -> FilterCondition:
    named = text_matcher(topic, path) if topic is not None else None
    numbers = _numbers(partition) if partition is not None else None

    def holds(event: JournalEvent) -> bool:
        return any(
            (named is None or named(name)) and (numbers is None or number in numbers)
            for name, number in targets_of(event)
        )

    given = [
        name for name, value in (("topic", topic), ("partition", partition)) if value is not None
    ]
    return FilterCondition("/".join(given), holds, targets_of)


def targets_of(event: JournalEvent) -> tuple[tuple[str, int], ...]:
    """The (topic, partition) pairs of an event; -1 stands for a whole topic."""
    if event.topic is not None:
        return ((event.topic, -1 if event.partition is None else event.partition),)
    return event.targets


def _offset(given: int | list[int]) -> FilterCondition:
    wanted = _numbers(given)

    def holds(event: JournalEvent) -> bool:
        if event.first_offset is not None:
            last = event.first_offset if event.last_offset is None else event.last_offset
            return any(event.first_offset <= each <= last for each in wanted)
        return event.offset in wanted

    def shown(event: JournalEvent) -> object:
        if event.first_offset is not None:
            return f"{event.first_offset}-{event.last_offset}"
        return event.offset

    return FilterCondition("offset", holds, shown)


def _error(given: str | list[str], path: str) -> FilterCondition:
    if given == "none":
        return FilterCondition(
            "error",
            lambda event: event.kind in ("response", "hop_answer") and not event.errors,
            lambda event: event.errors,
        )
    if given == "any":
        return _field("errors", bool)
    test = text_matcher(given, path)
    return FilterCondition(
        "error", lambda event: any(map(test, event.errors)), lambda event: event.errors
    )


def _where(field: str, wanted: object, path: str) -> FilterCondition:
    steps = field.replace("[]", "").split(".")
    test = value_matcher(wanted, path)
    return FilterCondition(
        f"where.{field}",
        lambda event: any(map(test, _values(event.message, steps))),
        lambda event: list(_values(event.message, steps)),
    )


def _values(value: object, steps: list[str]) -> Iterator[object]:
    if isinstance(value, list):
        for each in value:
            yield from _values(each, steps)
    elif not steps:
        yield value
    elif isinstance(value, Mapping) and steps[0] in value:
        yield from _values(value[steps[0]], steps[1:])
