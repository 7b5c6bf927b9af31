"""An end for what may never come to its own."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def cpu_limit(seconds: float, error: BaseException) -> Iterator[None]:
    """Raise the error in the main thread once the process has used so much CPU in the block."""

    def stop(*_: object) -> None:
        raise error

    former = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, former)
