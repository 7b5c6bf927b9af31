"""A gate at which tasks wait: while a broker is paused, accepts no connection, or time advances."""

from __future__ import annotations

import trio


class PauseGate:
    """Lets tasks pass while it is open."""

    __slots__ = ("_opened", "shut")

    def __init__(self) -> None:
        self.shut = False
        self._opened = trio.Event()

    def close(self) -> None:
        if not self.shut:
            self.shut = True
            self._opened = trio.Event()

    def open(self) -> None:
        self.shut = False
        self._opened.set()

    async def wait(self) -> None:
        """Return once the gate is open."""
        while self.shut:
            await self._opened.wait()
