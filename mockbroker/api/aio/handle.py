"""The base of all handles: requests to their cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from mockbroker.api.transport import AsyncTransport, Request


class AsyncHandle:
    """A handle on a part of a cluster."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def _ask(
        self,
        method: str,
        path: str,
        *,
        at: Mapping[str, object] | None = None,
        query: Mapping[str, object] | None = None,
        body: Mapping[str, object] | None = None,
        wait_s: float = 0.0,
    ) -> Any:
        request = Request(method, path, at or {}, query or {}, body, wait_s)
        return await self._transport.request(request)

    async def _act(self, action: str, arguments: Mapping[str, object], result: Any = None) -> Any:
        """Carry out an action with the arguments that are not None; returns its result as this
        type.
        """
        given = {name: value for name, value in arguments.items() if value is not None}
        done = await self._ask("POST", "/v1/actions", body={action: given}, wait_s=ACTION_WAIT_S)
        return None if result is None else msgspec.convert(done.result, result)


# A compaction may be long; in real time.
ACTION_WAIT_S = 300.0
