"""A program that a command runs beside a cluster. It gets our signals and never outlives us."""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import suppress

import trio

# The time from the first signal until the program is killed.
PATIENCE_S = 15.0
BY_SIGNAL = 128
_SET_PARENT_DEATH_SIGNAL = 1  # prctl(2)


async def run_program(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a program to its end; returns its exit code, 128 + n after signal n.

    A first SIGINT or SIGTERM is forwarded, a second one kills. When the caller is cancelled, the
    program is killed; so it is, on Linux, when this process is. At a terminal it stays in the
    terminal's process group, so that it can read; elsewhere it gets a group of its own, which is
    killed at the end. Raises OSError if the program cannot be started.
    """
    at_terminal = sys.stdin is not None and sys.stdin.isatty()
    with trio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        # The thread of `trio.lowlevel.open_process` ends, and the program would be killed with it.
        process = subprocess.Popen(  # noqa: ASYNC220, S603 - a few ms; the command is the user's
            list(command),
            env=dict(environment),
            process_group=None if at_terminal else 0,
            preexec_fn=_dies_with_us(),  # noqa: PLW1509 - it calls nothing but the system
        )
        send = process.send_signal if at_terminal else functools.partial(_to_group, process)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_forward_signals, signals, send, at_terminal)
                status = await trio.to_thread.run_sync(process.wait, abandon_on_cancel=True)
                nursery.cancel_scope.cancel()
        finally:
            if not at_terminal:
                _to_group(process, signal.SIGKILL)
            elif process.poll() is None:
                process.kill()
            process.wait()
    return BY_SIGNAL - status if status < 0 else status


async def _forward_signals(
    signals: AsyncIterator[int], send: Callable[[int], None], at_terminal: bool
) -> None:
    number = await anext(signals)
    # The terminal has sent Ctrl-C to the program as well.
    if not (at_terminal and number == signal.SIGINT):
        send(number)
    # Real time: the cluster's clock, which is trio's here, may be frozen.
    impatience = threading.Timer(PATIENCE_S, send, (signal.SIGKILL,))
    impatience.start()
    try:
        await anext(signals)
        send(signal.SIGKILL)
    finally:
        impatience.cancel()


def _to_group(process: subprocess.Popen[bytes], number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def _dies_with_us() -> Callable[[], None] | None:
    """For the child before it becomes the program: SIGKILL when this process ends (Linux)."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl
    return functools.partial(prctl, _SET_PARENT_DEATH_SIGNAL, int(signal.SIGKILL))
