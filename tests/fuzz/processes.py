"""What a process of a run does."""

from __future__ import annotations

import gc
import logging
import os
import resource
import signal
import threading
import time
from multiprocessing import parent_process
from multiprocessing.process import BaseProcess

from tests.fuzz.engine import Finding, run_inputs, shrunk
from tests.fuzz.targets.all import TARGETS

MEMORY_BYTES_MAX = 4 << 30
"""The address space of a process. An input that would take more is a finding, with a traceback."""

GC_THRESHOLDS = (50_000, 20, 100)
"""Each session makes a cluster: with Python's thresholds a quarter of the time is collection."""


def prepare() -> None:
    """Limit the memory of this process, and leave what brokers log to the targets.

    The process ends with the run that has started it, which is who is interrupted at a terminal.
    """
    parent = parent_process()
    if parent is not None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        threading.Thread(target=_end_after, args=(parent,), daemon=True).start()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    logging.getLogger("mockbroker").propagate = False
    logging.getLogger("mockbroker").addHandler(logging.NullHandler())
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


def _end_after(parent: BaseProcess) -> None:
    """A killed run cannot tell its processes to end."""
    parent.join()
    os._exit(1)


def run_batch(batch: tuple[str, int, int]) -> tuple[str, int, float, list[Finding]]:
    name, first, count = batch
    started = time.process_time()
    target = TARGETS[name]
    kinds: dict[str, Finding] = {}
    more: list[Finding] = []
    for each in run_inputs(target, range(first, first + count)):
        if each.kind in kinds:
            more.append(each._replace(data=b"", text=""))
        else:
            kinds[each.kind] = shrunk(target, each)
    cpu_s = time.process_time() - started
    return name, count * target.cost(), cpu_s, [*kinds.values(), *more]
