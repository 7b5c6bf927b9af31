"""Topics for one turn, and what turns a list of times into figures."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from contextlib import contextmanager

from bench.model import Running

_numbers = itertools.count(1)


@contextmanager
def fresh_topic(running: Running) -> Iterator[str]:
    """A topic of one partition that goes away after the turn, so that peers do not fill up.

    After a turn that failed it stays: a peer that is gone would be waited for in vain.
    """
    topic = f"bench-{next(_numbers)}"
    running.peer.create_topic(running, topic)
    yield topic
    running.peer.delete_topic(running, topic)


def percentile(values: list[float], percent: float) -> float:
    """The smallest value that at least `percent` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]
