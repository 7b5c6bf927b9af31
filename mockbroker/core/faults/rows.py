"""The arrays of a message by which rules select: groups, transactional ids, topics, partitions.

Each element (a *row*) is about one entity, which the declarations name (`Field.names`). A row may
hold further arrays: a group its topics, a topic its partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any, NamedTuple

from mockbroker.core.faults.paths import element, request_shape, response_shape
from mockbroker.core.ids import ZERO_UUID
from mockbroker_protocol.declare import (
    COORDINATOR_KEY,
    GROUP_ID,
    PARTITION,
    PRODUCER_ID,
    TOPIC_ID,
    TOPIC_NAME,
    TRANSACTIONAL_ID,
    Array,
    Entity,
    EntityBy,
    Field,
    Shape,
)

# The kinds of rows; a row that names several is of the first.
_KINDS = (TOPIC_NAME, GROUP_ID, TRANSACTIONAL_ID, COORDINATOR_KEY, PRODUCER_ID)
_ERRORS = ("error_code", "partition_error_code")


class RowArray(NamedTuple):
    """An array of rows.

    `path` leads to it from the message or the enclosing row, `whole_path` from the message. `name`
    is the field with the row's name, `topic_id` the one with a topic's id, `error` the one with its
    error; "" if there is none. The elements of `bare` rows are names or numbers. With `by`, a
    number in each row gives its kind.
    """

    path: tuple[str, ...]
    whole_path: tuple[str, ...]
    kind: Entity
    by: EntityBy | None
    bare: bool
    name: str
    topic_id: str
    error: str
    inner: tuple[RowArray, ...]

    def name_of(self, row: Any) -> Any:
        """The name of a row: text, or a number; None if it has only an id."""
        if self.bare:
            return row
        return getattr(row, self.name) if self.name else None

    def id_of(self, row: Any) -> bytes:
        """The topic id of a row; zero without one."""
        topic_id: bytes = getattr(row, self.topic_id) if self.topic_id else ZERO_UUID
        return topic_id

    def kind_of(self, row: Any) -> Entity | None:
        """The kind of a row; None for a resource of another kind."""
        return self.kind if self.by is None else self.by.kinds.get(getattr(row, self.by.field))

    def key_of(self, row: Any) -> tuple[Any, ...]:
        """The key of a row, equal in all rows about the same thing, also in other messages."""
        return (self.kind_of(row), self.name_of(row), self.id_of(row))


@cache
def request_rows(key: int) -> tuple[RowArray, ...]:
    """The rows of an API's requests."""
    return tuple(_found(request_shape(key), (), ()))


@cache
def response_rows(key: int) -> tuple[RowArray, ...]:
    """The rows of an API's answers."""
    return tuple(_found(response_shape(key), (), ()))


def every(rows: Iterable[RowArray]) -> Iterator[RowArray]:
    """Arrays of rows, and those inside their rows."""
    for each in rows:
        yield each
        yield from every(each.inner)


def _found(shape: Shape, above: tuple[str, ...], whole: tuple[str, ...]) -> Iterator[RowArray]:
    """The outermost arrays of rows in a struct, also inside other arrays."""
    for field in shape.fields:
        path, whole_path = (*above, field.name), (*whole, field.name)
        found = _rows(field, path, whole_path)
        inner = element(field.type)
        if found is not None:
            yield found
        elif inner is not None:
            yield from _found(inner, path, whole_path)


def _rows(field: Field, path: tuple[str, ...], whole_path: tuple[str, ...]) -> RowArray | None:
    if not isinstance(field.type, Array):
        return None
    shape = element(field.type)
    if shape is None:
        names = field.names
        if names is None:
            return None
        by = names if isinstance(names, EntityBy) else None
        if by is not None or names not in _KINDS:
            # The number for bare keys is in the message, not in a row.
            return None if by is None else _bare(path, whole_path, COORDINATOR_KEY)
        assert isinstance(names, Entity)
        return _bare(path, whole_path, names)
    fields = {kind: each for each in shape.fields for kind in _kinds(each)}
    kind = next((kind for kind in _KINDS if kind in fields), None)
    topic_id = fields.get(TOPIC_ID)
    if kind is None and topic_id is None:
        return None
    named = None if kind is None else fields[kind]
    by = named.names if named is not None and isinstance(named.names, EntityBy) else None
    return RowArray(
        path,
        whole_path,
        TOPIC_NAME if kind is None else kind,
        by,
        False,
        "" if named is None else named.name,
        "" if topic_id is None else topic_id.name,
        _error(shape),
        tuple(_inner(shape, whole_path, kind in (None, TOPIC_NAME))),
    )


def _bare(path: tuple[str, ...], whole_path: tuple[str, ...], kind: Entity) -> RowArray:
    return RowArray(path, whole_path, kind, None, True, "", "", "", ())


def _kinds(field: Field) -> tuple[Entity, ...]:
    """The kinds of entities of a plain field."""
    if isinstance(field.type, Array):
        return ()
    names = field.names
    return tuple(names.kinds.values()) if isinstance(names, EntityBy) else (names,) if names else ()


def _inner(shape: Shape, whole: tuple[str, ...], of_topic: bool) -> Iterator[RowArray]:
    """The arrays inside a row: partitions of a topic, topics of a group."""
    for field in shape.fields:
        path, whole_path = (field.name,), (*whole, field.name)
        if not of_topic:
            found = _rows(field, path, whole_path)
            if found is not None:
                yield found
        elif isinstance(field.type, Array):
            rows = _partitions(field, path, whole_path)
            if rows is not None:
                yield rows


def _partitions(
    field: Field, path: tuple[str, ...], whole_path: tuple[str, ...]
) -> RowArray | None:
    shape = element(field.type)
    if shape is None:
        return _bare(path, whole_path, PARTITION) if field.names is PARTITION else None
    number = next((each for each in shape.fields if each.names is PARTITION), None)
    if number is None or isinstance(number.type, Array):
        return None
    return RowArray(path, whole_path, PARTITION, None, False, number.name, "", _error(shape), ())


def _error(shape: Shape) -> str:
    names = {field.name for field in shape.fields}
    return next((name for name in _ERRORS if name in names), "")
