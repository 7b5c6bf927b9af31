"""Effects on the decoded answer: errors, errors of single records, rewritten fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import msgspec

from mockbroker.core.faults.effects.wire_values import check_int32s, check_text, why_unfit
from mockbroker.core.faults.partial import (
    NO_TOPIC,
    RowTopic,
    Selection,
    fresh,
    in_row,
    selected_partitions,
)
from mockbroker.core.faults.rows import RowArray, every
from mockbroker.core.validation import nearest
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.declare import Array, Scalar, Shape


def error_code(name: str | int) -> ErrorCode:
    """An error by its name or number. Raises ValueError with the nearest name."""
    if isinstance(name, int):
        found = next((each for each in ErrorCode if each == name), None)
        if found is None:
            raise ValueError(f"there is no error code {name}")
        return found
    try:
        return ErrorCode[name.upper()]
    except KeyError:
        hint = nearest(name, ErrorCode.__members__, listed=False)
        raise ValueError(f"unknown error code {name!r}{hint}") from None


class Error(msgspec.Struct, frozen=True):
    """The request is answered with an error and not applied.

    With `topic` or `partition` in the match, only those partitions have the error; the others are
    served. The same holds for `group` and `transactional_id` in a request with several of them.
    """

    SHORT: ClassVar[str] = "code"

    code: str | int
    message: str | None = None

    def __post_init__(self) -> None:
        error_code(self.code)
        check_text("message", self.message)

    @property
    def error(self) -> ErrorCode:
        return error_code(self.code)


class ErrorAfter(Error, frozen=True):  # noqa: N818 - an effect, not an exception
    """The request is applied and answered with an error as if it were not."""


class RecordErrors(msgspec.Struct, frozen=True):
    """Single records of a batch are refused (KIP-467), and the batch with them.

    `records` are positions in the batch, from 0.
    """

    SHORT: ClassVar[str] = "records"

    records: list[int]
    code: str | int = "INVALID_RECORD"
    message: str = "This record was refused by a rule."

    def __post_init__(self) -> None:
        error_code(self.code)
        if not self.records or min(self.records) < 0:
            raise ValueError("records are places in the batch, from 0")
        check_int32s(records=max(self.records))
        check_text("message", self.message)


class Rewrite(msgspec.Struct, frozen=True):
    """Fields of the decoded answer get other values, by path: `topics[].partitions[].offset`.

    With `topic` or `partition` in the match, only in those topics and partitions, and with `group`
    or `transactional_id` only in their rows. `request` does the same to the request before it is
    applied.
    """

    answer: dict[str, object] = {}
    request: dict[str, object] = {}

    def __post_init__(self) -> None:
        if not (self.answer or self.request):
            raise ValueError("say which fields of the answer, or of the request")


# -- single records --------------------------------------------------------------------------------


def with_record_errors(
    response: Any, layout: Sequence[RowArray], selection: Selection, effect: RecordErrors
) -> Any:
    """A Produce answer that refuses partitions and names single records."""
    from mockbroker_protocol.messages.produce import BatchIndexAndErrorMessage

    changed = fresh(response)
    for _, partition in selected_partitions(changed, layout, selection):
        partition.error_message = effect.message
        partition.record_errors = [
            BatchIndexAndErrorMessage(place, effect.message) for place in effect.records
        ]
    return changed


# -- rewriting -------------------------------------------------------------------------------------


def rewritten(
    message: Any, layout: Sequence[RowArray], selection: Selection, fields: dict[str, object]
) -> Any:
    """A copy of a message with these values at their paths."""
    changed = fresh(message)
    rows = {each.whole_path: each for each in every(layout)} if selection.limited else {}
    for path, value in fields.items():
        steps = path.replace("[]", "").split(".")
        changed = _set(changed, _Rewriting(rows, selection, value), steps, (), NO_TOPIC)
    return changed


class _Rewriting(NamedTuple):
    rows: dict[tuple[str, ...], RowArray]
    selection: Selection
    value: object


def _set(
    struct: Any, how: _Rewriting, steps: list[str], above: tuple[str, ...], topic: RowTopic
) -> Any:
    """A struct with the value at these steps, in the selected rows."""
    name, rest = steps[0], steps[1:]
    here = (*above, name)
    if not rest:
        return _replace(struct, name, how.value)
    inner = getattr(struct, name)
    if inner is None:
        return struct
    if not isinstance(inner, list):
        return _replace(struct, name, _set(inner, how, rest, here, topic))
    rows = how.rows.get(here)
    made = [
        _set(item, how, rest, here, topic if rows is None else in_row(rows, item, topic))
        if rows is None or how.selection.fits(rows, item, topic)
        else item
        for item in inner
    ]
    return _replace(struct, name, made)


def _replace(struct: Any, name: str, value: object) -> Any:
    if struct.__struct_config__.frozen:
        return msgspec.structs.replace(struct, **{name: value})
    setattr(struct, name, value)
    return struct


_TYPES: dict[Scalar, tuple[type, ...]] = {
    Scalar.BOOL: (bool,),
    Scalar.FLOAT64: (int, float),
    Scalar.STRING: (str,),
}
_NOT_DATA = frozenset((Scalar.BYTES, Scalar.RECORDS, Scalar.UUID))


def check_field(shape: Shape, path: str, value: object) -> str | None:
    """The reason why `value` is invalid at `path` of a message; None if it is valid."""
    *above, last = path.replace("[]", "").split(".")
    for step in above:
        field = next(field for field in shape.fields if field.name == step)
        inner = field.type.element if isinstance(field.type, Array) else field.type
        assert isinstance(inner, Shape)
        shape = inner
    field = next(field for field in shape.fields if field.name == last)
    if isinstance(field.type, Array):
        element = field.type.element
        if not isinstance(value, list) or not isinstance(element, Scalar):
            return "only arrays of plain values can be replaced"
        return next((why for each in value if (why := _why_not(element, each))), None)
    if isinstance(field.type, Shape) or field.type in _NOT_DATA:
        return "a field of this kind cannot be written as data"
    if value is None:
        return None if field.nullable else "this field cannot be null"
    return _why_not(field.type, value)


def _why_not(scalar: Scalar, value: object) -> str | None:
    """Why a value does not fit a field, or an element, of this type; None if it does."""
    if scalar in _NOT_DATA:
        return "a field of this kind cannot be written as data"
    types = _TYPES.get(scalar, (int,))
    if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
        return f"{value!r} does not fit the field"
    return why_unfit(value, scalar) or None
