"""Snapshots of a running cluster, in memory by name, and its reset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from mockbroker.admin.v1.api import Api
from mockbroker.admin.v1.endpoint import Call, Endpoint, Nothing
from mockbroker.admin.v1.problems import ProblemError
from mockbroker.core.snapshot.restore import KEEP, Producers
from mockbroker.core.validation import Length, nearest
from mockbroker.server.config import ServerError

if TYPE_CHECKING:
    from mockbroker.core.snapshot.image import ClusterImage

SNAPSHOTS_MAX = 100
NAME_CHARS_MAX = 200


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


class SnapshotEndpoints:
    """The endpoints of one cluster; the snapshots last as long as the cluster."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._snapshots: dict[str, tuple[int, ClusterImage]] = {}

    async def list(self, call: Call) -> list[SnapshotView]:  # noqa: ARG002
        return [SnapshotView(name, taken_ms) for name, (taken_ms, _) in self._snapshots.items()]

    async def take(self, call: Call) -> SnapshotView:
        name: str = call.body.name
        if name not in self._snapshots and len(self._snapshots) >= SNAPSHOTS_MAX:
            raise ProblemError(409, "too many", f"at most {SNAPSHOTS_MAX} snapshots can exist")
        server = self._api.server
        self._snapshots[name] = await self._api.cluster(
            lambda _: (server.clock.now_ms(), server.snapshots.take())
        )
        return SnapshotView(name, self._snapshots[name][0])

    async def restore(self, call: Call) -> None:
        name: str = call.body.name
        image, producers = self._named(name), call.body.producers
        try:
            await self._api.cluster(lambda _: self._api.server.snapshots.restore(image, producers))
        except ServerError as error:
            raise ProblemError(409, "impossible", str(error)) from None

    async def drop(self, call: Call) -> None:
        self._take_away(call.path["name"])

    async def reset(self, call: Call) -> None:  # noqa: ARG002
        await self._api.cluster(lambda _: self._api.server.snapshots.reset())

    def _named(self, name: str) -> ClusterImage:
        if name not in self._snapshots:
            hint = nearest(name, self._snapshots) if self._snapshots else "; there is none"
            raise ProblemError(404, "not found", f"unknown snapshot {name!r}{hint}")
        return self._snapshots[name][1]

    def _take_away(self, name: str) -> None:
        self._named(name)
        del self._snapshots[name]


def endpoints(api: Api) -> list[Endpoint]:
    do = SnapshotEndpoints(api)
    return [
        Endpoint("GET", "/v1/snapshots", "Snapshots", do.list, list[SnapshotView]),
        Endpoint(
            "POST",
            "/v1/snapshot",
            "Take a snapshot",
            do.take,
            SnapshotView,
            body=SnapshotName,
            status=201,
            problems=(409,),
        ),
        Endpoint(
            "DELETE",
            "/v1/snapshots/{name}",
            "Delete a snapshot",
            do.drop,
            None,
            status=204,
            problems=(404,),
        ),
        Endpoint(
            "POST",
            "/v1/restore",
            "Restore a snapshot",
            do.restore,
            None,
            body=Restore,
            status=204,
            problems=(404, 409),
        ),
        Endpoint(
            "POST",
            "/v1/reset",
            "Reset the cluster to its start",
            do.reset,
            None,
            body=Nothing,
            status=204,
        ),
    ]
