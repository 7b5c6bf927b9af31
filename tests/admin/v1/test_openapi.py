"""The OpenAPI document tells every endpoint, and the endpoints answer as it says."""

from __future__ import annotations

import re
from typing import Any

import pytest

from mockbroker.admin.v1.endpoints import endpoints
from mockbroker.admin.v1.openapi import document
from tests.support.http import HttpClient

PARAMETERS = {"topic": "orders", "partition": "0", "name": "nobody", "id": "1"}


@pytest.fixture(scope="module")
def described(admin: HttpClient) -> dict[str, Any]:
    found: dict[str, Any] = admin.get("/openapi.json")
    return found


def operations(described: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (method.upper(), path, operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]


def test_every_endpoint_is_told_once(described: dict[str, Any], kafka) -> None:
    declared = endpoints(kafka)  # nothing is called here
    assert len(operations(described)) == len(declared)
    names = [operation["operationId"] for _, _, operation in operations(described)]
    assert len(set(names)) == len(names)
    assert document(declared)["paths"] == described["paths"]


def test_every_reference_leads_somewhere(described: dict[str, Any]) -> None:
    references = set(re.findall(r"#/components/schemas/([^\"']+)", str(described)))
    assert references
    assert references <= described["components"]["schemas"].keys()


def resolve(schema: dict[str, Any], described: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema:
        schema = described["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def check(value: Any, schema: dict[str, Any], described: dict[str, Any], where: str) -> None:
    """The parts of JSON Schema that the document uses."""
    schema = resolve(schema, described)
    if "anyOf" in schema:
        failures = []
        for option in schema["anyOf"]:
            try:
                check(value, option, described, where)
            except AssertionError as error:
                failures.append(str(error))
            else:
                return
        raise AssertionError(f"{where}: {failures}")
    kinds = {
        "object": dict,
        "array": list,
        "string": str,
        "integer": int,
        "number": int | float,
        "boolean": bool,
        "null": type(None),
    }
    if "type" in schema:
        assert isinstance(value, kinds[schema["type"]]), (where, value, schema)
    if isinstance(value, dict):
        missing = set(schema.get("required", ())) - value.keys()
        assert not missing, (where, missing)
        for name, each in value.items():
            if name in schema.get("properties", {}):
                check(each, schema["properties"][name], described, f"{where}.{name}")
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        for number, each in enumerate(value):
            check(each, schema["items"], described, f"{where}[{number}]")


def test_answers_to_get_are_as_described(described: dict[str, Any], admin: HttpClient) -> None:
    asked = 0
    for method, path, operation in operations(described):
        given = operation["responses"].get("200", {}).get("content", {})
        if method != "GET" or "application/json" not in given:
            continue
        answer = admin.request("GET", path.format(**PARAMETERS))
        content = operation["responses"][str(answer.status)]
        [(media, told)] = content["content"].items()
        assert answer.headers["content-type"] == media, path
        check(answer.body, told["schema"], described, path)
        asked += 1
    assert asked >= 15


@pytest.mark.parametrize("body", [{}, {"nonsense": 1}, {"name": 7}, {"match": []}], ids=str)
def test_whatever_is_posted_ends_in_an_answer_or_a_problem(
    described: dict[str, Any], admin: HttpClient, body: object
) -> None:
    for method, path, operation in operations(described):
        if method != "POST" or path == "/v1/journal/wait":
            continue
        answer = admin.request("POST", path.format(**PARAMETERS), body)
        assert answer.status < 500, (path, answer)
        told = operation["responses"][str(answer.status)].get("content", {})
        if answer.status >= 400:
            check(answer.body, told["application/problem+json"]["schema"], described, path)
            assert answer.body["status"] == answer.status
