"""Error responses: one error for all of a request (`AbstractRequest.getErrorResponse`).

A handler that raises has this answer, and so has a request that an authorizer or a rule refuses.
Each request class of Kafka makes its own error response. Here they are derived from the
declarations of the messages. The error is in the top level if that has an `error_code`. Otherwise
it is in *rows*: each array of the response with error codes has one row for each row of the
request, with the name or number that identifies it. An exception is a `Refusal` in the contract.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any

from mockbroker.core.errors import ApiError
from mockbroker.handlers.base import APIS, CLOSE_CONNECTION
from mockbroker.handlers.refusals import DERIVED, ErrorDetails, Refusal
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.declarations import class_names, schema_module
from mockbroker_protocol.declare import Array, Field, Scalar, Shape

ERRORS = ("error_code", "partition_error_code")
MESSAGE = "error_message"
# Fields of these types identify a row, beside its first field.
_NAMES = (Scalar.STRING, Scalar.UUID)


def error_response(
    key: ApiKey,
    version: int,
    request: Any,
    error: ErrorCode,
    *,
    message: str | None = None,
    throttle_time_ms: int = 0,
) -> Any:
    """The response with `error` for all of `request`, and `message` where there is a field for it.

    The result is CLOSE_CONNECTION for a Produce without acks, which has no response.
    """
    refusal = refusal_of(key)
    if refusal.has_no_answer is not None and refusal.has_no_answer(request):
        return CLOSE_CONNECTION
    if message is None and refusal.repeats_code:
        message = error.message
    details = ErrorDetails(version, error, message)
    template = _template(key, version)
    response = _struct(template, details)
    if hasattr(response, "throttle_time_ms"):
        response.throttle_time_ms = throttle_time_ms
    _fill(template, response, request, details)
    if refusal.finish is not None:
        refusal.finish(response, request, details)
    return response


def failure_response(key: ApiKey, version: int, request: Any, error: Exception) -> Any:
    """The answer if a handler raised: an ApiError's error, UNKNOWN_SERVER_ERROR for others.

    Only an ApiError has a message, as in Kafka.
    """
    if isinstance(error, ApiError):
        return error_response(key, version, request, error.error, message=error.message)
    return error_response(key, version, request, ErrorCode.UNKNOWN_SERVER_ERROR)


def refusal_of(key: int) -> Refusal:
    """The exceptions of an API's error response."""
    served = APIS.get(int(key))
    return DERIVED if served is None else served.refusal


# -- filling ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Template:
    """The template of a struct in an error response.

    `keys` are pairs of a field and the source's field with its value, "" for the source itself.
    `source` is the path of the request's array, empty for the top level.
    """

    make: type
    fixed: dict[str, object]
    errors: tuple[str, ...]
    has_message: bool
    rows: tuple[_Template, ...] = ()
    field: str = ""
    source: tuple[str, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()


def _struct(template: _Template, details: ErrorDetails) -> Any:
    struct = template.make(**template.fixed)
    for name in template.errors:
        setattr(struct, name, int(details.error))
    if template.has_message:
        struct.error_message = details.message
    return struct


def _fill(template: _Template, struct: Any, source: Any, details: ErrorDetails) -> None:
    for rows in template.rows:
        into = getattr(struct, rows.field)
        for each in _elements(source, rows.source):
            row = _struct(rows, details)
            for name, other in rows.keys:
                setattr(row, name, getattr(each, other) if other else each)
            _fill(rows, row, each, details)
            into.append(row)


def _elements(source: Any, path: tuple[str, ...]) -> Iterator[Any]:
    head, *rest = path
    for each in getattr(source, head) or ():
        if rest:
            yield from _elements(each, tuple(rest))
        else:
            yield each


# -- deriving --------------------------------------------------------------------------------------


@cache
def _template(key: ApiKey, version: int) -> _Template:
    schema = schema_module(ApiKey(key).name.lower())
    deriver = _Deriver(schema, version, refusal_of(key))
    return deriver.template(schema.RESPONSE.shape, schema.REQUEST.shape)


class _Deriver:
    """Finds the array of the request for each array of a response, in one version."""

    def __init__(self, schema: Any, version: int, refusal: Refusal) -> None:
        self._messages = import_module(schema.__name__.replace(".schemas.", ".messages."))
        self._names = class_names(schema)
        self._version = version
        self._refusal = refusal

    def template(self, shape: Shape, source_type: object, **row: Any) -> _Template:
        """The template of a struct; `source_type` is the type of its source in the request."""
        name = self._names[id(shape)]
        fields = {field.name for field in shape.fields}
        return _Template(
            make=getattr(self._messages, name),
            fixed=self._refusal.fixed.get(name, {}),
            errors=tuple(each for each in ERRORS if each in fields),
            has_message=MESSAGE in fields,
            rows=tuple(self._rows(shape, source_type)) if isinstance(source_type, Shape) else (),
            **row,
        )

    def _rows(self, shape: Shape, source: Shape) -> Iterator[_Template]:
        if self._refusal.rows is None:
            return
        has_error = any(field.name in ERRORS for field in self._fields(shape))
        for field in self._fields(shape):
            element = _element(field)
            if not isinstance(element, Shape):
                continue
            if field.name in self._refusal.rows or (not has_error and self._has_errors(element)):
                path, source_type = self._source(field.name, source)
                keys = tuple(self._keys(element, source_type))
                yield self.template(element, source_type, field=field.name, source=path, keys=keys)

    def _fields(self, shape: Shape) -> list[Field]:
        return [field for field in shape.fields if self._version in field.versions]

    def _has_errors(self, shape: Shape) -> bool:
        """Whether a struct has an error code, or a struct in its arrays has."""
        for field in self._fields(shape):
            element = _element(field)
            if field.name in ERRORS or (isinstance(element, Shape) and self._has_errors(element)):
                return True
        return False

    def _source(self, name: str, source: Shape) -> tuple[tuple[str, ...], object]:
        """The path of the request's array for an array of the response, and its elements' type.

        It is the array of the same name, or the only one.
        """
        path = self._refusal.sources.get(name)
        if path is None:
            arrays = [each.name for each in self._fields(source) if isinstance(each.type, Array)]
            path = name if name in arrays else arrays[0]
            if len(arrays) > 1 and path != name:
                raise LookupError(
                    f"the source of {name!r} is one of {arrays}: add it to `Refusal.sources`"
                )
        found: object = source
        for step in path.split("."):
            assert isinstance(found, Shape)
            found = next(_element(field) for field in found.fields if field.name == step)
        return tuple(path.split(".")), found

    def _keys(self, shape: Shape, source: object) -> Iterator[tuple[str, str]]:
        """The fields that identify a row: the first one, and all names that the source has too."""
        plain = [
            field
            for field in self._fields(shape)
            if isinstance(field.type, Scalar) and field.name not in (*ERRORS, MESSAGE)
        ]
        if not plain:
            return
        if not isinstance(source, Shape):
            yield plain[0].name, ""
            return
        source_type = [
            field.name for field in self._fields(source) if isinstance(field.type, Scalar)
        ]
        for place, field in enumerate(plain):
            if field.name in source_type and (place == 0 or field.type in _NAMES):
                yield field.name, field.name
            elif place == 0:
                yield field.name, source_type[0]


def _element(field: Field) -> object:
    """The type of an array's elements; None if the field is no array."""
    return field.type.element if isinstance(field.type, Array) else None
