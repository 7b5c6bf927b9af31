"""From HTTP to endpoints and back."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar, cast

import msgspec
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from mockbroker.admin.v1.endpoint import (
    JSON,
    NDJSON,
    Endpoint,
    EndpointCall,
    Line,
    LineError,
    Stream,
    Text,
)
from mockbroker.admin.v1.problems import MEDIA_TYPE, Problem, ProblemError, problem_of
from mockbroker.core.validation import INT_MAX, INT_MIN, ValidationError, convert
from mockbroker_protocol.types import parse_integer


class Bounds(Protocol):
    """The limits of the bodies of requests."""

    def config_int(self, name: str) -> int: ...

    def exceeded(self, limit: str) -> None:
        """Count that a request has exceeded this limit."""
        ...


class _Number(Convertor[int]):
    """A number in a path, `{id:number}`. Starlette's `int` fails for one of 4,301 digits."""

    regex = "[0-9]{1,18}"

    def convert(self, value: str) -> int:
        return int(value)

    def to_string(self, value: int) -> str:
        return str(value)


register_url_convertor("number", _Number())

log = logging.getLogger("mockbroker.admin")

C = TypeVar("C")


def routes(endpoints: Sequence[Endpoint[C]], context: C, bounds: Bounds | None) -> list[Route]:
    """A route for each path, with all its methods, which are called with the context. Without
    `bounds`, no endpoint may take a body.
    """
    by_path: dict[str, dict[str, Endpoint[C]]] = {}
    for endpoint in endpoints:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = endpoint
    return [
        Route(path, _dispatcher(methods, context, bounds), methods=list(methods))
        for path, methods in by_path.items()
    ]


def _dispatcher(
    methods: Mapping[str, Endpoint[C]], context: C, bounds: Bounds | None
) -> Callable[[Request], Awaitable[Response]]:
    async def dispatch(request: Request) -> Response:
        endpoint = methods["GET" if request.method == "HEAD" else request.method]
        try:
            query = _query(request, endpoint.query)
            if endpoint.lines is not None and _media(request) == NDJSON:
                answer = await _of_lines(request, endpoint, query, context, bounds)
            else:
                body = await _body(request, endpoint, bounds)
                answer = await endpoint.call(
                    context, EndpointCall(request.path_params, query, body)
                )
        except Exception as error:
            return failed(error)
        if isinstance(answer, Text):
            return Response(answer.text, media_type=answer.media)
        if isinstance(answer, Stream):
            return StreamingResponse(answer.pieces, media_type=answer.media)
        return json_response(answer, endpoint.status)

    return dispatch


def json_response(content: object, status: int = 200) -> Response:
    if status == 204:
        return Response(status_code=204)
    return Response(msgspec.json.encode(content), status_code=status, media_type=JSON)


def problem_response(problem: Problem) -> Response:
    return Response(msgspec.json.encode(problem), status_code=problem.status, media_type=MEDIA_TYPE)


def failed(error: Exception) -> Response:
    """The response to an error; an unexpected one is logged."""
    problem = problem_of(error)
    if problem is None:
        log.error("the admin API failed", exc_info=error)
        problem = Problem("internal error", 500, f"{type(error).__name__}: {error}")
    return problem_response(problem)


async def _body(request: Request, endpoint: Endpoint[C], bounds: Bounds | None) -> Any:
    kind = endpoint.body
    if kind is None:
        return None
    assert bounds is not None
    declared = _media(request)
    if declared != JSON:
        wanted = JSON if endpoint.lines is None else f"{JSON} or {NDJSON}"
        raise ProblemError(
            415, "not JSON", f"the content type must be {wanted}, not {declared or 'empty'}"
        )
    bytes_max = bounds.config_int(endpoint.body_limit)
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > bytes_max:
            bounds.exceeded(endpoint.body_limit)
            raise ProblemError(413, "too large", _too_large("body", bytes_max, endpoint.body_limit))
    try:
        decoded = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProblemError(400, "not JSON", f"the body cannot be read: {error}") from None
    if kind is object:
        return decoded
    if not isinstance(decoded, dict):
        raise ValidationError("", f"the body must be an object, not {type(decoded).__name__}")
    return decoded if kind is dict else convert(decoded, kind, "")


def _media(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def _of_lines(
    request: Request, endpoint: Endpoint[C], query: Any, context: C, bounds: Bounds | None
) -> object:
    assert endpoint.lines is not None
    assert bounds is not None
    pieces = request.stream()
    try:
        lines = _lines(pieces, endpoint.lines, endpoint.body_limit, bounds)
        return await endpoint.call(context, EndpointCall(request.path_params, query, None, lines))
    except Exception:
        # Most clients read no answer before they have sent the whole body.
        async for _ in pieces:
            pass
        raise


def _too_large(what: str, bytes_max: int, limit: str) -> str:
    return f"a {what} has at most {bytes_max:,} bytes ({limit})"


async def _lines(
    pieces: AsyncIterable[bytes], kind: type[msgspec.Struct], limit: str, bounds: Bounds
) -> AsyncIterator[Line]:
    """The lines of a body as they arrive; blank ones are skipped. Raises LineError."""
    number, bytes_max = 0, bounds.config_int(limit)
    rest = bytearray()

    def check(line: bytearray) -> None:
        if len(line) > bytes_max:
            bounds.exceeded(limit)
            problem = Problem("too large", 413, _too_large("line", bytes_max, limit))
            raise LineError(number + 1, problem)

    async for piece in pieces:
        rest += piece
        if b"\n" in piece:
            *lines, rest = rest.split(b"\n")
            for line in lines:
                check(line)
                number += 1
                if line.strip():
                    yield _line(number, line, kind)
        check(rest)
    if rest.strip():
        yield _line(number + 1, rest, kind)


def _line(number: int, line: bytearray, kind: type[msgspec.Struct]) -> Line:
    try:
        return Line(number, convert(msgspec.json.decode(line), kind, ""), len(line))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        problem = Problem("not JSON", 400, f"it cannot be read: {error}")
    except ValidationError as error:
        problem = cast("Problem", problem_of(error))
    raise LineError(number, problem)


def _query(request: Request, kind: type[msgspec.Struct] | None) -> Any:
    """The query as a struct; a repeated parameter is a list."""
    if kind is None:
        return None
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    data: dict[str, object] = {}
    for name in request.query_params:
        values = [_typed(text, fields.get(name)) for text in request.query_params.getlist(name)]
        data[name] = values[0] if len(values) == 1 else values
    return convert(data, kind, "")


def _typed(text: str, kind: Any) -> object:
    """The value of a parameter by its field's type; the text if that does not fit."""
    options = _leaves(kind)
    if bool in options and text in ("true", "false"):
        return text == "true"
    if int in options and (number := parse_integer(text, INT_MIN, INT_MAX)) is not None:
        return number
    if float in options:
        try:
            return float(text)
        except ValueError:
            return text
    return text


def _leaves(kind: Any) -> set[Any]:
    parts = getattr(kind, "__args__", ())
    if getattr(kind, "__metadata__", None) is not None:
        return _leaves(kind.__origin__) | ({int} if kind.__origin__ is int else set())
    if not parts:
        return {kind}
    return set().union(*(_leaves(part) for part in parts))
