"""Checks of the types of Python values that a test passes, with errors that name the wrong part.

The errors do not show values of a wrong type: they may be passwords. Data of files and requests is
converted instead: mockbroker/core/validation.py.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass
from functools import cache
from typing import (
    Any,
    Literal,
    NamedTuple,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from mockbroker.core.validation import nearest

_TEXTS = (str, bytes, bytearray)  # sequences that are given where none is meant


def check_type(value: object, type_: Any, path: str) -> None:
    """Check a value, the items of mappings and sequences, and the fields of dataclasses and
    dictionaries, of which none is needed.

    `path` is empty for the arguments of a function, given as a dictionary. Raises TypeError with
    the path of what has another type (`topics[0].partitions`) and for an unknown field, and
    ValueError for a text that is none of a `Literal`.
    """
    try:
        _check(value, _shape(type_))
    except _WrongPartError as found:
        message = f"{path}{''.join(reversed(found.steps))}: {found}".removeprefix(".")
        raise (ValueError if found.is_literal else TypeError)(message) from None


class _WrongPartError(Exception):
    """A wrong part. `steps` lead to it, the innermost one first."""

    def __init__(self, reason: str, *, is_literal: bool = False) -> None:
        super().__init__(reason)
        self.steps: list[str] = []
        self.is_literal = is_literal


class _Shape(NamedTuple):
    """A type taken apart, once. Objects of the `simple` classes have it, and have no parts."""

    type_: Any
    origin: Any
    inner: list[_Shape]
    fields: dict[str, _Shape]
    simple: frozenset[type]


@cache
def _shape(type_: Any) -> _Shape:
    origin = get_origin(type_)
    if origin is Literal:
        return _Shape(type_, origin, [], {}, frozenset())
    inner = [_shape(each) for each in get_args(type_)]
    if origin in (Union, types.UnionType):
        simple = frozenset[type]().union(*(each.simple for each in inner))
        return _Shape(type_, Union, inner, {}, simple)
    if is_dataclass(type_) or is_typeddict(type_):
        fields = {name: _shape(each) for name, each in get_type_hints(type_).items()}
        origin = dict if is_typeddict(type_) else type_
        return _Shape(type_, origin, [], fields, frozenset())
    return _Shape(type_, origin or type_, inner, {}, frozenset() if origin else frozenset([type_]))


def _check(value: Any, shape: _Shape) -> None:
    if type(value) in shape.simple:
        return
    if not _is_kind(value, shape):
        raise _WrongPartError(f"expected {_text(shape.type_)}, not {_given(value)}")
    if shape.fields:
        _check_fields(value, shape)
    elif shape.origin is Union:
        _check(value, next(each for each in shape.inner if _is_kind(value, each)))
    elif shape.origin is Literal:
        choices = get_args(shape.type_)
        if value not in choices:
            reason = f"{value!r} is not allowed here{nearest(str(value), choices)}"
            raise _WrongPartError(reason, is_literal=True)
    elif shape.origin is Mapping:
        for key, item in value.items():
            _check_part(key, shape.inner[0], ": a key", key)
            _check_part(item, shape.inner[1], "[{!r}]", key)
    elif shape.origin in (Sequence, tuple):
        wanted = shape.inner if shape.origin is tuple else shape.inner * len(value)
        for index, (item, part) in enumerate(zip(value, wanted, strict=True)):
            _check_part(item, part, "[{}]", index)


def _check_fields(value: Any, shape: _Shape) -> None:
    if shape.origin is dict:
        for name, item in value.items():
            if name not in shape.fields:
                raise _WrongPartError(f"unknown field {name!r}{nearest(str(name), shape.fields)}")
            _check_part(item, shape.fields[name], ".{}", name)
        return
    for name, field in shape.fields.items():
        item = getattr(value, name)
        if type(item) not in field.simple:
            _check_part(item, field, ".{}", name)


def _check_part(value: object, shape: _Shape, step: str, place: object) -> None:
    """Check a part; `step` with its place leads to it."""
    try:
        _check(value, shape)
    except _WrongPartError as found:
        found.steps.append(step.format(place))
        raise


def _is_kind(value: object, shape: _Shape) -> bool:
    """Whether a value has the type as far as that is known without its parts."""
    origin = shape.origin
    if origin is Union:
        return any(_is_kind(value, each) for each in shape.inner)
    if origin is Literal:
        return isinstance(value, str)
    if isinstance(value, bool):
        return origin is bool
    if origin is Sequence and isinstance(value, _TEXTS):
        return False
    if origin is tuple and isinstance(value, tuple):
        return len(value) == len(shape.inner)
    return isinstance(value, (int, float) if origin is float else origin)


def _given(value: object) -> str:
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    return "None" if value is None else type(value).__name__


def _text(type_: Any) -> str:
    """A type as it is written: `Mapping[str, int] | Sequence[TopicSpec] | None`."""
    origin, inner = get_origin(type_), get_args(type_)
    if origin in (Union, types.UnionType):
        return " | ".join(map(_text, inner))
    if origin is Literal:
        return " or ".join(map(repr, inner))
    if type_ is types.NoneType:
        return "None"
    name = (origin or type_).__name__
    return f"{name}[{', '.join(map(_text, inner))}]" if inner else str(name)
