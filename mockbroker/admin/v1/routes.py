"""The routes of the admin server, all of which the OpenAPI document has."""

from __future__ import annotations

from typing import Any

from starlette.routing import Route

from mockbroker.admin.v1.backend import AdminBackend
from mockbroker.admin.v1.dispatch import routes
from mockbroker.admin.v1.endpoint import Endpoint
from mockbroker.admin.v1.endpoints import ENDPOINTS
from mockbroker.admin.v1.service import Described, Probed, descriptions, probes

# In the order of the document.
ALL_ENDPOINTS: tuple[Endpoint[Any], ...] = (*ENDPOINTS, *probes, *descriptions)


def api_routes(backend: AdminBackend) -> list[Route]:
    """The routes of the API itself, without probes and descriptions."""
    return routes(ENDPOINTS, backend, backend)


def saved_routes(backend: AdminBackend) -> list[Route]:
    """The routes of a saved journal. Those of the cluster refuse each request."""
    described = Described([*descriptions, *ENDPOINTS])
    return [*api_routes(backend), *routes(descriptions, described, None)]


def probe_routes(probed: Probed) -> list[Route]:
    """The routes without a server behind the target."""
    return routes(probes, probed, None)


def all_routes(probed: Probed, backend: AdminBackend) -> list[Route]:
    """The routes of the admin server."""
    described = Described([*descriptions, *ENDPOINTS, *probes])
    return [
        *api_routes(backend),
        *probe_routes(probed),
        *routes(descriptions, described, None),
    ]
