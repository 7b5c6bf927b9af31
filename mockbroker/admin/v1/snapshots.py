"""Snapshots of a running cluster, in memory by name, and its reset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from mockbroker.admin.v1.backend import AdminBackend
from mockbroker.admin.v1.declaring import ApiEndpoints
from mockbroker.admin.v1.endpoint import EndpointCall, Nothing
from mockbroker.admin.v1.problems import ProblemError
from mockbroker.core.limits import ADMIN_SNAPSHOTS_MAX
from mockbroker.core.snapshot.restore import KEEP, Producers
from mockbroker.core.validation import Length, nearest
from mockbroker.server.config import ServerError

if TYPE_CHECKING:
    from mockbroker.core.snapshot.image import ClusterImage

NAME_CHARS_MAX = 200

endpoints = ApiEndpoints()


class SnapshotName(msgspec.Struct, frozen=True):
    """A snapshot of the same name is replaced."""

    name: Annotated[str, Length(1, NAME_CHARS_MAX)] = "default"


class Restore(msgspec.Struct, frozen=True):
    """`producers` decides about idempotent producers that have continued since the snapshot `name`:
    they are refused ("keep"), or continue at their present sequences ("resume").
    """

    name: Annotated[str, Length(1, NAME_CHARS_MAX)] = "default"
    producers: Producers = KEEP


class SnapshotView(msgspec.Struct, frozen=True):
    """A snapshot; `taken_ms` is on the cluster's clock."""

    name: str
    taken_ms: int


@endpoints.get("/v1/snapshots", "Snapshots")
async def show(backend: AdminBackend, _: EndpointCall) -> list[SnapshotView]:
    return [SnapshotView(name, taken_ms) for name, (taken_ms, _) in backend.kept(_taken).items()]


@endpoints.post("/v1/snapshot", "Take a snapshot", body=SnapshotName, created=True, problems=(409,))
async def take(backend: AdminBackend, call: EndpointCall) -> SnapshotView:
    name: str = call.body.name
    taken = backend.kept(_taken)
    if name not in taken and len(taken) >= (most := backend.config_int(ADMIN_SNAPSHOTS_MAX)):
        backend.exceeded(ADMIN_SNAPSHOTS_MAX)
        detail = f"at most {most} snapshots can exist ({ADMIN_SNAPSHOTS_MAX})"
        raise ProblemError(409, "too many snapshots", detail)
    server = backend.server
    taken[name] = await backend.cluster(lambda _: (server.clock.now_ms(), server.snapshots.take()))
    return SnapshotView(name, taken[name][0])


@endpoints.delete("/v1/snapshots/{name}", "Delete a snapshot", problems=(404,))
async def drop(backend: AdminBackend, call: EndpointCall) -> None:
    _named(backend, call.path["name"])
    del backend.kept(_taken)[call.path["name"]]


@endpoints.post("/v1/restore", "Restore a snapshot", body=Restore, problems=(404, 409))
async def restore(backend: AdminBackend, call: EndpointCall) -> None:
    wanted: Restore = call.body
    image = _named(backend, wanted.name)
    try:
        await backend.cluster(lambda _: backend.server.snapshots.restore(image, wanted.producers))
    except ServerError as error:
        raise ProblemError(409, "impossible", str(error)) from None


@endpoints.post("/v1/reset", "Reset the cluster to its start", body=Nothing)
async def reset(backend: AdminBackend, _: EndpointCall) -> None:
    await backend.cluster(lambda _: backend.server.snapshots.reset())


def _taken(_: AdminBackend) -> dict[str, tuple[int, ClusterImage]]:
    """The snapshots of a cluster with their times. They last as long as the cluster."""
    return {}


def _named(backend: AdminBackend, name: str) -> ClusterImage:
    taken = backend.kept(_taken)
    if name not in taken:
        hint = nearest(name, taken) if taken else "; there is none"
        raise ProblemError(404, "not found", f"unknown snapshot {name!r}{hint}")
    return taken[name][1]
