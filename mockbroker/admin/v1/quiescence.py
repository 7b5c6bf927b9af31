"""Waiting until the cluster is at rest."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from mockbroker.admin.v1.backend import AdminBackend
from mockbroker.admin.v1.declaring import ApiEndpoints
from mockbroker.admin.v1.endpoint import EndpointCall
from mockbroker.admin.v1.problems import ProblemError
from mockbroker.admin.v1.waiting import Stop, until
from mockbroker.core.cluster import Cluster
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
async def settle(backend: AdminBackend, call: EndpointCall) -> SettledView:
    wanted: SettleWait = call.body
    # The first rest counts: a busy cluster may have gone on before the endpoint looks.
    rests: list[SettledView] = []

    def start(cluster: Cluster, changed: Callable[[], None]) -> Stop:
        def settled() -> None:
            if not rests:
                rests.append(SettledView(cluster.runtime.now_ms()))
            changed()

        return QuiescenceWatch(cluster, settled).stop

    view = await until(backend, start, lambda _: next(iter(rests), None), wanted.timeout_ms / 1000)
    if view is None:
        reasons = await backend.cluster(unsettled)
        found = "; ".join(reasons[:REASONS_MAX]) or "it is by now"
        raise ProblemError(408, "timeout", f"not at rest in {wanted.timeout_ms} ms: {found}")
    return view
