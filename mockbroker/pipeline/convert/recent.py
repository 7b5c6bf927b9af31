"""A table that forgets the entries that were set longest ago.

A run may have any number of clients and topics, one after the other, while few exist at a time.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

ENTRIES_MAX = 20_000


class Recent(OrderedDict[K, V]):
    """At most `ENTRIES_MAX` entries: those that were set last."""

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        if len(self) > ENTRIES_MAX:
            self.popitem(last=False)
