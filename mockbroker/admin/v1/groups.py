"""Groups: their members, their committed offsets, and waiting for a state."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Annotated, Literal

import msgspec
import trio

from mockbroker.admin.bridge import ClusterUnavailableError
from mockbroker.admin.v1.api import Api, Signal
from mockbroker.admin.v1.endpoint import Call, Endpoint
from mockbroker.admin.v1.problems import ProblemError
from mockbroker.core.cluster import Cluster
from mockbroker.core.events import Event
from mockbroker.core.validation import Count, Length, Ms, Range, ValidationError, nearest
from mockbroker.core.views.groups import GroupView, LagView, group_view, group_views, lag_views
from mockbroker.server.group_offsets import (
    TopicPartition,
    commit_offsets,
    delete_group,
    offsets_of,
    remove_offsets,
)

# In real time.
OPERATION_TIMEOUT_S = 30.0
OFFSETS_MAX = 10_000

Offset = Annotated[int, Range(0, 2**63 - 1)]

# Of groups of all types.
GroupStateName = Literal[
    "Assigning",
    "CompletingRebalance",
    "Dead",
    "Empty",
    "NotReady",
    "PreparingRebalance",
    "Reconciling",
    "Stable",
]


class GroupWait(msgspec.Struct, frozen=True, kw_only=True):
    """Wait until a group, which need not exist yet, is in a state and, if given, has this number of
    members; the timeout is real time.
    """

    group: str
    state: GroupStateName = "Stable"
    members: Count | None = None
    timeout_ms: Ms = 30_000


class NewOffset(msgspec.Struct, frozen=True):
    """A committed offset of one partition."""

    topic: str
    partition: Count
    offset: Offset
    metadata: str = ""


class SetOffsets(msgspec.Struct, frozen=True):
    """Offsets to commit for a group without members, which need not exist yet."""

    offsets: Annotated[list[NewOffset], Length(1, OFFSETS_MAX)]


class ResetOffsets(msgspec.Struct, frozen=True, kw_only=True):
    """Commit an offset for the partitions of a topic, or for `partitions` of it.

    Exactly one of `to` and `at_ms` is required: `to` is `earliest`, `latest` or an offset, which is
    clamped to the log; `at_ms` (ms since the epoch) is the first record at or after it.
    """

    topic: str
    to: Literal["earliest", "latest"] | Offset | None = None
    at_ms: Offset | None = None
    partitions: list[Count] | None = None

    def __post_init__(self) -> None:
        if (self.to is None) == (self.at_ms is None):
            raise ValueError("exactly one of to and at_ms is needed")


class OffsetsQuery(msgspec.Struct):
    """One topic, or one partition of it; without both, all committed offsets."""

    topic: str | None = None
    partition: Count | None = None


def endpoints(api: Api) -> list[Endpoint]:
    async def one(call: Call) -> GroupView:
        return await api.cluster(lambda cluster: group_view(cluster, call.path["group"]))

    async def delete(call: Call) -> None:
        await _operate(api, lambda cluster: delete_group(cluster, call.path["group"]))

    async def offsets(call: Call) -> list[LagView]:
        return await api.cluster(lambda cluster: _committed(cluster, call.path["group"]))

    async def set_offsets(call: Call) -> list[LagView]:
        group, wanted = call.path["group"], call.body.offsets
        given = {(each.topic, each.partition): (each.offset, each.metadata) for each in wanted}
        await _operate(api, lambda cluster: commit_offsets(cluster, group, given))
        return await api.cluster(lambda cluster: _committed(cluster, group, set(given)))

    async def reset(call: Call) -> list[LagView]:
        group, wanted = call.path["group"], call.body
        target = wanted.at_ms if wanted.to is None else wanted.to
        given = await api.cluster(
            lambda cluster: offsets_of(
                cluster, wanted.topic, wanted.partitions, target, by_time=wanted.to is None
            )
        )
        commits = {key: (offset, "") for key, offset in given.items()}
        await _operate(api, lambda cluster: commit_offsets(cluster, group, commits))
        return await api.cluster(lambda cluster: _committed(cluster, group, set(given)))

    async def delete_offsets(call: Call) -> None:
        group, query = call.path["group"], call.query
        if query.topic is None and query.partition is not None:
            raise ValidationError("partition", "it needs a topic")

        def chosen(cluster: Cluster) -> set[TopicPartition]:
            return {
                (each.topic, each.partition)
                for each in _committed(cluster, group)
                if query.topic in (None, each.topic) and query.partition in (None, each.partition)
            }

        doomed = await api.cluster(chosen)
        if doomed:
            await _operate(api, lambda cluster: remove_offsets(cluster, group, doomed))

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
        known = await api.cluster(lambda cluster: [each.group for each in group_views(cluster)])
        raise ProblemError(408, "timeout", _not_in_time(wanted, found, known))

    # An id may have slashes, so it could be any path: the other paths come first.
    group = "/v1/groups/{group:path}"
    refused = (404, 408, 409)
    return [
        Endpoint(
            "POST",
            "/v1/groups/wait",
            "Wait until a group is in a state",
            wait,
            GroupView,
            body=GroupWait,
            problems=(408,),
        ),
        Endpoint(
            "GET",
            f"{group}/offsets",
            "Its committed offsets, and its lag",
            offsets,
            list[LagView],
            problems=(404,),
        ),
        Endpoint(
            "POST",
            f"{group}/offsets",
            "Set committed offsets",
            set_offsets,
            list[LagView],
            body=SetOffsets,
            problems=refused,
        ),
        Endpoint(
            "DELETE",
            f"{group}/offsets",
            "Delete committed offsets",
            delete_offsets,
            None,
            OffsetsQuery,
            status=204,
            problems=refused,
        ),
        Endpoint(
            "POST",
            f"{group}/offsets/reset",
            "Reset committed offsets of a topic",
            reset,
            list[LagView],
            body=ResetOffsets,
            problems=refused,
        ),
        Endpoint("GET", group, "One group with its members", one, GroupView, problems=(404,)),
        Endpoint(
            "DELETE",
            group,
            "Delete a group without members, with its offsets",
            delete,
            None,
            status=204,
            problems=refused,
        ),
    ]


def _committed(
    cluster: Cluster, group: str, keys: set[TopicPartition] | None = None
) -> list[LagView]:
    """The committed offsets of a group, or those of some partitions. Raises ApiError."""
    group_view(cluster, group)
    return [
        each
        for each in lag_views(cluster, group)
        if each.kind == "committed" and (keys is None or (each.topic, each.partition) in keys)
    ]


async def _operate(api: Api, function: Callable[[Cluster], Awaitable[None]]) -> None:
    """Carry out an operation that may wait for replicas. Raises ProblemError after a time limit."""
    with api.limit(OPERATION_TIMEOUT_S):
        await api.run(lambda: function(api.server.cluster), 2 * OPERATION_TIMEOUT_S)
        return
    raise ProblemError(
        408, "timeout", f"the coordinator did not answer in {OPERATION_TIMEOUT_S:g} s"
    )


def _not_in_time(wanted: GroupWait, found: GroupView | None, known: list[str]) -> str:
    """The state of a group that was not in the wanted state in time."""
    members = "" if wanted.members is None else f" with {wanted.members} members"
    state = (
        f"does not exist{nearest(wanted.group, known)}"
        if found is None
        else f"is {found.state} with {len(found.members)} members"
    )
    within = f"in {wanted.timeout_ms} ms"
    return f"group {wanted.group!r} is not {wanted.state}{members} {within}: it {state}"


def _is_wanted(found: GroupView, wanted: GroupWait) -> bool:
    return found.state == wanted.state and wanted.members in (None, len(found.members))
