"""Snapshots of a running cluster, kept in memory by name, and starting anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from mockbroker.actors.config import ServerError
from mockbroker.admin.v1.api import Api
from mockbroker.admin.v1.endpoint import Call, Endpoint, Nothing
from mockbroker.admin.v1.problems import ProblemError
from mockbroker.core.faults.convert import Length
from mockbroker.core.snapshot.restore import KEEP, Producers

if TYPE_CHECKING:
    from mockbroker.core.snapshot.image import ClusterImage

SNAPSHOTS_MAX = 100
NAME_CHARS_MAX = 200


class SnapshotName(msgspec.Struct, frozen=True):
    """`name` is how to ask for it later; a snapshot of the same name is replaced."""

    name: Annotated[str, Length(1, NAME_CHARS_MAX)] = "default"


class Restore(msgspec.Struct, frozen=True):
    """`name` is the snapshot's. `producers` is what becomes of idempotent producers that have gone
    on since: they are refused ("keep"), or go on at the sequences where they are ("resume").
    """

    name: Annotated[str, Length(1, NAME_CHARS_MAX)] = "default"
    producers: Producers = KEEP


class SnapshotView(msgspec.Struct, frozen=True):
    """A snapshot that is kept; `taken_ms` is on the cluster's clock."""

    name: str
    taken_ms: int


class LifecycleEndpoints:
    """The endpoints of one cluster; the snapshots live as long as it does."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._kept: dict[str, tuple[int, ClusterImage]] = {}

    async def list(self, call: Call) -> list[SnapshotView]:  # noqa: ARG002
        return [SnapshotView(name, taken_ms) for name, (taken_ms, _) in self._kept.items()]

    async def take(self, call: Call) -> SnapshotView:
        name: str = call.body.name
        if name not in self._kept and len(self._kept) >= SNAPSHOTS_MAX:
            raise ProblemError(409, "too many", f"{SNAPSHOTS_MAX} snapshots are kept already")
        server = self._api.server
        self._kept[name] = await self._api.bridge.call(
            lambda: (server.clock.now_ms(), server.snapshots.take())
        )
        return SnapshotView(name, self._kept[name][0])

    async def restore(self, call: Call) -> None:
        name: str = call.body.name
        if name not in self._kept:
            known = ", ".join(self._kept) or "none"
            raise ProblemError(404, "not found", f"there is no snapshot {name!r}; kept: {known}")
        image, producers = self._kept[name][1], call.body.producers
        try:
            await self._api.bridge.call(
                lambda: self._api.server.snapshots.restore(image, producers)
            )
        except ServerError as error:
            raise ProblemError(409, "it cannot be done", str(error)) from None

    async def reset(self, call: Call) -> None:  # noqa: ARG002
        await self._api.bridge.call(self._api.server.snapshots.reset)


def endpoints(api: Api) -> list[Endpoint]:
    do = LifecycleEndpoints(api)
    return [
        Endpoint("GET", "/v1/snapshots", "The snapshots kept", do.list, list[SnapshotView]),
        Endpoint(
            "POST",
            "/v1/snapshot",
            "Take one",
            do.take,
            SnapshotView,
            body=SnapshotName,
            status=201,
            problems=(409,),
        ),
        Endpoint(
            "POST",
            "/v1/restore",
            "Go back to one",
            do.restore,
            None,
            body=Restore,
            status=204,
            problems=(404, 409),
        ),
        Endpoint(
            "POST", "/v1/reset", "Begin as at the start", do.reset, None, body=Nothing, status=204
        ),
    ]
