"""What the clients of a soak have in common: when they end, how long they live, what they did."""

from __future__ import annotations

import itertools
import threading
from collections import Counter

TOPIC = "soak"
ATOMIC = "soak-atomic"
PAUSE_S = 0.05  # between two turns of a client
TIMEOUT_S = 15.0
# How long a client lives, in turns.
TURNS = 200

ended = threading.Event()
done: Counter[str] = Counter()
failed: Counter[str] = Counter()
numbers = itertools.count()


class Pace:
    """How long the clients of this process pause between turns."""

    pause_s = PAUSE_S


def settings(servers: str, **config: object) -> dict[str, object]:
    named = {name.replace("_", "."): value for name, value in config.items()}
    return {"bootstrap.servers": servers, "log_level": 0, **named}


def headers() -> list[tuple[str, bytes]]:
    return [("mb-id", f"{next(numbers)}".encode())]


def turns() -> range:
    """The turns of one client."""
    return range(TURNS)
