"""The clock of a cluster."""

from __future__ import annotations

from mockbroker.admin.v1.clock import ADVANCE_TIMEOUT_S, ClockView
from mockbroker.api.aio.handle import AsyncHandle
from mockbroker.core.views.timers import TimerView

CLOCK = "/v1/clock"


class AsyncClock(AsyncHandle):
    """The clock of a cluster. Real clients have clocks of their own."""

    @property
    async def now_ms(self) -> int:
        """The cluster's time, in ms since the epoch."""
        return int((await self._ask("GET", CLOCK)).now_ms)

    @property
    async def rate(self) -> float | None:
        """Seconds of the cluster for each second of real time; 0 when frozen, None if the clock of
        the trio run cannot be adjusted.
        """
        found: ClockView = await self._ask("GET", CLOCK)
        return found.rate

    async def timers(self, limit: int = 50) -> list[TimerView]:
        """The timers that are due next, the earliest first."""
        query = {"limit": limit}
        found: list[TimerView] = await self._ask("GET", "/v1/timers", query=query)
        return found

    async def advance(
        self, duration: int | str, *, only: str | None = None, extend_sessions: bool = True
    ) -> None:
        """Advance by `duration` (ms, or text such as `45s`) and run all due timers, in order.

        With `only`, the time passes for one part of the cluster: `"retention"` (records grow
        older), `"compaction"` (the same for the cleaner), `"groups"` or `"group:ID"` (sessions,
        rebalances, the retention of offsets), `"locks"` (acquisition locks of share groups), or
        `"transactions"` (timeouts, expiry of ids).

        The sessions of connected group members are extended, as if the members had sent their
        heartbeats; with `extend_sessions=False` they expire. What clients send meanwhile is served
        after the advance. Returns once the cluster is at rest. Raises ValidationError for a
        negative duration, an unknown part or group.
        """
        body: dict[str, object] = {"advance_ms": duration, "extend_sessions": extend_sessions}
        if only is not None:
            body["only"] = only
        await self._ask("POST", CLOCK, body=body, wait_s=ADVANCE_TIMEOUT_S)

    async def set_rate(self, rate: float) -> None:
        """Run at `rate` seconds for each second of real time; 0 freezes. Raises ValidationError."""
        await self._ask("POST", CLOCK, body={"rate": rate})

    async def freeze(self) -> None:
        """Freeze the clock; only `advance` moves it."""
        await self._ask("POST", CLOCK, body={"freeze": True})

    async def thaw(self) -> None:
        """Follow real time again, from the present time of the clock."""
        await self._ask("POST", CLOCK, body={"freeze": False})
