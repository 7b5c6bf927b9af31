"""Fields of messages by path, as in rules: `topics[].partitions[].index`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mockbroker_protocol import ApiKey
from mockbroker_protocol.declarations import schema_module
from mockbroker_protocol.declare import Array, FieldType, Shape


def request_shape(key: int) -> Shape:
    """The declaration of an API's requests."""
    shape: Shape = schema_module(ApiKey(key).name.lower()).REQUEST.shape
    return shape


def response_shape(key: int) -> Shape:
    """The declaration of an API's answers."""
    shape: Shape = schema_module(ApiKey(key).name.lower()).RESPONSE.shape
    return shape


def element(type_: FieldType) -> Shape | None:
    """The struct of a field, single or in an array; None for other fields."""
    if isinstance(type_, Array):
        return element(type_.element)
    return type_ if isinstance(type_, Shape) else None


def dotted_paths(shape: Shape, above: str = "") -> Iterator[str]:
    """The paths of all fields, as in rules: `topics[].partitions[].index`."""
    for field in shape.fields:
        path = f"{above}{field.name}"
        if isinstance(field.type, Array):
            path += "[]"
        yield path
        inner = element(field.type)
        if inner is not None:
            yield from dotted_paths(inner, f"{path}.")


def values_at(message: Any, path: Sequence[str]) -> Iterator[Any]:
    """The values at a path of field names, through structs and arrays."""
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
    """The lists at a path, not their elements."""
    value = getattr(message, path[0])
    if len(path) == 1:
        if value is not None:
            yield value
        return
    for item in value if isinstance(value, list) else (value,):
        if item is not None:
            yield from arrays_at(item, path[1:])
