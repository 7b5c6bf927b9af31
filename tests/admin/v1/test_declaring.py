"""Endpoints are declared by their functions."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable
from typing import Any, cast

import msgspec
import pytest
import trio

from mockbroker.admin.v1.backend import AdminBackend, OwnRunBackend
from mockbroker.admin.v1.declaring import ApiEndpoints
from mockbroker.admin.v1.endpoint import JSON, Endpoint, EndpointCall, Nothing, Stream, Text
from mockbroker.admin.v1.endpoints import ENDPOINTS

VIEWS = [each for each in ENDPOINTS if not inspect.iscoroutinefunction(each.declared)]
CALL = EndpointCall({}, Nothing(), None)


class Row(msgspec.Struct):
    """An answer."""

    topic: str
    limit: int


class RowQuery(msgspec.Struct):
    limit: int = 3


class Recorder:
    """An API that writes down what it is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def cluster(self, function: Callable[[Any], object]) -> object:
        self.asked.append("cluster")
        return function("the cluster")

    async def durable(self) -> None:
        self.asked.append("durable")


def called(
    endpoint: Endpoint[AdminBackend], recorder: Recorder, call: EndpointCall = CALL
) -> object:
    async def run() -> object:
        return await endpoint.call(cast("AdminBackend", recorder), call)

    return trio.run(run)


@pytest.mark.parametrize("endpoint", VIEWS, ids=lambda each: each.path)
def test_a_view_takes_what_the_path_and_the_query_name(endpoint: Endpoint[AdminBackend]) -> None:
    _, *parameters = inspect.signature(endpoint.declared).parameters
    in_path = re.findall(r"\{(\w+)", endpoint.path)
    assert endpoint.query is not None
    assert parameters == [*in_path, *endpoint.query.__struct_fields__]


def test_each_module_declares_its_endpoints_in_order() -> None:
    endpoints = ApiEndpoints()

    @endpoints.view("/v1/topics/{topic}", "A row", query=RowQuery)
    def row(cluster: str, topic: str, limit: int) -> Row:
        assert cluster == "the cluster"
        return Row(topic, limit)

    endpoints.show("/v1/topics/again/{topic}", "The same", row, query=RowQuery)
    assert [each.summary for each in endpoints] == ["A row", "The same"]
    assert ApiEndpoints() == []
    for each in endpoints:
        recorder = Recorder()
        found = called(each, recorder, EndpointCall({"topic": "orders"}, RowQuery(5), None))
        assert (found, recorder.asked) == (Row("orders", 5), ["cluster"])
        assert (each.method, each.answer, each.status) == ("GET", Row, 200)


@pytest.mark.parametrize("method", ["post", "patch", "delete"])
def test_a_change_is_answered_when_it_is_durable(method: str) -> None:
    endpoints = ApiEndpoints()
    recorder = Recorder()

    async def change(_: AdminBackend, _call: EndpointCall) -> Row:
        recorder.asked.append("change")
        return Row("orders", 1)

    getattr(endpoints, method)("/v1/topics", "Change it")(change)
    [endpoint] = endpoints
    assert endpoint.method == method.upper()
    assert called(endpoint, recorder) == Row("orders", 1)
    assert recorder.asked == ["change", "durable"]


def test_a_change_that_is_refused_waits_for_no_disk() -> None:
    endpoints = ApiEndpoints()

    @endpoints.post("/v1/topics", "Change it")
    async def change(_: AdminBackend, _call: EndpointCall) -> None:
        raise ValueError("refused")

    recorder = Recorder()
    with pytest.raises(ValueError, match="refused"):
        called(endpoints[0], recorder)
    assert recorder.asked == []


async def nothing(_: AdminBackend, _call: EndpointCall) -> None: ...
async def text(_: AdminBackend, _call: EndpointCall) -> Text: ...
async def rows(_: AdminBackend, _call: EndpointCall) -> list[Row]: ...
async def either(_: AdminBackend, _call: EndpointCall) -> list[Row] | Row: ...
async def row_stream(_: AdminBackend, _call: EndpointCall) -> Stream[Row]: ...
async def byte_stream(_: AdminBackend, _call: EndpointCall) -> Stream[bytes]: ...


@pytest.mark.parametrize(
    ("function", "media", "answer", "status"),
    [
        (nothing, JSON, None, 204),
        (text, "text/plain", None, 200),
        (rows, JSON, list[Row], 200),
        (either, JSON, list[Row] | Row, 200),
        (row_stream, "text/event-stream", Row, 200),
        (byte_stream, "application/octet-stream", None, 200),
    ],
    ids=lambda each: getattr(each, "__name__", None),
)
def test_the_annotation_is_the_type_of_the_answer(
    function: Callable[[AdminBackend, EndpointCall], Awaitable[object]],
    media: str,
    answer: object,
    status: int,
) -> None:
    endpoints = ApiEndpoints()
    endpoints.get("/v1/topics", "Rows", media=(media,))(function)
    [endpoint] = endpoints
    assert (endpoint.answer, endpoint.status) == (answer, status)


def test_what_endpoints_share_is_made_once_for_each_cluster() -> None:
    one, other = (OwnRunBackend(cast("Any", None)) for _ in range(2))

    def made(_: AdminBackend) -> list[str]:
        return []

    assert one.kept(made) is one.kept(made)
    assert one.kept(made) is not other.kept(made)
