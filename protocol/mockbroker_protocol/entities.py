"""What a decoded message is about: its topics and partitions, groups, members, producers, brokers.

The declarations say which fields name something (`Field.names`); from them a walk is made for each
struct in each version, once. It visits only what leads to such a field.

A *mention* is a thing that a message names, with the innermost struct that speaks of it. A *target*
is a topic, mostly with a partition. Values by which clients say nothing (null, an empty text, -1)
are no mentions.

The version matters because a struct holds a default where its version lacks a field, and the
default of a producer id is 0, which is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct

from mockbroker_protocol.declarations import class_names, messages_of, schema_module, shapes_of
from mockbroker_protocol.declare import (
    BROKER_ID,
    PARTITION,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    RECORDS,
    TOPIC_ID,
    TOPIC_NAME,
    Array,
    Entity,
    EntityBy,
    Field,
    Shape,
)
from mockbroker_protocol.records.batch import producer_of
from mockbroker_protocol.types import ZERO_UUID, parse_integer

__all__ = [
    "ALL_PARTITIONS",
    "Mention",
    "Target",
    "TopicName",
    "means_all_topics",
    "mentions",
    "plain_fields",
    "shape_of",
    "targets",
    "values",
]

TopicName: TypeAlias = Callable[[bytes], "str | None"]

ALL_PARTITIONS = -1
_NOTHING: tuple[object, ...] = (None, "", -1)
_ONLY = {kind: frozenset((kind,)) for kind in Entity}


class Mention(NamedTuple):
    """A thing that a message names: text, or a number for producers, epochs and brokers."""

    kind: Entity
    value: Any
    item: Any


class Target(NamedTuple):
    """A topic that a message speaks of; `partition` is -1 where it means the topic as a whole.

    `topic_id` is zero where the message does not have it.
    """

    topic: str
    topic_id: bytes
    partition: int
    item: Any = None


def mentions(message: Struct, version: int, kinds: frozenset[Entity]) -> list[Mention]:
    """The things of these kinds that a message of this version names, in its order.

    Topics named by their ids alone are TOPIC_ID; `targets` resolves them.
    """
    found: list[Mention] = []
    walk = _mentions_walk(type(message), version, kinds)
    if walk is not None:
        walk(message, found)
    return found


def values(message: Struct, version: int, kind: Entity) -> list[Any]:
    """The values of one kind that a message of this version names, each once, in order."""
    walk = _mentions_walk(type(message), version, _ONLY[kind])
    if walk is None:
        return []
    found: list[Mention] = []
    walk(message, found)
    return list(dict.fromkeys([each.value for each in found]))


def targets(message: Struct, version: int, topic_name: TopicName) -> list[Target]:
    """Every topic and partition that a message of this version names, in order.

    `topic_name` maps a topic id to its name; an unknown id is shown in hex.
    """
    found: list[Target] = []
    walk = _targets_walk(type(message), version)
    if walk is not None:
        walk(message, "", ZERO_UUID, topic_name, found)
    return found


def means_all_topics(message: Struct, version: int) -> bool:
    """Whether a null in the message stands for all topics."""
    return any(_has_null(message, path) for path in _null_paths(type(message), version))


def plain_fields(shape: Shape, version: int, kind: Entity) -> tuple[str, ...] | None:
    """The fields of a message that say which things of a kind it names, if all are plain fields at
    its top level; None where some lie deeper, are arrays, or depend on another field.
    """
    found: list[str] = []
    for field in _present(shape, version):
        inner = _inner(field)
        if inner is not None:
            if _mentions_of(inner, version, _ONLY[kind]) is not None:
                return None
        elif kind in _kinds(field):
            if field.names is not kind or isinstance(field.type, Array) or field.type is RECORDS:
                return None
            found.append(field.name)
    return tuple(found)


# -- declarations ----------------------------------------------------------------------------------


@cache
def shape_of(kind: type) -> Shape:
    """The declaration behind a generated struct class."""
    schema = schema_module(kind.__module__.rpartition(".")[2])
    names = class_names(schema)
    for message in messages_of(schema):
        for shape in shapes_of(message.shape):
            if names[id(shape)] == kind.__name__:
                return shape
    raise TypeError(f"{kind.__name__} is not declared")


def _present(shape: Shape, version: int) -> list[Field]:
    return [field for field in shape.fields if version in field.versions]


def _inner(field: Field) -> Shape | None:
    element = field.type.element if isinstance(field.type, Array) else field.type
    return element if isinstance(element, Shape) else None


def _kinds(field: Field) -> set[Entity]:
    if field.type is RECORDS:
        return {PRODUCER_ID, PRODUCER_EPOCH} if field.names is PRODUCER_ID else set()
    if isinstance(field.names, EntityBy):
        return set(field.names.kinds.values())
    return set() if field.names is None else {field.names}


@cache
def _null_paths(kind: type, version: int) -> tuple[tuple[str, ...], ...]:
    return tuple(_nulls(shape_of(kind), version, ()))


def _nulls(shape: Shape, version: int, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for field in _present(shape, version):
        path = (*above, field.name)
        if field.null_is_all:
            yield path
        inner = _inner(field)
        if inner is not None:
            yield from _nulls(inner, version, path)


def _has_null(item: Any, path: tuple[str, ...]) -> bool:
    value = getattr(item, path[0])
    if len(path) == 1:
        return value is None
    return any(_has_null(each, path[1:]) for each in value or ())


# -- mentions --------------------------------------------------------------------------------------

_MentionsWalk: TypeAlias = Callable[[Any, list[Mention]], None]


@cache
def _mentions_walk(kind: type, version: int, kinds: frozenset[Entity]) -> _MentionsWalk | None:
    return _mentions_of(shape_of(kind), version, kinds)


def _mentions_of(shape: Shape, version: int, kinds: frozenset[Entity]) -> _MentionsWalk | None:
    """A walk over one struct; None where nothing of these kinds stands in it or below."""
    steps = []
    for field in _present(shape, version):
        inner = _inner(field)
        if inner is not None:
            below = _mentions_of(inner, version, kinds)
            if below is not None:
                steps.append(_descent(field, below))
        elif _kinds(field) & kinds:
            steps.append(_reading(field, kinds))
    if not steps:
        return None
    if len(steps) == 1:
        return steps[0]
    path = tuple(steps)

    def walk(item: Any, found: list[Mention]) -> None:
        for step in path:
            step(item, found)

    return walk


def _descent(field: Field, below: _MentionsWalk) -> _MentionsWalk:
    get = attrgetter(field.name)

    def one(item: Any, found: list[Mention]) -> None:
        inner = get(item)
        if inner is not None:
            below(inner, found)

    def each(item: Any, found: list[Mention]) -> None:
        for inner in get(item) or ():
            below(inner, found)

    return each if isinstance(field.type, Array) else one


def _reading(field: Field, kinds: frozenset[Entity]) -> _MentionsWalk:
    """A reader of a field with plain values."""
    get = attrgetter(field.name)
    names = field.names
    if field.type is RECORDS:
        return _batch_reading(get, kinds)
    if isinstance(names, EntityBy):
        return _reading_by(field, names, kinds)
    assert names is not None
    kind = names

    def one(item: Any, found: list[Mention]) -> None:
        value = get(item)
        if value not in _NOTHING:
            found.append(Mention(kind, value, item))

    def each(item: Any, found: list[Mention]) -> None:
        found += [Mention(kind, each, item) for each in get(item) or () if each not in _NOTHING]

    return each if isinstance(field.type, Array) else one


def _reading_by(field: Field, by: EntityBy, kinds: frozenset[Entity]) -> _MentionsWalk:
    get, number = attrgetter(field.name), attrgetter(by.field)
    is_array = isinstance(field.type, Array)

    def read(item: Any, found: list[Mention]) -> None:
        kind = by.kinds.get(number(item))
        if kind not in kinds:
            return
        for text in (get(item) or ()) if is_array else (get(item),):
            value = text
            if kind is BROKER_ID:  # the empty name is that of all brokers
                value = parse_integer(text, 0) if text else None
            if value not in _NOTHING:
                found.append(Mention(kind, value, item))

    return read


def _batch_reading(get: Callable[[Any], Any], kinds: frozenset[Entity]) -> _MentionsWalk:
    """The producer in the header of a batch: of a Produce, which has no other place for it."""
    with_id, with_epoch = PRODUCER_ID in kinds, PRODUCER_EPOCH in kinds

    def read(item: Any, found: list[Mention]) -> None:
        records = get(item)
        producer = None if records is None else producer_of(records)
        if producer is None:
            return
        if with_id:
            found.append(Mention(PRODUCER_ID, producer[0], item))
        if with_epoch:
            found.append(Mention(PRODUCER_EPOCH, producer[1], item))

    return read


# -- targets ---------------------------------------------------------------------------------------

# Of a struct, the topic above it, and its id.
_TargetsWalk: TypeAlias = Callable[[Any, str, bytes, TopicName, list[Target]], None]
_TopicOf: TypeAlias = Callable[[Any, TopicName], "tuple[str, bytes] | None"]


@cache
def _targets_walk(kind: type, version: int) -> _TargetsWalk | None:
    return _targets_of(shape_of(kind), version)


def _targets_of(shape: Shape, version: int) -> _TargetsWalk | None:
    """A walk over one struct; None where neither it nor anything below speaks of topics."""
    fields = _present(shape, version)
    topic_of = _topic_reading(fields)
    partition = _scalar(fields, PARTITION)
    if partition is not None:
        return _partition_walk(attrgetter(partition.name), topic_of)
    steps = tuple(step for field in fields if (step := _target_step(field, version)) is not None)
    if topic_of is None:
        return _through(steps) if steps else None
    named = topic_of

    def walk(
        item: Any, topic: str, topic_id: bytes, topic_name: TopicName, found: list[Target]
    ) -> None:
        here = named(item, topic_name)
        if here is not None:
            topic, topic_id = here
        before = len(found)
        for step in steps:
            step(item, topic, topic_id, topic_name, found)
        if here is not None and len(found) == before:
            found.append(Target(topic, topic_id, ALL_PARTITIONS, item))

    return walk


def _scalar(fields: list[Field], kind: Entity) -> Field | None:
    return next(
        (f for f in fields if kind in _kinds(f) and not isinstance(f.type, Array)),
        None,
    )


def _topic_reading(fields: list[Field]) -> _TopicOf | None:
    """A reader of the topic that a struct names itself; None for a struct without one."""
    by_name, by_id = _scalar(fields, TOPIC_NAME), _scalar(fields, TOPIC_ID)
    if by_name is None and by_id is None:
        return None
    get_name = None if by_name is None else attrgetter(by_name.name)
    get_id = None if by_id is None else attrgetter(by_id.name)
    by = by_name.names if by_name is not None and isinstance(by_name.names, EntityBy) else None

    def named(item: Any, topic_name: TopicName) -> tuple[str, bytes] | None:
        topic_id = ZERO_UUID if get_id is None else get_id(item)
        if get_name is not None and (name := get_name(item)):
            return name, topic_id
        if topic_id == ZERO_UUID:
            return None
        return topic_name(topic_id) or topic_id.hex(), topic_id

    def named_by(item: Any, topic_name: TopicName) -> tuple[str, bytes] | None:
        assert by is not None
        if by.kinds.get(getattr(item, by.field)) is not TOPIC_NAME:
            return None
        return named(item, topic_name)

    return named if by is None else named_by


def _partition_walk(index: Callable[[Any], int], topic_of: _TopicOf | None) -> _TargetsWalk:
    def walk(
        item: Any, topic: str, topic_id: bytes, topic_name: TopicName, found: list[Target]
    ) -> None:
        here = None if topic_of is None else topic_of(item, topic_name)
        if here is not None:
            topic, topic_id = here
        if topic:
            found.append(Target(topic, topic_id, index(item), item))

    return walk


def _through(steps: tuple[_TargetsWalk, ...]) -> _TargetsWalk:
    if len(steps) == 1:
        return steps[0]

    def walk(
        item: Any, topic: str, topic_id: bytes, topic_name: TopicName, found: list[Target]
    ) -> None:
        for step in steps:
            step(item, topic, topic_id, topic_name, found)

    return walk


def _target_step(field: Field, version: int) -> _TargetsWalk | None:
    """The targets of one field: bare names or numbers, or those of its structs."""
    inner = _inner(field)
    if inner is not None:
        below = _targets_of(inner, version)
        return None if below is None else _target_descent(field, below)
    if not isinstance(field.type, Array) or field.names not in (TOPIC_NAME, PARTITION):
        return None
    get, of_topics = attrgetter(field.name), field.names is TOPIC_NAME

    def topics(item: Any, _: str, _id: bytes, _name: TopicName, found: list[Target]) -> None:
        found += [Target(name, ZERO_UUID, ALL_PARTITIONS, item) for name in get(item) or ()]

    def partitions(
        item: Any, topic: str, topic_id: bytes, _: TopicName, found: list[Target]
    ) -> None:
        if topic:
            found += [Target(topic, topic_id, index, item) for index in get(item) or ()]

    return topics if of_topics else partitions


def _target_descent(field: Field, below: _TargetsWalk) -> _TargetsWalk:
    get = attrgetter(field.name)

    def one(
        item: Any, topic: str, topic_id: bytes, topic_name: TopicName, found: list[Target]
    ) -> None:
        inner = get(item)
        if inner is not None:
            below(inner, topic, topic_id, topic_name, found)

    def each(
        item: Any, topic: str, topic_id: bytes, topic_name: TopicName, found: list[Target]
    ) -> None:
        for inner in get(item) or ():
            below(inner, topic, topic_id, topic_name, found)

    return each if isinstance(field.type, Array) else one
