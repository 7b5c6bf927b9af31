"""Limits of real time in a run whose own clock is the cluster's and may be frozen."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import trio


def call_after(seconds: float, function: Callable[[], object]) -> threading.Timer:
    """Call `function()` in this run after `seconds` of real time, unless the timer is cancelled.

    A thread waits for it. Nothing is called once the run has ended.
    """
    token = trio.lowlevel.current_trio_token()

    def due() -> None:
        with suppress(trio.RunFinishedError):
            token.run_sync_soon(function)

    timer = threading.Timer(seconds, due)
    timer.daemon = True
    timer.start()
    return timer


@contextmanager
def move_on_after(seconds: float) -> Iterator[trio.CancelScope]:
    """As `trio.move_on_after`, in real time."""
    with trio.CancelScope() as scope:
        timer = call_after(seconds, scope.cancel)
        try:
            yield scope
        finally:
            timer.cancel()
