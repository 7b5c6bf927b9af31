"""The Starlette application: probes, and the admin API under `/v1`."""

from __future__ import annotations

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from mockbroker.admin import metrics
from mockbroker.admin.bridge import Bridge, ClusterUnavailableError
from mockbroker.admin.target import AdminTarget
from mockbroker.admin.v1.access import AccessControl
from mockbroker.admin.v1.dispatch import json_response, problem_response
from mockbroker.admin.v1.problems import Problem


def build_app(target: AdminTarget, token: str | None = None) -> AccessControl:
    """The application of a cluster; without a server behind the target, only its probes.

    With a `token`, all requests but those of probes need it.
    """
    bridge = Bridge(target.token)
    served = probes(target, bridge)
    if target.server is not None:
        from mockbroker.admin.v1.api import BridgedApi
        from mockbroker.admin.v1.routes import v1_routes

        served += v1_routes(BridgedApi(target.server, bridge))
    app = Starlette(
        routes=served,
        exception_handlers={
            ClusterUnavailableError: _unavailable,
            HTTPException: _http_error,
        },
    )
    return AccessControl(app, token)


def probes(target: AdminTarget, bridge: Bridge) -> list[BaseRoute]:
    async def healthz(request: Request) -> Response:  # noqa: ARG001 - Starlette hands it over
        found = await bridge.call(target.metrics)
        return json_response(
            {"status": "ok", "brokers": found.brokers, "uptime_ms": found.uptime_ms}
        )

    async def scrape(request: Request) -> Response:  # noqa: ARG001
        text = metrics.render(await bridge.call(target.metrics))
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
