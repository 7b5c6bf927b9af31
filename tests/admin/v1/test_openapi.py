"""The OpenAPI document has every endpoint, and the endpoints answer by it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from mockbroker import Cluster
from mockbroker.admin.v1.endpoint import TAGS
from mockbroker.admin.v1.openapi import document
from mockbroker.admin.v1.routes import ALL_ENDPOINTS, all_routes
from mockbroker.admin.v1.service import Probed
from tests.support.http import HttpClient

PARAMETERS = {
    "seq": 1,
    "topic": "orders",
    "partition": "0",
    "group": "billing",
    "name": "nobody",
    "id": "1",
}


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


def test_every_endpoint_is_told_once(described: dict[str, Any]) -> None:
    assert len(operations(described)) == len(ALL_ENDPOINTS)
    names = [operation["operationId"] for _, _, operation in operations(described)]
    assert len(set(names)) == len(names)
    assert document(ALL_ENDPOINTS)["paths"] == described["paths"]


def test_every_route_of_the_server_is_in_the_document(described: dict[str, Any], kafka) -> None:
    routes = {
        (method, re.sub(r":\w+\}", "}", route.path))
        for route in all_routes(Probed(kafka, kafka, {}), kafka)
        for method in route.methods or ()
        if method != "HEAD"
    }
    assert {("GET", "/"), ("GET", "/healthz"), ("GET", "/metrics")} <= routes
    assert routes == {(method, path) for method, path, _ in operations(described)}


def test_every_answer_has_a_schema_and_every_operation_a_tag(described: dict[str, Any]) -> None:
    """An answer of an operation is 204 and empty, or has a schema that says something."""
    tags = {each["name"] for each in described["tags"]}
    assert tags == TAGS.keys()
    used = set()
    for method, path, operation in operations(described):
        used |= set(operation["tags"])
        for status, answer in operation["responses"].items():
            where = (method, path, status)
            assert (status == "204") == ("content" not in answer), where
            for media, content in answer.get("content", {}).items():
                schema = resolve(content["schema"], described)
                assert {"type", "anyOf"} & schema.keys(), (where, media)
    assert used == tags


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


def leave(kafka: Cluster, how: str) -> None:
    """Stop, pause or remove every broker."""
    for broker in kafka.brokers():
        node = kafka.broker(broker.node_id)
        {"stopped": node.stop, "paused": node.pause, "removed": node.remove}[how]()


@pytest.fixture(params=["running", "stopped", "paused", "removed"])
def anyhow(request: pytest.FixtureRequest) -> Iterator[HttpClient]:
    """The admin API of a cluster with a topic and a group. Its brokers run, or none does."""
    with Cluster(brokers=2, topics={"orders": 2}) as kafka:
        kafka.group("billing").set_offsets({("orders", 0): 1})
        if request.param != "running":
            leave(kafka, request.param)
        yield HttpClient(kafka.admin_url)


def test_answers_to_get_are_as_described(described: dict[str, Any], anyhow: HttpClient) -> None:
    asked = 0
    for method, path, operation in operations(described):
        given = operation["responses"].get("200", {}).get("content", {})
        if method != "GET" or "application/json" not in given:
            continue
        answer = anyhow.request("GET", path.format(**PARAMETERS))
        content = operation["responses"][str(answer.status)]
        media = answer.headers["content-type"]
        check(answer.body, content["content"][media]["schema"], described, path)
        asked += 1
    assert asked >= 15


@pytest.mark.parametrize("body", [{}, {"nonsense": 1}, {"name": 7}, {"match": []}], ids=str)
def test_whatever_is_posted_ends_in_an_answer_or_a_problem(
    described: dict[str, Any], anyhow: HttpClient, body: dict[str, Any]
) -> None:
    for method, path, operation in operations(described):
        if method != "POST" or path == "/v1/journal/wait":
            continue
        if path == "/v1/topics/{topic}/records" and body == {}:
            continue  # a record without a key and a value
        given = body | {"timeout_ms": 10} if path.endswith("/wait") else body
        answer = anyhow.request("POST", path.format(**PARAMETERS), given)
        assert answer.status < 500, (path, answer)
        told = operation["responses"][str(answer.status)].get("content", {})
        if answer.status >= 400:
            check(answer.body, told["application/problem+json"]["schema"], described, path)
            assert answer.body["status"] == answer.status
