"""Requests with one very long array, whose elements name what exists.

The other arrays of such a request have one element each. `Numbering` says what the elements of the
long one name: things that differ, each of them twice, or what does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from importlib import import_module
from typing import Any

from mockbroker_protocol import ApiKey
from mockbroker_protocol.declarations import class_names, schema_module
from mockbroker_protocol.declare import (
    GENERATION,
    GROUP_ID,
    INSTANCE_ID,
    MEMBER_ID,
    PARTITION,
    PRODUCER_EPOCH,
    PRODUCER_ID,
    TOPIC_ID,
    TOPIC_NAME,
    TRANSACTIONAL_ID,
    Array,
    Entity,
    Field,
    FieldType,
    Scalar,
    Shape,
)
from mockbroker_protocol.records import Record, build_batch
from tests.support.wide_values import EMPTY, Known, values_of

WIDE = "wide"
"""The topic of requests whose long array is one of partitions."""
GROUP, TRANSACTION = "group", "transaction"
MISSING = 1 << 20
"""The number from which on nothing exists."""
Path = tuple[str, ...]

_BATCH = bytes(build_batch([Record(0, 1_735_689_600_000, b"k", b"v")]))
_NO_TOPIC = 0xAB << 120
_NOT_GIVEN = object()
# Values with which a request is no special one, by the field's name.
_PLAIN = {
    "acks": 1,
    "current_leader_epoch": -1,
    "last_fetched_epoch": -1,
    "max_bytes": 1 << 20,
    "num_partitions": 1,
    "partition_max_bytes": 1 << 20,
    "replica_id": -1,
    "replication_factor": 1,
    "resource_type": 2,
    "session_epoch": -1,
    "timestamp": -1,
}
_OF_ENTITY = {
    GENERATION: -1,
    INSTANCE_ID: None,
    MEMBER_ID: "",
    PRODUCER_EPOCH: -1,
    PRODUCER_ID: -1,
    TRANSACTIONAL_ID: TRANSACTION,
}


class Numbering(Enum):
    """The numbers of the elements: of the one at `index`, out of `count`."""

    DISTINCT = "distinct"
    TWICE = "twice"
    UNKNOWN = "unknown"

    def number(self, index: int, count: int) -> int:
        if self is Numbering.TWICE:
            return index % max(count // 2, 1)
        return index + MISSING if self is Numbering.UNKNOWN else index


def array_paths(key: ApiKey, version: int) -> list[Path]:
    """The arrays of a request, each by the names of the fields that lead to it."""
    return list(_paths(schema_module(key.name.lower()).REQUEST.shape, version, ()))


def _paths(shape: Shape, version: int, outer: Path) -> Iterator[Path]:
    for field in shape.fields:
        if version not in field.versions:
            continue
        path, type_ = (*outer, field.name), field.type
        if isinstance(type_, Array):
            yield path
            type_ = type_.element
        if isinstance(type_, Shape):
            yield from _paths(type_, version, path)


def elements_each(key: ApiKey, version: int, path: Path) -> int:
    """The elements of a request for each element of one of its arrays: itself, and those inside."""
    return 1 + sum(
        1
        for other in array_paths(key, version)
        if len(other) > len(path) and other[: len(path)] == path
    )


class WideRequest:
    """Makes the request of an API with `count` elements in the array at `path`."""

    def __init__(
        self,
        key: ApiKey,
        version: int,
        path: Path,
        count: int,
        numbering: Numbering,
        topic_ids: Mapping[str, bytes],
        topic_name: Callable[[int], str],
        known: Known,
    ) -> None:
        """`topic_ids` are those that exist, `topic_name` makes a name from a number."""
        self._values = values_of(key, path, known)
        self._schema = schema_module(key.name.lower())
        self._classes = import_module(self._schema.__name__.replace(".schemas.", ".messages."))
        self._names = class_names(self._schema)
        self._version = version
        self._path = path
        self._count = count
        self._numbering = numbering
        self._topic_ids = topic_ids
        self._topic_name = topic_name
        self._number = 0

    def message(self) -> Any:
        return self._struct(self._schema.REQUEST.shape, ())

    def _struct(self, shape: Shape, outer: Path) -> Any:
        given = {
            field.name: self._value(field, field.type, (*outer, field.name))
            for field in shape.fields
            if self._version in field.versions and self._is_there(field, (*outer, field.name))
        }
        return getattr(self._classes, self._names[id(shape)])(**given)

    def _is_there(self, field: Field, path: Path) -> bool:
        """Of the tagged fields, only those that lead to the array."""
        return field.tag is None or self._path[: len(path)] == path

    def _value(self, field: Field, type_: FieldType, path: Path) -> Any:
        leads_there = self._path[: len(path)] == path
        given = self._values.get(".".join(path), _NOT_GIVEN)
        if given is None or given is EMPTY:
            if not leads_there:
                return given
        elif given is not _NOT_GIVEN and not isinstance(type_, Array):
            return given(self._number) if callable(given) else given
        if isinstance(type_, Shape):
            return self._struct(type_, path)
        if isinstance(type_, Array):
            if path != self._path:
                return [self._value(field, type_.element, path)]
            elements = []
            for index in range(self._count):
                self._number = self._numbering.number(index, self._count)
                elements.append(self._value(field, type_.element, path))
            return elements
        return self._plain(field, type_)

    def _plain(self, field: Field, type_: Scalar) -> Any:
        if type_ is Scalar.RECORDS:
            return _BATCH
        number, names = self._number, field.names
        # One topic with many partitions, or many topics.
        is_inner = len(self._path) > 1
        topic = WIDE if is_inner and number < MISSING else self._topic_name(number)
        if names in (TOPIC_NAME, TOPIC_ID) or field.name == "resource_name":
            if names is TOPIC_ID:
                return self._topic_ids.get(topic) or (_NO_TOPIC + number).to_bytes(16, "big")
            return topic
        if names is PARTITION:
            return number if is_inner else 0
        if names is GROUP_ID:
            return GROUP if is_inner or len(self._path) == 0 else f"{GROUP}-{number}"
        if isinstance(names, Entity) and names in _OF_ENTITY:
            return _OF_ENTITY[names]
        if field.name in _PLAIN:
            return _PLAIN[field.name]
        match type_:
            case Scalar.STRING:
                return "consumer" if field.name == "protocol_type" else f"{field.name}-{number}"
            case Scalar.BYTES:
                return b""
            case Scalar.UUID:
                return bytes(16)
            case Scalar.BOOL:
                return False
            case Scalar.FLOAT64:
                return 1.0
        return 0
