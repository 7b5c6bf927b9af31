"""The Starlette application: one list of routes for each concern. Imported in the admin thread.

`probes` answers what orchestrators and scrapers ask. Steering the cluster gets a list of its own
under `/v1`, so that these two paths never change.
"""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from mockbroker.admin import metrics
from mockbroker.admin.bridge import Bridge, ClusterUnavailableError
from mockbroker.admin.v1.endpoint import json_response, problem_response
from mockbroker.admin.v1.guard import Guard
from mockbroker.admin.v1.problems import Problem
from mockbroker.admin.view import ClusterView


def build_app(view: ClusterView, token: str | None = None) -> Guard:
    """The application of a cluster; without a server behind the view, only its probes.

    With a `token`, everything but the probes asks for it.
    """
    bridge = Bridge(view.token)
    served = probes(view, bridge)
    if view.server is not None:
        from mockbroker.admin.v1.api import Api
        from mockbroker.admin.v1.routes import v1_routes

        served += v1_routes(Api(view.server, bridge))
    app = Starlette(
        routes=served,
        exception_handlers={
            ClusterUnavailableError: _unavailable,
            HTTPException: _http_error,
        },
    )
    return Guard(app, token)


def probes(view: ClusterView, bridge: Bridge) -> list[BaseRoute]:
    async def healthz(request: Request) -> Response:  # noqa: ARG001 - Starlette hands it over
        snapshot = await bridge.call(view.snapshot)
        return json_response(
            {"status": "ok", "brokers": snapshot.brokers, "uptime_ms": snapshot.uptime_ms}
        )

    async def scrape(request: Request) -> Response:  # noqa: ARG001
        text = metrics.render(await bridge.call(view.snapshot))
        return Response(text, headers={"content-type": metrics.CONTENT_TYPE})

    return [Route("/healthz", healthz), Route("/metrics", scrape)]


async def _unavailable(request: Request, error: Exception) -> Response:  # noqa: ARG001
    return json_response({"status": "unavailable", "error": str(error)}, 503)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = f"{request.method} {request.url.path}: {error.detail}"
    response = problem_response(Problem(error.detail.lower(), error.status_code, detail))
    response.headers.update(error.headers or {})
    return response
