"""The service itself: the index, the OpenAPI document, health and metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from importlib.metadata import version
from typing import Any, NamedTuple

import msgspec

from mockbroker.admin import metrics
from mockbroker.admin.bridge import Bridge
from mockbroker.admin.target import AdminTarget
from mockbroker.admin.v1.endpoint import TAGS, Endpoint, EndpointCall, Endpoints, Text
from mockbroker.admin.v1.openapi import document

NAME = "mockbroker"


class Health(msgspec.Struct, frozen=True):
    """The cluster answers. `uptime_ms` is real time."""

    status: str
    brokers: int
    uptime_ms: int


class EndpointSummary(msgspec.Struct, frozen=True):
    """An endpoint of the API."""

    method: str
    path: str
    summary: str


class Index(msgspec.Struct, frozen=True):
    """The service, and its endpoints by tag."""

    name: str
    version: str
    openapi: str
    endpoints: dict[str, list[EndpointSummary]]


# The real time without an answer after which a cluster is unhealthy.
PROBE_TIMEOUT_S = 2.0


class Probed(NamedTuple):
    """The target of probes, the way to it, and the admin server's responses by status."""

    target: AdminTarget
    bridge: Bridge
    responses: Mapping[int, int]


class Described:
    """The endpoints that the index and the document have."""

    def __init__(self, endpoints: Sequence[Endpoint[Any]]) -> None:
        self.endpoints = endpoints

    @cached_property
    def document(self) -> dict[str, Any]:
        """The OpenAPI document, made when it is first asked for."""
        return document(self.endpoints)


probes = Endpoints[Probed]()
descriptions = Endpoints[Described]()


@probes.get("/healthz", "Health of the cluster", query=None)
async def healthz(probed: Probed, _: EndpointCall) -> Health:
    found = await probed.bridge.call(probed.target.metrics, PROBE_TIMEOUT_S)
    return Health("ok", found.brokers, found.uptime_ms)


@probes.get("/metrics", "Metrics in Prometheus' text format", query=None, media=("text/plain",))
async def scrape(probed: Probed, _: EndpointCall) -> Text:
    found = replace(
        await probed.bridge.call(probed.target.metrics, PROBE_TIMEOUT_S),
        admin_responses={str(status): count for status, count in probed.responses.items()},
    )
    return Text(metrics.render(found), metrics.CONTENT_TYPE)


@descriptions.get("/", "Index of the API", query=None)
async def show_index(described: Described, _: EndpointCall) -> Index:
    return index(described.endpoints)


@descriptions.get("/openapi.json", "This OpenAPI document", query=None)
async def openapi(described: Described, _: EndpointCall) -> dict[str, Any]:
    return described.document


def index(endpoints: Sequence[Endpoint[Any]]) -> Index:
    by_tag: dict[str, list[EndpointSummary]] = {tag: [] for tag in TAGS}
    for each in endpoints:
        method, path = each.key
        by_tag[each.tag].append(EndpointSummary(method, path, each.summary))
    return Index(NAME, version(NAME), "/openapi.json", by_tag)
