"""Declarations of endpoints of a cluster: views of it, and changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, Unpack

import msgspec

from mockbroker.admin.v1.backend import AdminBackend
from mockbroker.admin.v1.endpoint import Endpoint, EndpointCall, Endpoints, Options

T = TypeVar("T")
View = TypeVar("View", bound=Callable[..., object])
Handler = Callable[[AdminBackend, EndpointCall], Awaitable[T]]


class ApiEndpoints(Endpoints[AdminBackend]):
    """The endpoints of a module, in the order of their declarations.

    The answer to a change waits for the data directory, as a broker's response does.
    """

    def show(
        self, path: str, summary: str, view: Callable[..., object], **options: Unpack[Options]
    ) -> None:
        """An endpoint that shows `view(cluster)`. The view has a parameter for each of the path and
        each field of the query, by its name.
        """

        async def look(backend: AdminBackend, call: EndpointCall) -> object:
            given: dict[str, Any] = {**call.path, **msgspec.structs.asdict(call.query)}
            return await backend.cluster(lambda cluster: view(cluster, **given))

        self.append(Endpoint("GET", path, summary, look, view, **options))

    def view(self, path: str, summary: str, **options: Unpack[Options]) -> Callable[[View], View]:
        """As `show`, of a view that is written here."""

        def declare(function: View) -> View:
            self.show(path, summary, function, **options)
            return function

        return declare

    def post(
        self, path: str, summary: str, **options: Unpack[Options]
    ) -> Callable[[Handler[T]], Handler[T]]:
        return self._change("POST", path, summary, options)

    def patch(
        self, path: str, summary: str, **options: Unpack[Options]
    ) -> Callable[[Handler[T]], Handler[T]]:
        return self._change("PATCH", path, summary, options)

    def delete(
        self, path: str, summary: str, **options: Unpack[Options]
    ) -> Callable[[Handler[T]], Handler[T]]:
        return self._change("DELETE", path, summary, options)

    def _change(
        self, method: str, path: str, summary: str, options: Options
    ) -> Callable[[Handler[T]], Handler[T]]:
        def declare(function: Handler[T]) -> Handler[T]:
            async def change(backend: AdminBackend, call: EndpointCall) -> object:
                answer = await function(backend, call)
                await backend.durable()
                return answer

            self.append(Endpoint(method, path, summary, change, function, **options))
            return function

        return declare
