"""Which cores a peer and its client run on while single requests are timed.

Left alone, a scheduler now runs both on one core, where a round trip is two task switches, and now
on two, where it is two wake-ups of an idle core: four times as long, and nothing that a peer can do
about it. Which of them a round gets is chance. So the client gets a core of its own and the peer
all others, as if they were two machines.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path


def can_separate() -> bool:
    """Whether this machine has two cores and an operating system that lets one choose."""
    return sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1


@contextlib.contextmanager
def separate_cores(pids: Sequence[int]) -> Iterator[None]:
    """Keep this thread, and the clients it starts, off the cores of the peer's processes."""
    if not can_separate():
        yield
        return
    cores = sorted(os.sched_getaffinity(0))
    _move(pids, cores[:-1])
    os.sched_setaffinity(0, cores[-1:])
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)
        _move(pids, cores)


def _move(pids: Sequence[int], cores: Sequence[int]) -> None:
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(ProcessLookupError):  # a thread that ended meanwhile
                os.sched_setaffinity(int(task.name), cores)
