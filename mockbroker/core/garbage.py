"""When Python's cyclic garbage collector is of no use."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collections() -> Iterator[None]:
    """Collect no cyclic garbage in this block, for what makes many objects that stay.

    Stopping a broker with 10,000 replicas makes half a million of them. The collector would walk
    over all objects of the process half a dozen times meanwhile, and find nothing. It is the
    process's own, so a block in another thread may end this one's pause early.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
