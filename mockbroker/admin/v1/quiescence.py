"""Waiting until the cluster is at rest."""

from __future__ import annotations

from contextlib import suppress

import msgspec
import trio

from mockbroker.admin.bridge import ClusterUnavailableError
from mockbroker.admin.v1.api import Api, Signal
from mockbroker.admin.v1.declaring import ApiEndpoints
from mockbroker.admin.v1.endpoint import Call
from mockbroker.admin.v1.problems import ProblemError
from mockbroker.core.quiescence import QuiescenceWatch, unsettled
from mockbroker.core.validation import Ms

REASONS_MAX = 10

endpoints = ApiEndpoints()


class SettleWait(msgspec.Struct, frozen=True):
    """The limit of the wait, in real time."""

    timeout_ms: Ms = 30_000


class SettledView(msgspec.Struct, frozen=True):
    """The cluster is at rest; `now_ms` is on its clock."""

    now_ms: int


@endpoints.post(
    "/v1/settle",
    "Wait until replicas are in sync, preferred leaders lead and groups are stable",
    body=SettleWait,
    problems=(408,),
)
async def settle(api: Api, call: Call) -> SettledView:
    wanted: SettleWait = call.body
    signal = Signal()
    watch = await api.cluster(lambda cluster: QuiescenceWatch(cluster, signal.set))
    try:
        with api.limit(wanted.timeout_ms / 1000) as waiting:
            await signal.wait()
    finally:
        with trio.CancelScope(shield=True), suppress(ClusterUnavailableError):
            await api.cluster(lambda _: watch.stop())
    if waiting.cancelled_caught:
        reasons = await api.cluster(unsettled)
        found = "; ".join(reasons[:REASONS_MAX]) or "it is by now"
        detail = f"not at rest in {wanted.timeout_ms} ms: {found}"
        raise ProblemError(408, "timeout", detail)
    return SettledView(await api.cluster(lambda cluster: cluster.runtime.now_ms()))
