"""The memory of requests that are being read: `queued.max.request.bytes`, as SimpleMemoryPool.

A request takes its whole size before its bytes are read, and gives it back once it is handled. The
last one may take more than is left, so that a request larger than the pool is served too. Others
wait, in their order. Requests that fit into the buffer that each connection has take nothing.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from mockbroker.server.network.stats import Stats

REQUEST_MEMORY = "queued.max.request.bytes"


class RequestMemory:
    """The pool of one broker."""

    def __init__(self, size: int, stats: Stats) -> None:
        self.available = size
        self._stats = stats
        self._waiting: deque[tuple[trio.Event, int]] = deque()

    async def take(self, size: int) -> None:
        """Take `size` bytes, once there are any."""
        if self.available > 0 and not self._waiting:
            self.available -= size
            return
        self._stats.exceeded(REQUEST_MEMORY)
        turn = (trio.Event(), size)
        self._waiting.append(turn)
        try:
            await turn[0].wait()
        except trio.Cancelled:
            if turn[0].is_set():
                self.give(size)
            else:
                self._waiting.remove(turn)
            raise

    def give(self, size: int) -> None:
        """Give back the memory, to the requests that wait."""
        self.available += size
        while self.available > 0 and self._waiting:
            event, wanted = self._waiting.popleft()
            self.available -= wanted
            event.set()
