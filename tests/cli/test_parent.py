"""The end of the process that started this one, whenever it came."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import trio

from mockbroker.cli import parent

DEADLINE_S = 60.0


def ended_process() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


@pytest.mark.parametrize("descriptors", [True, False])
def test_a_parent_that_ended_before_is_noticed(
    monkeypatch: pytest.MonkeyPatch, descriptors: bool
) -> None:
    """It may end while the cluster starts; the system then gives the process another parent."""
    monkeypatch.setattr(parent, "STARTED_BY", ended_process())
    if not descriptors:
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    scope = trio.CancelScope()

    async def wait() -> None:
        with trio.fail_after(DEADLINE_S):
            await parent.cancel_with_parent(scope)

    trio.run(wait)
    assert scope.cancel_called


@pytest.mark.parametrize("descriptors", [True, False])
def test_a_number_that_another_process_has_by_now_is_no_parent(
    monkeypatch: pytest.MonkeyPatch, descriptors: bool
) -> None:
    if not descriptors:
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        monkeypatch.setattr(parent, "STARTED_BY", other.pid)

        async def wait() -> None:
            with trio.fail_after(DEADLINE_S):
                await parent.wait_for_parents_end()

        trio.run(wait)


def test_a_parent_that_lives_is_waited_for() -> None:
    async def wait() -> None:
        with trio.move_on_after(0.05) as scope:
            await parent.wait_for_parents_end()
        assert scope.cancelled_caught

    trio.run(wait)
