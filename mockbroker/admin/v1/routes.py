"""The routes of the admin server, all of which the OpenAPI document has."""

from __future__ import annotations

from starlette.routing import Route

from mockbroker.admin.bridge import Bridge
from mockbroker.admin.target import AdminTarget
from mockbroker.admin.v1.api import Api
from mockbroker.admin.v1.dispatch import routes as routes_of
from mockbroker.admin.v1.endpoint import Endpoint
from mockbroker.admin.v1.endpoints import endpoints
from mockbroker.admin.v1.service import descriptions, probes


def all_endpoints(target: AdminTarget, bridge: Bridge, api: Api) -> list[Endpoint]:
    """Every endpoint, in the order of the document."""
    found = [*endpoints(api), *probes(target, bridge)]
    return [*found, *descriptions(found)]


def saved_routes(api: Api) -> list[Route]:
    """The routes of a saved journal. Those of the cluster refuse each request."""
    found = endpoints(api)
    return routes_of([*found, *descriptions(found)])


def probe_routes(target: AdminTarget, bridge: Bridge) -> list[Route]:
    """The routes without a server behind the target."""
    return routes_of(probes(target, bridge))


def all_routes(target: AdminTarget, bridge: Bridge, api: Api) -> list[Route]:
    """The routes of the admin server."""
    return routes_of(all_endpoints(target, bridge, api))
