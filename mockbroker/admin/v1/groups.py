"""Waiting for the state of a group."""

from __future__ import annotations

from contextlib import suppress

import msgspec
import trio

from mockbroker.admin.bridge import ClusterUnavailableError
from mockbroker.admin.v1.api import Api, Signal
from mockbroker.admin.v1.endpoint import Call, Endpoint
from mockbroker.admin.v1.problems import ProblemError
from mockbroker.core.cluster import Cluster
from mockbroker.core.events import Event
from mockbroker.core.validation import Count, Ms
from mockbroker.core.views.groups import GroupView, group_views


class GroupWait(msgspec.Struct, frozen=True, kw_only=True):
    """Wait until a group, which need not exist yet, is in a state and, if given, has so many
    members; the timeout is real time.
    """

    group: str
    state: str = "Stable"
    members: Count | None = None
    timeout_ms: Ms = 30_000


def endpoints(api: Api) -> list[Endpoint]:
    async def wait(call: Call) -> GroupView:
        wanted: GroupWait = call.body
        signal = Signal()

        def follow(_event: Event) -> None:
            signal.set()

        def look(cluster: Cluster) -> GroupView | None:
            named = (each for each in group_views(cluster) if each.group == wanted.group)
            return next(named, None)

        await api.cluster(lambda cluster: cluster.runtime.on_event.append(follow))
        found = None
        try:
            with api.limit(wanted.timeout_ms / 1000):
                while True:
                    found = await api.cluster(look)
                    if found is not None and _is_wanted(found, wanted):
                        return found
                    await signal.wait()
        finally:
            with trio.CancelScope(shield=True), suppress(ClusterUnavailableError):
                await api.cluster(lambda cluster: cluster.runtime.on_event.remove(follow))
        members = "" if wanted.members is None else f" with {wanted.members} members"
        state = (
            "does not exist"
            if found is None
            else f"is {found.state} with {len(found.members)} members"
        )
        raise ProblemError(
            408,
            "timeout",
            f"group {wanted.group!r} is not {wanted.state}{members} in {wanted.timeout_ms} ms: "
            f"it {state}",
        )

    return [
        Endpoint(
            "POST",
            "/v1/groups/wait",
            "Wait until a group is in a state",
            wait,
            GroupView,
            body=GroupWait,
            problems=(408,),
        )
    ]


def _is_wanted(found: GroupView, wanted: GroupWait) -> bool:
    return found.state == wanted.state and wanted.members in (None, len(found.members))
