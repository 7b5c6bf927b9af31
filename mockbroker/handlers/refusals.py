"""The exceptions of an API's error response (`error_responses`): a part of the API's contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from mockbroker_protocol import ErrorCode


class ErrorDetails(NamedTuple):
    """The error of an error response, and the response's version."""

    version: int
    error: ErrorCode
    message: str | None


Finish = Callable[[Any, Any, ErrorDetails], None]
"""Completes an error response: takes it, the request and the error."""


class Refusal(NamedTuple):
    """The differences (Kafka's `getErrorResponse`).

    Attributes:
        rows: arrays of the response with a row for each of the request, although the struct around
            them has an error code too; None if no array has rows.
        sources: by array of the response, the path of the request's array, if that has another name
            and is not the only one.
        fixed: by struct, the values of fields that are not the default.
        repeats_code: whether `error_message` is the error's sentence (`Errors.message`) if there is
            no message; otherwise it is null, or the default of its declaration.
        has_no_answer: whether a request has no response, so that the connection is closed.
        finish: completes the response.
    """

    rows: tuple[str, ...] | None = ()
    sources: Mapping[str, str] = {}
    fixed: Mapping[str, dict[str, object]] = {}
    repeats_code: bool = False
    has_no_answer: Callable[[Any], bool] | None = None
    finish: Finish | None = None


DERIVED = Refusal()
"""Without differences, as for most APIs."""
