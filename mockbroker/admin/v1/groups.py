"""Groups: their members, their committed offsets, and waiting for a state."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Literal

import msgspec

from mockbroker.admin.v1.backend import AdminBackend
from mockbroker.admin.v1.declaring import ApiEndpoints
from mockbroker.admin.v1.endpoint import EndpointCall
from mockbroker.admin.v1.problems import ProblemError
from mockbroker.admin.v1.waiting import observe, until
from mockbroker.core.cluster import Cluster
from mockbroker.core.validation import Count, Count64, Length, Ms, ValidationError, nearest
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

endpoints = ApiEndpoints()

# An id may have slashes, so it could be any path: the other paths come first.
GROUP = "/v1/groups/{group:path}"
GONE = (404,)
REFUSED = (404, 408, 409)


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
    offset: Count64
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
    to: Literal["earliest", "latest"] | Count64 | None = None
    at_ms: Count64 | None = None
    partitions: list[Count] | None = None

    def __post_init__(self) -> None:
        if (self.to is None) == (self.at_ms is None):
            raise ValueError("exactly one of to and at_ms is needed")


class OffsetsQuery(msgspec.Struct):
    """One topic, or one partition of it; without both, all committed offsets."""

    topic: str | None = None
    partition: Count | None = None


@endpoints.post(
    "/v1/groups/wait", "Wait until a group is in a state", body=GroupWait, problems=(408,)
)
async def wait(backend: AdminBackend, call: EndpointCall) -> GroupView:
    wanted: GroupWait = call.body
    found = await until(
        backend,
        lambda cluster, changed: observe(cluster.runtime.on_event, lambda _: changed()),
        lambda cluster: _in_state(cluster, wanted),
        wanted.timeout_ms / 1000,
    )
    if found is None:
        raise ProblemError(408, "timeout", await backend.cluster(lambda c: _not_in_time(c, wanted)))
    return found


@endpoints.view(f"{GROUP}/offsets", "Its committed offsets, and its lag", problems=GONE)
def offsets(cluster: Cluster, group: str) -> list[LagView]:
    return _committed(cluster, group)


@endpoints.post(f"{GROUP}/offsets", "Set committed offsets", body=SetOffsets, problems=REFUSED)
async def set_offsets(backend: AdminBackend, call: EndpointCall) -> list[LagView]:
    wanted: SetOffsets = call.body
    given = {(each.topic, each.partition): (each.offset, each.metadata) for each in wanted.offsets}
    return await _commit(backend, call.path["group"], given)


@endpoints.delete(
    f"{GROUP}/offsets", "Delete committed offsets", query=OffsetsQuery, problems=REFUSED
)
async def delete_offsets(backend: AdminBackend, call: EndpointCall) -> None:
    group, query = call.path["group"], call.query
    if query.topic is None and query.partition is not None:
        raise ValidationError("partition", "it needs a topic")

    def chosen(cluster: Cluster) -> set[TopicPartition]:
        return {
            (each.topic, each.partition)
            for each in _committed(cluster, group)
            if query.topic in (None, each.topic) and query.partition in (None, each.partition)
        }

    doomed = await backend.cluster(chosen)
    if doomed:
        await _operate(backend, lambda cluster: remove_offsets(cluster, group, doomed))


@endpoints.post(
    f"{GROUP}/offsets/reset",
    "Reset committed offsets of a topic",
    body=ResetOffsets,
    problems=REFUSED,
)
async def reset(backend: AdminBackend, call: EndpointCall) -> list[LagView]:
    wanted: ResetOffsets = call.body
    target = wanted.at_ms if wanted.to is None else wanted.to
    assert target is not None
    given = await backend.cluster(
        lambda cluster: offsets_of(
            cluster, wanted.topic, wanted.partitions, target, by_time=wanted.to is None
        )
    )
    return await _commit(
        backend, call.path["group"], {key: (offset, "") for key, offset in given.items()}
    )


endpoints.show(GROUP, "One group with its members", group_view, problems=GONE)


@endpoints.delete(GROUP, "Delete a group without members, with its offsets", problems=REFUSED)
async def delete(backend: AdminBackend, call: EndpointCall) -> None:
    await _operate(backend, lambda cluster: delete_group(cluster, call.path["group"]))


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


async def _commit(
    backend: AdminBackend, group: str, given: Mapping[TopicPartition, tuple[int, str]]
) -> list[LagView]:
    """Commit offsets, each with its metadata. The answer is their lag."""
    await _operate(backend, lambda cluster: commit_offsets(cluster, group, given))
    return await backend.cluster(lambda cluster: _committed(cluster, group, set(given)))


async def _operate(backend: AdminBackend, function: Callable[[Cluster], Awaitable[None]]) -> None:
    """Carry out an operation that may wait for replicas. Raises ProblemError after a time limit."""
    with backend.limit(OPERATION_TIMEOUT_S):
        await backend.run(lambda: function(backend.server.cluster), 2 * OPERATION_TIMEOUT_S)
        return
    raise ProblemError(
        408, "timeout", f"the coordinator did not answer in {OPERATION_TIMEOUT_S:g} s"
    )


def _in_state(cluster: Cluster, wanted: GroupWait) -> GroupView | None:
    """The group, if it is in the wanted state."""
    found = _named(cluster, wanted.group)
    if found is None or found.state != wanted.state:
        return None
    return found if wanted.members in (None, len(found.members)) else None


def _named(cluster: Cluster, group: str) -> GroupView | None:
    return next((each for each in group_views(cluster) if each.group == group), None)


def _not_in_time(cluster: Cluster, wanted: GroupWait) -> str:
    """The state of a group that was not in the wanted state in time."""
    found = _named(cluster, wanted.group)
    members = "" if wanted.members is None else f" with {wanted.members} members"
    state = (
        f"does not exist{nearest(wanted.group, [each.group for each in group_views(cluster)])}"
        if found is None
        else f"is {found.state} with {len(found.members)} members"
    )
    within = f"in {wanted.timeout_ms} ms"
    return f"group {wanted.group!r} is not {wanted.state}{members} {within}: it {state}"
