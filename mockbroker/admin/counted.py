"""How the admin server has answered, by status: refusals are seen in `/metrics`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
App = Callable[[Scope, Any, Any], Awaitable[None]]


class CountedResponses:
    """ASGI middleware around `app`, which adds each response that begins to `by_status`."""

    def __init__(self, app: App, by_status: Counter[int]) -> None:
        self._app = app
        self._by_status = by_status

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        async def counted(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                self._by_status[message["status"]] += 1
            await send(message)

        await self._app(scope, receive, counted)
