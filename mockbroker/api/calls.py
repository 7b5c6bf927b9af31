"""Calls of endpoints in the cluster's own run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mockbroker.admin.v1.backend import OwnRunBackend
from mockbroker.admin.v1.endpoint import EndpointCall, Nothing, Stream, Text
from mockbroker.admin.v1.endpoints import BY_KEY
from mockbroker.admin.v1.problems import ProblemError
from mockbroker.api.problems import error_of
from mockbroker.api.transport import Request
from mockbroker.core.validation import convert

if TYPE_CHECKING:
    from mockbroker.server.cluster_server import ClusterServer


class Calls:
    """The endpoints of one cluster."""

    def __init__(self, server: ClusterServer) -> None:
        self._backend = OwnRunBackend(server)

    async def answer(self, request: Request) -> Any:
        """The endpoint's answer; the content of a text or a stream."""
        endpoint = BY_KEY[request.method, request.path]
        query = convert(dict(request.query), endpoint.query or Nothing, "")
        body: Any = request.body
        if endpoint.body not in (None, dict, object):
            body = convert({} if body is None else body, endpoint.body, "")
        try:
            answer = await endpoint.call(self._backend, EndpointCall(request.at, query, body))
        except ProblemError as error:
            raise error_of(error.problem) from None
        if isinstance(answer, Text):
            return answer.text
        if isinstance(answer, Stream):
            return b"".join([piece async for piece in answer.pieces])
        return answer
