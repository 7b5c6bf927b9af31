"""The conversion of plain data (JSON, YAML, Python) to structs, with errors that name the field.

Unlike msgspec's, the error for an unknown field has its path and the nearest existing name.
Durations are integers in ms or texts such as `5s`. A struct may name one of its fields in `SHORT`;
a value of that field may replace the struct, as in `delay: 5s`.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin

import msgspec

from mockbroker.core.shortening import shortened
from mockbroker.core.timing.durations import parse_duration

S = TypeVar("S", bound=msgspec.Struct)

_fields = cache(msgspec.structs.fields)

DEPTH_MAX = 16
ITEMS_MAX = 10_000
TEXT_CHARS_MAX = 64 * 1024
INT_MIN, INT_MAX = -(2**63), 2**63 - 1
VALUE_CHARS_MAX = 60  # of an invalid value that a message shows
DURATION_MS_MAX = 100 * 365 * 24 * 3_600_000  # a hundred years


class ValidationError(Exception):
    """Invalid data. `path` is the field, such as `rules[2].match.topik`."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.path = path
        self.reason = reason


class UnknownFieldError(ValidationError):
    """A field `name` that is not one of `known`."""

    def __init__(self, path: str, name: str, known: Iterable[str]) -> None:
        super().__init__(path, f"unknown field{nearest(name, known)}")
        self.name = name


class Range(NamedTuple):
    """Bounds of a number, inclusive."""

    low: float
    high: float


class Length(NamedTuple):
    """Bounds of the length of a text or list, inclusive."""

    low: int
    high: int


ANY_LIST = Length(0, ITEMS_MAX)


class Duration:
    """Marks an integer of milliseconds that may be given as a text."""


class Later(NamedTuple):
    """Marks an object that another parser converts."""

    what: Literal["rule", "effects", "actions"]


Ms = Annotated[int, Duration()]
Count = Annotated[int, Range(0, 2**31 - 1)]
Count64 = Annotated[int, Range(0, INT_MAX)]  # an offset, a time in ms, the number of an entry
Positive = Annotated[int, Range(1, 2**31 - 1)]
Probability = Annotated[float, Range(0.0, 1.0)]


def convert(data: object, type_: type[S], path: str) -> S:
    """`data` as a struct of `type_`. Raises ValidationError with the path of the invalid field."""
    made = _convert(data, type_, path, DEPTH_MAX)
    assert isinstance(made, type_)
    return made


def nearest(name: str, known: Iterable[str], *, listed: bool = True) -> str:
    """`; did you mean '…'?`; without a near name, all names if `listed`. Case is ignored."""
    choices = {each.lower(): each for each in sorted(known)}
    near = get_close_matches(name.lower(), choices, 1, 0.6)
    if near:
        return f"; did you mean {choices[near[0]]!r}?"
    return f"; known are: {', '.join(choices.values())}" if listed and choices else ""


def duration_ms(value: object, path: str) -> int:
    """Milliseconds from an integer or a text such as `250ms`, `5s`, `1.5h`."""
    found = parse_duration(value) if isinstance(value, str) else value
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    if not isinstance(found, int) or isinstance(found, bool):
        raise ValidationError(path, f'{_shown(value)} is not a duration; write 250 (ms) or "5s"')
    if found < 0:
        raise ValidationError(path, f"a duration cannot be negative: {_shown(value)}")
    if found > DURATION_MS_MAX:
        raise ValidationError(path, f"{_shown(value)} is longer than a hundred years")
    return found


def to_data(value: object) -> object:
    """A struct as plain data, without default values. Durations are in ms."""
    if isinstance(value, msgspec.Struct):
        out: dict[str, object] = {}
        for field in _fields(type(value)):
            item = getattr(value, field.name)
            if field.required or item != _default(field):
                out[field.encode_name] = to_data(item)
        return out
    if isinstance(value, Mapping):
        return {key: to_data(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_data(item) for item in value]
    return value


# -- by type ---------------------------------------------------------------------------------------


def _convert(data: object, type_: Any, path: str, depth: int) -> object:
    if depth == 0:
        raise ValidationError(path, "nested too deeply")
    if type(type_) is type:  # the most frequent case
        return _scalar(data, type_, path)
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        return _struct(data, type_, path, depth)
    origin = get_origin(type_)
    if origin is Annotated:
        return _annotated(data, *get_args(type_), path=path, depth=depth)
    if origin in (Union, types.UnionType):
        return _union(data, get_args(type_), path, depth)
    if origin is Literal:
        choices = get_args(type_)
        if data in choices and not isinstance(data, bool):
            return data
        shown = ", ".join(map(str, choices))
        hint = nearest(data, choices) if isinstance(data, str) else f"; known are: {shown}"
        raise ValidationError(path, f"{_shown(data)} is not allowed here{hint}")
    if origin is list:
        return _list(data, get_args(type_)[0], path, depth)
    if origin is dict:
        return _dict(data, get_args(type_)[1], path, depth)
    return _scalar(data, type_, path)


def _scalar(data: object, type_: Any, path: str) -> object:
    if type_ is object:
        return data
    if type_ is int and _is_whole(data):
        data = int(data)  # type: ignore[call-overload]
    if isinstance(data, int) and not INT_MIN <= data <= INT_MAX:
        raise ValidationError(path, f"{_shown(data)} is too large a number")
    if type_ is float and isinstance(data, int) and not isinstance(data, bool):
        return float(data)
    right = isinstance(data, type_) and (type_ is bool or not isinstance(data, bool))
    if not right:
        raise ValidationError(path, f"expected {_KINDS[type_]}, not {_shown(data)}")
    if isinstance(data, str) and len(data) > TEXT_CHARS_MAX:
        raise ValidationError(path, f"a text has at most {TEXT_CHARS_MAX} characters")
    return data


def _is_whole(data: object) -> bool:
    """Whether the data is a float such as 3.0, which equals 3 in JSON."""
    return isinstance(data, float) and data.is_integer()


def _annotated(data: object, type_: Any, *marks: object, path: str, depth: int) -> object:
    for mark in marks:
        if isinstance(mark, Duration):
            return duration_ms(data, path)
        if isinstance(mark, Length):
            return _of_length(data, type_, mark, path, depth)
    value = _convert(data, type_, path, depth)
    for mark in marks:
        if isinstance(mark, Range):
            assert isinstance(value, int | float)
            if not mark.low <= value <= mark.high:
                raise ValidationError(path, f"{value} is outside {mark.low}..{mark.high}")
    return value


def _of_length(data: object, type_: Any, bounds: Length, path: str, depth: int) -> object:
    """A text or a list; the bounds replace those of all texts and lists."""
    if get_origin(type_) is list:
        return _list(data, get_args(type_)[0], path, depth, bounds)
    if not isinstance(data, str):
        raise ValidationError(path, f"expected {_KINDS[str]}, not {_shown(data)}")
    if not bounds.low <= len(data) <= bounds.high:
        raise ValidationError(path, f"a text of {bounds.low} to {bounds.high} characters is needed")
    return data


def _union(data: object, choices: tuple[Any, ...], path: str, depth: int) -> object:
    if data is None and types.NoneType in choices:
        return None
    wanted = [choice for choice in choices if choice is not types.NoneType]
    for choice in wanted:
        if _has_shape(data, choice):
            return _convert(data, choice, path, depth)
    if len(wanted) == 1:
        return _convert(data, wanted[0], path, depth)
    kinds = " or ".join(_kind(choice) for choice in wanted)
    raise ValidationError(path, f"expected {kinds}, not {_shown(data)}")


def _has_shape(data: object, type_: Any) -> bool:
    """Whether the data has the shape of the type; the content is checked later."""
    origin = get_origin(type_)
    if origin is Annotated:
        args = get_args(type_)
        if any(isinstance(mark, Duration) for mark in args[1:]):
            return isinstance(data, int | str) or _is_whole(data)
        return _has_shape(data, args[0])
    if origin is Literal:
        return type(data) in {type(choice) for choice in get_args(type_)}
    if origin is list:
        return isinstance(data, list | tuple)
    if origin is dict:
        return isinstance(data, Mapping)
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        return isinstance(data, Mapping | type_)
    if type_ is float:
        return isinstance(data, int | float) and not isinstance(data, bool)
    if type_ is int and _is_whole(data):
        return True
    return isinstance(data, type_) and (type_ is bool or not isinstance(data, bool))


def _list(data: object, item_type: Any, path: str, depth: int, bounds: Length = ANY_LIST) -> object:
    if not isinstance(data, list | tuple):
        raise ValidationError(path, f"expected a list, not {_shown(data)}")
    if not bounds.low <= len(data) <= bounds.high:
        raise ValidationError(
            path, f"a list has {bounds.low} to {bounds.high} items, not {len(data)}"
        )
    return [_convert(x, item_type, f"{path}[{i}]", depth - 1) for i, x in enumerate(data)]


def _dict(data: object, item_type: Any, path: str, depth: int) -> object:
    if not isinstance(data, Mapping):
        raise ValidationError(path, f"expected an object, not {_shown(data)}")
    for key in data:
        if not isinstance(key, str):
            raise ValidationError(path, f"a name is a text, not {_shown(key)}")
    return {key: _convert(x, item_type, f"{path}.{key}", depth - 1) for key, x in data.items()}


def _struct(data: object, type_: type[msgspec.Struct], path: str, depth: int) -> msgspec.Struct:
    if isinstance(data, type_):
        return data
    short: str | None = getattr(type_, "SHORT", None)
    if not isinstance(data, Mapping):
        if short is not None and data is not None:
            data = {short: data}
        elif data is None or data is True:
            data = {}
        else:
            raise ValidationError(path, f"expected an object, not {_shown(data)}")
    fields = struct_fields(type_)
    at = f"{path}." if path else ""
    values: dict[str, object] = {}
    for key, value in data.items():
        if key not in fields:
            raise UnknownFieldError(f"{at}{key}", str(key), fields)
        name, field_type, _ = fields[key]
        values[name] = _convert(value, field_type, f"{at}{key}", depth - 1)
    for key, (name, _, required) in fields.items():
        if required and name not in values:
            raise ValidationError(f"{at}{key}", "this field is needed")
    try:
        return type_(**values)
    except ValueError as error:  # from __post_init__, which sees fields together
        raise ValidationError(path, str(error)) from None


@cache
def struct_fields(type_: type[msgspec.Struct]) -> dict[str, tuple[str, Any, bool]]:
    """The fields of a struct by their name in data: (attribute, type, needed)."""
    from typing import get_type_hints

    hints = get_type_hints(type_, include_extras=True)
    return {
        field.encode_name: (field.name, hints[field.name], field.required)
        for field in msgspec.structs.fields(type_)
    }


_KINDS: dict[object, str] = {
    int: "an integer",
    float: "a number",
    str: "a text",
    bool: "true or false",
}


def _kind(type_: Any) -> str:
    origin = get_origin(type_)
    if origin is Annotated:
        args = get_args(type_)
        if any(isinstance(mark, Duration) for mark in args[1:]):
            return "a duration"
        return _kind(args[0])
    if origin is Literal:
        return " or ".join(map(repr, get_args(type_)))
    if origin is list:
        return "a list"
    return _KINDS.get(type_, "an object")


def _default(field: msgspec.structs.FieldInfo) -> object:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return field.default


def _shown(value: object) -> str:
    return shortened(repr(value), VALUE_CHARS_MAX)
