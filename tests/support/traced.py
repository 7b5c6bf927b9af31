"""How much memory Python's objects take, for tests of what is kept and of peaks."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager


class Traced:
    """The bytes of the objects that a block has made: those `kept` at its end, and the `peak`."""

    kept = peak = 0


@contextmanager
def traced() -> Iterator[Traced]:
    """Trace the memory of a block. The numbers are there once it has ended without an error."""
    found = Traced()
    tracemalloc.start()
    try:
        yield found
        found.kept, found.peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
