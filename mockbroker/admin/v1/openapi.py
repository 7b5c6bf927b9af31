"""The OpenAPI document, made from the endpoints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import msgspec

from mockbroker.admin.v1.endpoint import JSON, NDJSON, OPEN_PATHS, TAGS, Endpoint, Nothing
from mockbroker.admin.v1.problems import MEDIA_TYPE, Problem
from mockbroker.core.faults.schemas import InputSchemas
from mockbroker.core.validation import struct_fields

REFS = "#/components/schemas/{name}"
PROBLEMS = {
    400: "Invalid input; `field` names the field",
    401: "The token is missing or wrong",
    403: "A page of another origin is refused",
    404: "Not found",
    408: "Timeout",
    409: "Impossible at the moment",
    413: "The body is too large",
    415: "The body is not JSON",
    421: "Without a token, only loopback host names are served",
    429: "Too many streams",
    503: "The cluster does not answer",
}
EXAMPLES = {
    "topic": "orders",
    "partition": 0,
    "group": "billing",
    "name": "fault-1",
    "id": 1,
    "seq": 1,
}
# Answers of these types have the schema of the struct; others are texts or bytes.
STRUCTURED = (JSON, "text/event-stream")
_PARAMETER = re.compile(r"\{(\w+)(?::(\w+))?\}")


def document(endpoints: Sequence[Endpoint[Any]]) -> dict[str, Any]:
    """An OpenAPI 3.1 document of all endpoints.

    msgspec gives the schemas of outputs, which it encodes; `InputSchemas` those of inputs.
    """
    kinds = [Problem, *(each.answer for each in endpoints if each.answer is not None)]
    schemas, components = msgspec.json.schema_components(
        kinds, schema_hook=_anything, ref_template=REFS
    )
    given = {repr(kind): schema for kind, schema in zip(kinds, schemas, strict=True)}
    taken = InputSchemas(REFS)
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        path = _PARAMETER.sub(r"{\1}", endpoint.path)
        paths.setdefault(path, {})[endpoint.method.lower()] = _operation(endpoint, given, taken)
    if both := components.keys() & taken.components.keys():
        raise ValueError(f"given and taken under one name: {sorted(both)}")
    components.update(taken.components)
    return {
        "openapi": "3.1.0",
        "info": {"title": "mockbroker", "version": version("mockbroker")},
        "tags": [{"name": tag, "description": about} for tag, (about, _) in TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _anything(kind: type) -> dict[str, Any]:  # noqa: ARG001
    """The schema of any JSON value."""
    return {"description": "any value"}


def _operation(
    endpoint: Endpoint[Any], given: dict[str, Any], taken: InputSchemas
) -> dict[str, Any]:
    problem = {MEDIA_TYPE: {"schema": given[repr(Problem)]}}
    operation: dict[str, Any] = {
        "operationId": _operation_id(endpoint),
        "summary": endpoint.summary,
        "tags": [endpoint.tag],
        "parameters": [*_path_parameters(endpoint), *_query_parameters(endpoint, taken)],
        "responses": {
            str(endpoint.status): _answer(endpoint, given),
            **{
                str(status): {"description": PROBLEMS[status], "content": problem}
                for status in _problems(endpoint)
            },
        },
    }
    if endpoint.path in OPEN_PATHS:
        operation["security"] = [{}]
    if endpoint.body is not None:
        schema_of = endpoint.body_schema or (lambda inputs: inputs.struct(endpoint.body))
        content = {JSON: {"schema": schema_of(taken)}}
        if endpoint.lines is not None:
            # The schema is that of a line.
            content[NDJSON] = {"schema": taken.struct(endpoint.lines)}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _problems(endpoint: Endpoint[Any]) -> list[int]:
    """The statuses of the problems of an endpoint."""
    found = {400, 401, 403, 421, 503, *endpoint.problems}
    if endpoint.body is not None:
        found |= {413, 415}
    return sorted(found)


def _operation_id(endpoint: Endpoint[Any]) -> str:
    words = re.findall(r"\w+", _PARAMETER.sub(r"\1", endpoint.path.removeprefix("/v1")))
    return "_".join([endpoint.method.lower(), *(words or ["index"])])


def _answer(endpoint: Endpoint[Any], schema_of: dict[str, Any]) -> dict[str, Any]:
    if endpoint.status == 204:
        return {"description": "Done"}
    schema = schema_of.get(repr(endpoint.answer))
    content = {
        media: {"schema": schema if media in STRUCTURED else _unstructured(media)}
        for media in endpoint.media
    }
    return {"description": "The answer", "content": content}


def _unstructured(media: str) -> dict[str, Any]:
    if media.startswith("text/"):
        return {"type": "string"}
    if media.endswith("yaml"):
        return {"type": ["object", "null"]}
    return {"type": "string", "contentMediaType": media}


def _path_parameters(endpoint: Endpoint[Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "integer", "minimum": 0} if kind == "int" else {"type": "string"},
            "example": EXAMPLES[name],
        }
        for name, kind in _PARAMETER.findall(endpoint.path)
    ]


def _query_parameters(endpoint: Endpoint[Any], taken: InputSchemas) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "query", "required": required, "schema": taken.of(kind)}
        for name, (_, kind, required) in struct_fields(endpoint.query or Nothing).items()
    ]
