"""Endpoints that wait for the cluster: a watch in its run signals changes to the endpoint."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

import trio

from mockbroker.admin.bridge import ClusterUnavailableError
from mockbroker.admin.v1.backend import AdminBackend
from mockbroker.core.cluster import Cluster

T = TypeVar("T")

Stop = Callable[[], None]


class Signal:
    """An event set in the cluster's thread and awaited in the endpoint's."""

    def __init__(self) -> None:
        self._here = trio.lowlevel.current_trio_token()
        self._event = trio.Event()
        self._is_set = False

    def set(self) -> None:
        """Called in any thread. Until somebody waits again, further calls cost nothing: each would
        be a system call, for each entry of the journal.
        """
        if self._is_set:
            return
        self._is_set = True
        try:
            self._here.run_sync_soon(self._wake)
        except trio.RunFinishedError:
            return  # the admin side has stopped

    def _wake(self) -> None:
        self._event.set()

    async def wait(self) -> None:
        """Wait until it is set, and unset it. The caller then looks at the changes before it."""
        await self._event.wait()
        self._event = trio.Event()
        self._is_set = False


@asynccontextmanager
async def watching(
    backend: AdminBackend, start: Callable[[Callable[[], None]], Stop]
) -> AsyncIterator[Signal]:
    """A signal that a watch sets, from now to the end of the block.

    `start(changed)` starts the watch, which calls `changed`, and returns the function that stops
    it. Both run where the journal may be read. Raises ClusterUnavailableError, but not if the
    cluster has stopped meanwhile.
    """
    signal = Signal()
    started: list[Stop] = []

    def stop() -> None:
        for each in started:
            each()

    try:
        await backend.read(lambda: started.append(start(signal.set)))
        yield signal
    finally:
        with trio.CancelScope(shield=True), suppress(ClusterUnavailableError):
            await backend.read(stop)


async def until(
    backend: AdminBackend,
    start: Callable[[Cluster, Callable[[], None]], Stop],
    find: Callable[[Cluster], T | None],
    timeout_s: float,
) -> T | None:
    """The first result of `find(cluster)` that is not None; None after `timeout_s` of real time.

    `find` runs at once and after each call of `changed` by the watch that `start(cluster, changed)`
    starts, as in `watching`.
    """
    cluster = backend.server.cluster
    async with watching(backend, lambda changed: start(cluster, changed)) as signal:
        found = await backend.cluster(find)
        with backend.limit(timeout_s):
            while found is None:
                await signal.wait()
                found = await backend.cluster(find)
        return found


def observe(observers: list[T], observer: T) -> Stop:
    """Append an observer to a list of them. Returns the function that removes it."""
    observers.append(observer)
    return lambda: observers.remove(observer)
