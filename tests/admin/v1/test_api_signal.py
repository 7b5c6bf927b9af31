"""The signal between the cluster's thread and the endpoint's."""

from __future__ import annotations

import pytest
import trio
import trio.testing

from mockbroker.admin.v1.api import Signal


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
