"""The handler and the codecs of a request, by API key and version."""

from __future__ import annotations

from mockbroker.handlers.base import APIS, Api
from mockbroker_protocol import ApiKey
from mockbroker_protocol.codec import Codec, request_codec, response_codec

API_VERSIONS = int(ApiKey.API_VERSIONS)


class Route:
    """Handler, request codec and response codec of one API version."""

    __slots__ = ("api", "flexible_response_header", "request", "response")

    def __init__(self, api: Api, version: int) -> None:
        self.api = api
        self.request: Codec = request_codec(api.key, version)
        self.response: Codec = response_codec(api.key, version)
        # The header of ApiVersions is always v0, which any client can read (KIP-511).
        self.flexible_response_header = self.response.flexible and api.key != API_VERSIONS


_ROUTES: dict[tuple[int, int], Route] = {}
"""By API key and version, for all clusters of this process."""


def route_of(version: tuple[int, int]) -> Route | None:
    """The route of an (API key, version); None without a handler."""
    route = _ROUTES.get(version)
    if route is None:
        api_key, api_version = version
        api = APIS.get(api_key)
        if api is None or not api.min_version <= api_version <= api.max_version:
            return None
        route = _ROUTES[version] = Route(api, api_version)
    return route
