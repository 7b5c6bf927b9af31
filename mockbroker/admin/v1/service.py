"""The service itself: the index, the OpenAPI document, health and metrics."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.metadata import version
from typing import Any

import msgspec

from mockbroker.admin import metrics
from mockbroker.admin.bridge import Bridge
from mockbroker.admin.target import AdminTarget
from mockbroker.admin.v1.endpoint import JSON, TAGS, Call, Endpoint, Text
from mockbroker.admin.v1.openapi import document

HTML = "text/html"
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

    async def show_index(call: Call) -> Index | Text:
        found = index(declared)
        return Text(page(found), HTML) if prefers_html(call.accept) else found

    async def openapi(call: Call) -> dict[str, Any]:  # noqa: ARG001
        if not described:
            described.append(document(declared))
        return described[0]

    own = [
        Endpoint("GET", "/", "Index of the API", show_index, Index, None, media=(JSON, HTML)),
        Endpoint("GET", "/openapi.json", "This OpenAPI document", openapi, dict[str, Any], None),
    ]
    declared = [*own, *others]
    return own


def prefers_html(accept: str) -> bool:
    """Whether an Accept header names HTML, and not JSON before it. Browsers do, programs do not."""
    named = [each.partition(";")[0].strip().lower() for each in accept.split(",")]
    return next((each == HTML for each in named if each in (HTML, JSON)), False)


def index(endpoints: Sequence[Endpoint]) -> Index:
    by_tag: dict[str, list[Link]] = {tag: [] for tag in TAGS}
    for each in endpoints:
        method, path = each.key
        by_tag[each.tag].append(Link(method, path, each.summary))
    return Index(NAME, version(NAME), "/openapi.json", by_tag)


_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>mockbroker</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem;
  padding: 0 1rem; color: #222; background: #fff }}
td {{ padding: .1rem 1rem .1rem 0; vertical-align: top }}
code {{ font-size: .9em }}
@media (prefers-color-scheme: dark) {{
  body {{ color: #ddd; background: #1a1a1a }} a {{ color: #8bf }}
}}
</style>
<h1>mockbroker {version}</h1>
<p>The admin API of a Kafka cluster for tests. Programs get this page as JSON.
<a href="/openapi.json">OpenAPI document</a></p>
{sections}</html>
"""


def page(found: Index) -> str:
    """The index for people."""
    sections = []
    for tag, links in found.endpoints.items():
        rows = "".join(
            f"<tr><td><code>{each.method}</code></td><td>{_path(each)}</td>"
            f"<td>{escape(each.summary)}</td></tr>\n"
            for each in links
        )
        sections.append(f"<h2>{escape(TAGS[tag][0])}</h2>\n<table>\n{rows}</table>\n")
    return _PAGE.format(version=escape(found.version), sections="".join(sections))


def _path(link: Link) -> str:
    text = f"<code>{escape(link.path)}</code>"
    follows = link.method == "GET" and "{" not in link.path and not link.path.endswith("/stream")
    return f'<a href="{escape(link.path)}">{text}</a>' if follows else text
