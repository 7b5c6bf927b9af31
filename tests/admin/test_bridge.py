"""Calls from the admin run into the cluster's."""

from __future__ import annotations

import threading

import pytest
import trio

from mockbroker.admin.bridge import Bridge, ClusterUnavailableError
from tests.admin.conftest import ClusterRun, cluster_run
from tests.support.waiting import TIMEOUT_S


def test_a_call_returns_what_the_function_returned_over_there(cluster: ClusterRun):
    there = trio.run(Bridge(cluster.token).call, threading.current_thread, TIMEOUT_S)
    assert there is cluster.thread


def test_an_exception_crosses_back(cluster: ClusterRun):
    def fail() -> None:
        raise KeyError("no such group")

    with pytest.raises(KeyError, match="no such group"):
        trio.run(Bridge(cluster.token).call, fail, TIMEOUT_S)


def test_many_calls_at_once_each_get_their_own_answer(cluster: ClusterRun):
    bridge = Bridge(cluster.token)
    answers: dict[int, int] = {}

    async def main() -> None:
        async def ask(n: int) -> None:
            answers[n] = await bridge.call(lambda: n * n, TIMEOUT_S)

        async with trio.open_nursery() as nursery:
            for n in range(50):
                nursery.start_soon(ask, n)

    trio.run(main)
    assert answers == {n: n * n for n in range(50)}


def test_a_stopped_cluster_is_unavailable():
    with cluster_run() as run:
        pass
    with pytest.raises(ClusterUnavailableError, match="has stopped"):
        trio.run(Bridge(run.token).call, lambda: None, TIMEOUT_S)


def test_a_cluster_that_does_not_come_round_is_unavailable(cluster: ClusterRun):
    gate = threading.Event()
    cluster.token.run_sync_soon(gate.wait)
    try:
        with pytest.raises(ClusterUnavailableError, match=r"did not answer in 0\.05 s"):
            trio.run(Bridge(cluster.token).call, lambda: None, 0.05)
    finally:
        gate.set()
