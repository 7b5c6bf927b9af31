"""The Starlette application: the console, probes, and the admin API under `/v1`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mockbroker.admin.bridge import Bridge
from mockbroker.admin.console.pages import ConsolePages, is_page
from mockbroker.admin.counted import CountedResponses
from mockbroker.admin.target import AdminTarget
from mockbroker.admin.v1.access import AccessControl
from mockbroker.admin.v1.backend import BridgedBackend, SavedBackend
from mockbroker.admin.v1.dispatch import problem_response
from mockbroker.admin.v1.endpoint import OPEN_PATHS
from mockbroker.admin.v1.problems import Problem
from mockbroker.admin.v1.routes import all_routes, probe_routes, saved_routes
from mockbroker.admin.v1.service import Probed
from mockbroker.pipeline.saved import SavedJournal


def build_app(target: AdminTarget, token: str | None = None) -> CountedResponses:
    """The application of a cluster; without a server behind the target, only its probes.

    With a `token`, all requests but those of probes and of the console's files require it.
    """
    responses: Counter[int] = Counter()
    probed = Probed(target, Bridge(target.token), responses)
    if target.server is None:
        app = AccessControl(_app(probe_routes(probed)), token, _is_probe)
    else:
        backend = BridgedBackend(target.server, probed.bridge)
        app = AccessControl(
            ConsolePages(_app(all_routes(probed, backend))),
            token,
            lambda scope: _is_probe(scope) or is_page(scope),
        )
    return CountedResponses(app, responses)


def build_saved_app(journal: SavedJournal) -> AccessControl:
    """The application of a saved journal: the console and what needs no cluster."""
    return AccessControl(ConsolePages(_app(saved_routes(SavedBackend(journal)))), None, is_page)


def _app(routes: list[Route]) -> Starlette:
    return Starlette(routes=routes, exception_handlers={HTTPException: _http_error})


def _is_probe(scope: Mapping[str, Any]) -> bool:
    return scope["path"] in OPEN_PATHS


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = f"{request.method} {request.url.path}: {error.detail}"
    response = problem_response(Problem(error.detail.lower(), error.status_code, detail))
    response.headers.update(error.headers or {})
    return response
