"""Pauses of Python's cyclic garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collections() -> Iterator[None]:
    """Disable the cyclic garbage collector in this block, which creates many long-lived objects.

    The stop of a broker with 10,000 replicas creates half a million objects, and an import takes a
    tenth longer with collections. The collector would visit all objects of the process several
    times and find next to no garbage. The setting is global, so a block in another thread may end
    the pause early.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
