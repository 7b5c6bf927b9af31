"""The routes of `/v1`, and their OpenAPI document."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from mockbroker.admin.v1.api import Api
from mockbroker.admin.v1.dispatch import json_response
from mockbroker.admin.v1.dispatch import routes as routes_of
from mockbroker.admin.v1.endpoints import endpoints
from mockbroker.admin.v1.openapi import document


def v1_routes(api: Api) -> list[BaseRoute]:
    """The routes of the admin API."""
    declared = endpoints(api)
    described: list[Response] = []

    async def openapi(request: Request) -> Response:  # noqa: ARG001
        if not described:
            described.append(json_response(document(declared)))
        return described[0]

    return [Route("/openapi.json", openapi), *routes_of(declared)]
