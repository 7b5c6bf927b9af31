"""The Starlette application: the index, probes, and the admin API under `/v1`."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from mockbroker.admin.bridge import Bridge
from mockbroker.admin.target import AdminTarget
from mockbroker.admin.v1.access import AccessControl
from mockbroker.admin.v1.api import BridgedApi
from mockbroker.admin.v1.dispatch import problem_response
from mockbroker.admin.v1.problems import Problem
from mockbroker.admin.v1.routes import all_routes, probe_routes


def build_app(target: AdminTarget, token: str | None = None) -> AccessControl:
    """The application of a cluster; without a server behind the target, only its probes.

    With a `token`, all requests but those of probes require it.
    """
    bridge = Bridge(target.token)
    if target.server is None:
        routes = probe_routes(target, bridge)
    else:
        routes = all_routes(target, bridge, BridgedApi(target.server, bridge))
    app = Starlette(routes=routes, exception_handlers={HTTPException: _http_error})
    return AccessControl(app, token)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = f"{request.method} {request.url.path}: {error.detail}"
    response = problem_response(Problem(error.detail.lower(), error.status_code, detail))
    response.headers.update(error.headers or {})
    return response
