"""Endpoints that wait for the cluster: signals between threads, watches and their end."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio
import trio.testing

from mockbroker.admin.v1.backend import OwnRunBackend
from mockbroker.admin.v1.waiting import Signal, Stop, observe, until, watching
from mockbroker.core.runtime import Runtime


class Watched:
    """Stands for a cluster with one value and those who observe it."""

    def __init__(self) -> None:
        self.value = 0
        self.observers: list[Callable[[], None]] = []
        self.finds = 0

    def start(self, _cluster: object, changed: Callable[[], None]) -> Stop:
        return observe(self.observers, changed)

    def set(self, value: int) -> None:
        self.value = value
        for observer in self.observers:
            observer()

    def at_least(self, wanted: int) -> Callable[[object], int | None]:
        def find(_cluster: object) -> int | None:
            self.finds += 1
            return self.value if self.value >= wanted else None

        return find


class LateBackend(OwnRunBackend):
    """Its calls run at once, but their results come late, as through a bridge."""

    async def read(self, function: Callable[[], Any]) -> Any:
        result = function()
        await trio.lowlevel.checkpoint()
        return result


def backend(kind: type[OwnRunBackend] = OwnRunBackend) -> OwnRunBackend:
    cluster = SimpleNamespace(runtime=Runtime(lambda: 0))
    return kind(cast("Any", SimpleNamespace(cluster=cluster)))


@pytest.mark.trio
async def test_a_signal_wakes_once_until_it_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A journal sets it for each entry; a wake-up of another thread is a system call."""
    wakes = 0
    signal = Signal()
    wake = signal._wake

    def counted() -> None:
        nonlocal wakes
        wakes += 1
        wake()

    monkeypatch.setattr(signal, "_wake", counted)
    for turn in (1, 2):
        for _ in range(1000):
            signal.set()
        await signal.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert wakes == turn
    with trio.move_on_after(0) as scope:
        await signal.wait()
    assert scope.cancelled_caught


@pytest.mark.trio
@pytest.mark.parametrize("timeout_s", [0, 1000])
async def test_what_is_there_already_is_found_without_a_wait(timeout_s: float) -> None:
    watched = Watched()
    watched.value = 3
    assert await until(backend(), watched.start, watched.at_least(2), timeout_s) == 3
    assert watched.observers == []


@pytest.mark.trio
async def test_every_change_is_looked_at_until_one_fits() -> None:
    watched = Watched()
    found: list[int | None] = []

    async def wait() -> None:
        found.append(await until(backend(), watched.start, watched.at_least(2), 1000))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait)
        for value in (0, 1, 2):
            await trio.testing.wait_all_tasks_blocked()
            assert not found
            watched.set(value)
    assert found == [2]
    assert watched.finds == 4
    assert watched.observers == []


@pytest.mark.trio
async def test_the_watch_is_stopped_after_the_timeout() -> None:
    watched = Watched()
    assert await until(backend(), watched.start, watched.at_least(1), 0.001) is None
    assert watched.observers == []


@pytest.mark.trio
async def test_the_watch_is_stopped_if_the_wait_is_cancelled_while_it_starts() -> None:
    """A client may close its connection before the cluster has answered the first call."""
    watched = Watched()
    with trio.move_on_after(0) as scope:
        async with watching(backend(LateBackend), lambda changed: watched.start(None, changed)):
            pass
    assert scope.cancelled_caught
    assert watched.observers == []
