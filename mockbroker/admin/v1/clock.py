"""The cluster's clock: show it, freeze it, change its rate, advance it. The timers that are due."""

from __future__ import annotations

from typing import Annotated

import msgspec

from mockbroker.admin.v1.backend import AdminBackend
from mockbroker.admin.v1.declaring import ApiEndpoints
from mockbroker.admin.v1.endpoint import EndpointCall
from mockbroker.core.errors import ActionError
from mockbroker.core.timing.clock_domains import find_domain
from mockbroker.core.validation import Ms, Range, ValidationError
from mockbroker.core.views.timers import timer_views
from mockbroker.server.clock.cluster_clock import adjustable_clock

# Real time. An advance of a week runs all timers that are due in it.
ADVANCE_TIMEOUT_S = 120.0

endpoints = ApiEndpoints()

CLOCK = "/v1/clock"


class ClockView(msgspec.Struct, frozen=True):
    """`now_ms` is ms since the epoch, `rate` seconds for each of real time: 0 when frozen, null if
    the cluster is in a trio run whose clock cannot be adjusted.
    """

    now_ms: int
    rate: float | None


class ClockChange(msgspec.Struct, frozen=True):
    """Changes of the clock, in this order: `freeze` (or, with false, thaw), `rate`, `advance_ms`.

    `only` advances the time of one part of the cluster: "retention", "compaction", "groups",
    "group:ID", "locks" or "transactions". With `extend_sessions`, the sessions of connected
    members are extended by the time of the advance, and do not expire. What clients send
    meanwhile is served after the advance.
    """

    freeze: bool | None = None
    rate: float | None = None
    advance_ms: Ms | None = None
    only: str | None = None
    extend_sessions: bool = True


class TimersQuery(msgspec.Struct, frozen=True):
    limit: Annotated[int, Range(1, 1_000)] = 50


async def _look(backend: AdminBackend) -> ClockView:
    """Called in the cluster's run."""
    try:
        rate = adjustable_clock().rate
    except RuntimeError:
        rate = None
    return ClockView(backend.server.clock.now_ms(), rate)


@endpoints.get(CLOCK, "The cluster's clock")
async def show(backend: AdminBackend, _: EndpointCall) -> ClockView:
    return await backend.run(lambda: _look(backend), ADVANCE_TIMEOUT_S)


endpoints.show("/v1/timers", "Timers that are due next", timer_views, query=TimersQuery)


@endpoints.post(
    CLOCK, "Freeze, advance or change the rate of the clock", body=ClockChange, problems=(409,)
)
async def change(backend: AdminBackend, call: EndpointCall) -> ClockView:
    wanted: ClockChange = call.body
    if wanted.freeze is not None and wanted.rate is not None:
        raise ValidationError("rate", "freeze and rate exclude each other")
    if wanted.only is not None and wanted.advance_ms is None:
        raise ValidationError("only", "it needs advance_ms")

    async def carry_out() -> ClockView:
        await _change(backend, wanted)
        return await _look(backend)

    return await backend.run(carry_out, ADVANCE_TIMEOUT_S)


async def _change(backend: AdminBackend, wanted: ClockChange) -> None:
    """Called in the cluster's run. Raises ValidationError or ActionError; then nothing has
    changed.
    """
    server = backend.server
    try:
        adjustable_clock()
    except RuntimeError as error:
        raise ActionError(str(error)) from None
    if wanted.only is not None:
        try:
            find_domain(server.cluster, wanted.only)
        except ValueError as error:
            raise ValidationError("only", str(error)) from None
    rate = wanted.rate if wanted.freeze is None else 1.0 - wanted.freeze
    if rate is not None:
        try:
            server.set_clock_rate(rate)
        except ValueError as error:
            raise ValidationError("rate", str(error)) from None
    if wanted.advance_ms is not None:
        await server.advance_clock(
            wanted.advance_ms, only=wanted.only, extend_sessions=wanted.extend_sessions
        )
