"""One cluster for each transport of the Python API, for the same tests."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from mockbroker import AsyncCluster, Cluster

OPTIONS: dict[str, Any] = {"brokers": 3, "topics": {"orders": 2}}


class Awaitable:
    """A blocking handle in the clothes of its awaited twin."""

    def __init__(self, blocking: Any) -> None:
        self._blocking = blocking

    def __getattr__(self, name: str) -> Any:
        kind = type(self._blocking)
        twin = inspect.getattr_static(_twin(kind), name, None)
        if twin is None:  # an attribute of the instance
            return getattr(self._blocking, name)
        if isinstance(twin, property):
            if not inspect.iscoroutinefunction(twin.fget):
                return _dressed(getattr(self._blocking, name))
            return _later(lambda: getattr(self._blocking, name))
        method = getattr(self._blocking, name)
        if not inspect.iscoroutinefunction(twin):
            return lambda *args, **named: _dressed(method(*args, **named))
        return lambda *args, **named: _later(lambda: method(*args, **named))

    def __repr__(self) -> str:
        return repr(self._blocking)


def _twin(kind: type) -> type:
    from importlib import import_module

    for base in kind.__mro__:
        if ".api.blocking." in base.__module__:
            module = import_module(base.__module__.replace(".blocking.", ".aio."))
            name = "Cluster" if base.__name__ == "BlockingCluster" else base.__name__
            found: type = getattr(module, f"Async{name}")
            return found
    raise TypeError(f"{kind} has no twin")


def _dressed(value: Any) -> Any:
    return Awaitable(value) if ".api.blocking." in type(value).__module__ else value


async def _later(function: Callable[[], Any]) -> Any:
    return _dressed(await trio.to_thread.run_sync(function))


async def _admin_url(kafka: Cluster) -> str:
    return await trio.to_thread.run_sync(lambda: kafka.admin_url)


@asynccontextmanager
async def in_a_thread() -> AsyncIterator[Any]:
    with Cluster(**OPTIONS) as kafka:
        yield Awaitable(kafka)


@asynccontextmanager
async def awaited_in_a_thread() -> AsyncIterator[Any]:
    with Cluster(**OPTIONS) as kafka:
        yield kafka.aio


@asynccontextmanager
async def in_this_run() -> AsyncIterator[AsyncCluster]:
    async with Cluster(**OPTIONS) as kafka:
        yield kafka


@asynccontextmanager
async def over_http() -> AsyncIterator[Any]:
    with Cluster(**OPTIONS) as kafka:
        yield Awaitable(Cluster.connect(await _admin_url(kafka)))


@asynccontextmanager
async def awaited_over_http() -> AsyncIterator[Any]:
    with Cluster(**OPTIONS) as kafka:
        yield Cluster.connect(await _admin_url(kafka)).aio


PLACES = (in_a_thread, awaited_in_a_thread, in_this_run, over_http, awaited_over_http)


@pytest.fixture(params=PLACES, ids=lambda place: place.__name__)
def place(request: pytest.FixtureRequest) -> Callable[[], Any]:
    """Opens a cluster; what is in it is awaited, wherever it is."""
    found: Callable[[], Any] = request.param
    return found
