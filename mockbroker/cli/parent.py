"""The end of the process that started this one."""

from __future__ import annotations

import os
import time

import trio

# Real time: the interval at which systems without process descriptors are asked for the parent.
CHECK_INTERVAL_S = 0.25


async def wait_for_parents_end() -> None:
    """Return when the process that started this one has ended, however it ended."""
    parent = os.getppid()
    descriptor = _process_descriptor(parent)
    if descriptor is None:
        # A thread waits, since the clock of this run may be the cluster's, which can be frozen.
        await trio.to_thread.run_sync(_poll, parent, abandon_on_cancel=True)
        return
    try:
        await trio.lowlevel.wait_readable(descriptor)
    finally:
        os.close(descriptor)


def _process_descriptor(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends; None where there is none."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None


def _poll(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(CHECK_INTERVAL_S)
