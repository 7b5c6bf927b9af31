"""An end for work that may never come to its own."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

AGAIN_S = 1.0


@contextmanager
def cpu_limit(seconds: float, error: BaseException) -> Iterator[None]:
    """Raise the error in the main thread once the process has used so much CPU in the block, and
    again after each further second, as the block may catch it and go on.
    """

    def stop(*_: object) -> None:
        raise error

    former = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, former)
