"""The OpenAPI document, made from the endpoints."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import msgspec

from mockbroker.admin.v1.endpoint import JSON, Endpoint
from mockbroker.admin.v1.problems import MEDIA_TYPE, Problem

REFS = "#/components/schemas/{name}"
_PARAMETER = re.compile(r"\{(\w+)(?::(\w+))?\}")


def document(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """An OpenAPI 3.1 document of all endpoints."""
    kinds = [Problem]
    for endpoint in endpoints:
        kinds += [each for each in (endpoint.answer, endpoint.body) if each not in (None, dict)]
    schemas, components = msgspec.json.schema_components(
        kinds, schema_hook=_anything, ref_template=REFS
    )
    schema_of = {repr(kind): schema for kind, schema in zip(kinds, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        path = _PARAMETER.sub(r"{\1}", endpoint.path)
        paths.setdefault(path, {})[endpoint.method.lower()] = _operation(endpoint, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {"title": "mockbroker", "version": version("mockbroker")},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _anything(kind: type) -> dict[str, Any]:  # noqa: ARG001
    """The schema of what may be any JSON value."""
    return {"description": "any value"}


def _operation(endpoint: Endpoint, schema_of: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": _operation_id(endpoint),
        "summary": endpoint.summary,
        "parameters": [*_path_parameters(endpoint), *_query_parameters(endpoint)],
        "responses": {
            str(endpoint.status): _answer(endpoint, schema_of),
            "default": {
                "description": "A problem; nothing has changed",
                "content": {MEDIA_TYPE: {"schema": schema_of[repr(Problem)]}},
            },
        },
    }
    if endpoint.body is not None:
        schema = {"type": "object"} if endpoint.body is dict else schema_of[repr(endpoint.body)]
        operation["requestBody"] = {"required": True, "content": {JSON: {"schema": schema}}}
    return operation


def _operation_id(endpoint: Endpoint) -> str:
    words = re.findall(r"\w+", _PARAMETER.sub(r"\1", endpoint.path.removeprefix("/v1")))
    return "_".join([endpoint.method.lower(), *words])


def _answer(endpoint: Endpoint, schema_of: dict[str, Any]) -> dict[str, Any]:
    if endpoint.answer is None:
        return {"description": "Done"}
    media = "text/event-stream" if endpoint.stream else JSON
    return {
        "description": "The answer",
        "content": {media: {"schema": schema_of[repr(endpoint.answer)]}},
    }


def _path_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "integer", "minimum": 0} if kind == "int" else {"type": "string"},
        }
        for name, kind in _PARAMETER.findall(endpoint.path)
    ]


def _query_parameters(endpoint: Endpoint) -> list[dict[str, Any]]:
    fields = msgspec.structs.fields(endpoint.query)
    parameters = []
    for field in fields:
        schema = msgspec.json.schema(field.type, schema_hook=_anything, ref_template=REFS)
        schema.pop("$defs", None)
        parameters.append(
            {
                "name": field.encode_name,
                "in": "query",
                "required": field.required,
                "schema": schema,
            }
        )
    return parameters
