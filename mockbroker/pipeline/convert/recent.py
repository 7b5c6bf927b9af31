"""A table of clients that forgets those that were heard of longest ago.

A run may have any number of clients, one after the other, while few are there at a time.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

CLIENTS_MAX = 20_000


class Recent(OrderedDict[K, V]):
    """At most `CLIENTS_MAX` entries: those that were set last."""

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > CLIENTS_MAX:
            self.popitem(last=False)
