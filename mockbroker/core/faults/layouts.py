"""Where the topics, partitions, groups and producers stand in each message: read off the schemas.

A *row* is a struct in an array of topics, with a name or an id and perhaps an array of partitions,
which are structs or bare numbers. Kafka calls these arrays and fields by a dozen names; here are
the names, and the walk over a declaration that finds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from mockbroker_protocol import ApiKey
from mockbroker_protocol.declarations import schema_module
from mockbroker_protocol.declare import Array, Field, FieldType, Shape

_TOPIC_ARRAYS = frozenset(
    (
        "replica_election_results",
        "responses",
        "results",
        "results_by_topic_v3_and_below",
        "topic_data",
        "topic_partitions",
        "topic_results",
        "topics",
        "v3_and_below_topics",
    )
)
_TOPIC_NAMES = ("topic", "name", "topic_name")
_PARTITION_ARRAYS = (
    "partitions",
    "partition_data",
    "partition_responses",
    "partition_indexes",
    "partition_result",
    "results_by_partition",
)
_INDEXES = ("partition_index", "partition", "index", "partition_id")
# Arrays of bare topic names.
_NAME_ARRAYS = ("topic_names", "subscribed_topic_names")
_ERRORS = ("error_code", "partition_error_code")


class TopicArray(NamedTuple):
    """An array of topics. `path` leads to it through structs and arrays; "" where a field is not
    there. An empty `number` with `partitions` means that those are bare numbers.
    """

    path: tuple[str, ...]
    name: str
    topic_id: str
    error: str
    partitions: str
    number: str
    partition_error: str

    @property
    def field(self) -> str:
        return self.path[-1]


class Layout(NamedTuple):
    """Where things stand in one message."""

    shape: Shape
    topics: tuple[TopicArray, ...]
    names: tuple[str, ...]  # arrays of bare topic names
    scalars: Mapping[str, tuple[tuple[str, ...], ...]]  # the paths of plain fields, by name


@cache
def request_layout(key: int) -> Layout:
    """The layout of an API's requests."""
    return _layout(schema_module(ApiKey(key).name.lower()).REQUEST.shape)


@cache
def response_layout(key: int) -> Layout:
    """The layout of an API's answers."""
    return _layout(schema_module(ApiKey(key).name.lower()).RESPONSE.shape)


def _layout(shape: Shape) -> Layout:
    topics = tuple(_topic_arrays(shape, ()))
    fields = {field.name for field in shape.fields}
    scalars: dict[str, list[tuple[str, ...]]] = {}
    for path in leaf_paths(shape):
        scalars.setdefault(path[-1], []).append(path)
    return Layout(
        shape,
        topics,
        tuple(name for name in _NAME_ARRAYS if name in fields),
        {name: tuple(paths) for name, paths in scalars.items()},
    )


def _topic_arrays(shape: Shape, above: tuple[str, ...]) -> Iterator[TopicArray]:
    for field in shape.fields:
        inner = element(field.type)
        if inner is None:
            continue
        path = (*above, field.name)
        found = _topic_array(field, inner, path)
        if found is not None:
            yield found
        else:
            yield from _topic_arrays(inner, path)


def _topic_array(field: Field, inner: Shape, path: tuple[str, ...]) -> TopicArray | None:
    if field.name not in _TOPIC_ARRAYS or not isinstance(field.type, Array):
        return None
    fields = {each.name: each for each in inner.fields}
    name = _first(_TOPIC_NAMES, fields)
    topic_id = _first(("topic_id",), fields)
    if not (name or topic_id):
        return None
    partitions = _first(_PARTITION_ARRAYS, fields)
    index = error = ""
    if partitions and (each := element(fields[partitions].type)) is not None:
        names = {field.name: field for field in each.fields}
        index, error = _first(_INDEXES, names), _first(_ERRORS, names)
    return TopicArray(path, name, topic_id, _first(_ERRORS, fields), partitions, index, error)


def element(type_: FieldType) -> Shape | None:
    """The struct that a field holds, alone or in an array; None for other fields."""
    if isinstance(type_, Array):
        return element(type_.element)
    return type_ if isinstance(type_, Shape) else None


def _first(names: Sequence[str], fields: Mapping[str, Field]) -> str:
    return next((name for name in names if name in fields), "")


# -- walking messages ------------------------------------------------------------------------------


def leaf_paths(shape: Shape, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every field that holds plain values, or an array of them."""
    for field in shape.fields:
        path = (*above, field.name)
        inner = element(field.type)
        if inner is None:
            yield path
        else:
            yield from leaf_paths(inner, path)


def dotted_paths(shape: Shape, above: str = "") -> Iterator[str]:
    """The path of every field as rules write it: `topics[].partitions[].index`."""
    for field in shape.fields:
        path = f"{above}{field.name}"
        if isinstance(field.type, Array):
            path += "[]"
        yield path
        inner = element(field.type)
        if inner is not None:
            yield from dotted_paths(inner, f"{path}.")


def values_at(message: Any, path: Sequence[str]) -> Iterator[Any]:
    """Every value that a path of field names leads to, through structs and arrays."""
    if not path:
        yield message
        return
    value = getattr(message, path[0])
    if isinstance(value, list):
        if len(path) == 1:
            yield from value
        for item in value if len(path) > 1 else ():
            yield from values_at(item, path[1:])
    elif value is not None:
        yield from values_at(value, path[1:])


def arrays_at(message: Any, path: Sequence[str]) -> Iterator[list[Any]]:
    """Every list that a path leads to, itself."""
    value = getattr(message, path[0])
    if len(path) == 1:
        if value is not None:
            yield value
        return
    for item in value if isinstance(value, list) else (value,):
        if item is not None:
            yield from arrays_at(item, path[1:])
