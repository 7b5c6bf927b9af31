"""The end of the process that started this one."""

from __future__ import annotations

import os
import time

import trio

# Real time: the interval at which systems without process descriptors check the parent.
CHECK_INTERVAL_S = 0.25

# Read as early as can be: a process whose parent has ended has another one.
STARTED_BY = os.getppid()


async def cancel_with_parent(scope: trio.CancelScope) -> None:
    """Cancel `scope` when the process that started this one has ended."""
    await wait_for_parents_end()
    scope.cancel()


async def wait_for_parents_end() -> None:
    """Return when the process that started this one has ended, in any way and at any time."""
    descriptor = _process_descriptor(STARTED_BY)
    if descriptor is None:
        # A thread waits, since the clock of this run may be the cluster's, which can be frozen.
        await trio.to_thread.run_sync(_poll, abandon_on_cancel=True)
        return
    try:
        if _has_parent():  # or else the descriptor may be another process's, of the same number
            await trio.lowlevel.wait_readable(descriptor)
    finally:
        os.close(descriptor)


def _has_parent() -> bool:
    return os.getppid() == STARTED_BY


def _process_descriptor(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None without support by the
    system.
    """
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _poll() -> None:
    while _has_parent():
        time.sleep(CHECK_INTERVAL_S)
