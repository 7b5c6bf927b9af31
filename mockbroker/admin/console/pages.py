"""Serves the console: the page at `/` for browsers, and its assets below `/console/`.

The assets are no secret, so they need no token: the page asks for it and sends it with each request
of `/v1`. The Content-Security-Policy allows only this server's own scripts and styles, so markup in
a topic's name or in a record is never executed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from pathlib import Path
from typing import Any, NamedTuple

from starlette.responses import Response

from mockbroker.admin.v1.dispatch import problem_response
from mockbroker.admin.v1.problems import Problem

Scope = MutableMapping[str, Any]
App = Callable[[Scope, Any, Any], Awaitable[None]]

HTML = "text/html"
JSON = "application/json"
ASSETS = Path(__file__).parent / "assets"
INDEX = "index.html"
PREFIX = "/console/"

MEDIA: Mapping[str, str] = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": JSON,
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}

POLICY: Mapping[str, str] = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "connect-src": "'self'",
    "font-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
}

HEADERS: Mapping[str, str] = {
    "content-security-policy": "; ".join(f"{name} {value}" for name, value in POLICY.items()),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # A browser keeps the assets and asks whether they are still the same.
    "cache-control": "no-cache",
}


class Asset(NamedTuple):
    """The bytes of a file, its media type and its entity tag."""

    data: bytes
    media: str
    tag: str


def is_page(scope: Mapping[str, Any]) -> bool:
    """Whether the request is for the console, which needs no token."""
    return _asset_name(scope) is not None


def prefers_html(accept: str) -> bool:
    """Whether an Accept header names HTML, and not JSON before it. Browsers do, programs do not."""
    named = [each.partition(";")[0].strip().lower() for each in accept.split(",")]
    return next((each == HTML for each in named if each in (HTML, JSON)), False)


def _asset_name(scope: Mapping[str, Any]) -> str | None:
    """The asset that a request names; None if the request is for the API."""
    path: str = scope["path"]
    if path.startswith(PREFIX):
        return path.removeprefix(PREFIX)
    if path == "/" and scope["method"] in ("GET", "HEAD"):
        accept = dict(scope["headers"]).get(b"accept", b"")
        return INDEX if prefers_html(accept.decode("latin-1")) else None
    return None


class ConsolePages:
    """ASGI middleware that answers requests for the console."""

    def __init__(self, app: App, directory: Path = ASSETS) -> None:
        self._app = app
        # A name is looked up among these, so that no name leads to another file.
        self._paths = {
            path.relative_to(directory).as_posix(): path
            for path in directory.rglob("*")
            if path.is_file()
        }

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        name = _asset_name(scope) if scope["type"] == "http" else None
        if name is None:
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        response = self._response(scope["method"], name, headers.get(b"if-none-match", b""))
        response.headers.update(HEADERS)
        if name == INDEX:
            response.headers["vary"] = "accept"
        await response(scope, receive, send)

    def _response(self, method: str, name: str, known: bytes) -> Response:
        path = self._paths.get(name)
        if path is None or not path.exists():
            return problem_response(Problem("not found", 404, f"the console has no {name!r}"))
        if method not in ("GET", "HEAD"):
            problem = Problem("method not allowed", 405, f"an asset cannot be changed by {method}")
            response = problem_response(problem)
            response.headers["allow"] = "GET, HEAD"
            return response
        asset = _read(path)
        tags = [each.strip().removeprefix("W/") for each in known.decode("latin-1").split(",")]
        if asset.tag in tags:
            return Response(status_code=304, headers={"etag": asset.tag})
        response = Response(asset.data, headers={"content-type": asset.media, "etag": asset.tag})
        if method == "HEAD":
            response.body = b""
        return response


def _read(path: Path) -> Asset:
    data = path.read_bytes()
    tag = '"' + hashlib.sha256(data).hexdigest()[:32] + '"'
    return Asset(data, MEDIA[path.suffix], tag)
