"""The service itself: the index, the OpenAPI document, health and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import msgspec

from mockbroker.admin import metrics
from mockbroker.admin.bridge import Bridge
from mockbroker.admin.target import AdminTarget
from mockbroker.admin.v1.endpoint import TAGS, Call, Endpoint, Text
from mockbroker.admin.v1.openapi import document

NAME = "mockbroker"


class Health(msgspec.Struct, frozen=True):
    """The cluster answers. `uptime_ms` is real time."""

    status: str
    brokers: int
    uptime_ms: int


class Link(msgspec.Struct, frozen=True):
    """An endpoint of the API."""

    method: str
    path: str
    summary: str


class Index(msgspec.Struct, frozen=True):
    """The service, and its endpoints by tag."""

    name: str
    version: str
    openapi: str
    endpoints: dict[str, list[Link]]


def probes(target: AdminTarget, bridge: Bridge) -> list[Endpoint]:
    """Health and metrics."""

    async def healthz(call: Call) -> Health:  # noqa: ARG001 - the dispatcher hands it over
        found = await bridge.call(target.metrics)
        return Health("ok", found.brokers, found.uptime_ms)

    async def scrape(call: Call) -> Text:  # noqa: ARG001
        return Text(metrics.render(await bridge.call(target.metrics)), metrics.CONTENT_TYPE)

    return [
        Endpoint("GET", "/healthz", "Health of the cluster", healthz, Health, None),
        Endpoint(
            "GET",
            "/metrics",
            "Metrics in Prometheus' text format",
            scrape,
            None,
            None,
            media=("text/plain",),
        ),
    ]


def descriptions(others: Sequence[Endpoint]) -> list[Endpoint]:
    """The index and the OpenAPI document of themselves and of `others`."""
    described: list[dict[str, Any]] = []

    async def show_index(call: Call) -> Index:  # noqa: ARG001 - the dispatcher hands it over
        return index(declared)

    async def openapi(call: Call) -> dict[str, Any]:  # noqa: ARG001
        if not described:
            described.append(document(declared))
        return described[0]

    own = [
        Endpoint("GET", "/", "Index of the API", show_index, Index, None),
        Endpoint("GET", "/openapi.json", "This OpenAPI document", openapi, dict[str, Any], None),
    ]
    declared = [*own, *others]
    return own


def index(endpoints: Sequence[Endpoint]) -> Index:
    by_tag: dict[str, list[Link]] = {tag: [] for tag in TAGS}
    for each in endpoints:
        method, path = each.key
        by_tag[each.tag].append(Link(method, path, each.summary))
    return Index(NAME, version(NAME), "/openapi.json", by_tag)
