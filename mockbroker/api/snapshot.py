"""A snapshot by its name."""

from __future__ import annotations

from typing import NamedTuple


class Snapshot(NamedTuple):
    """A snapshot in the memory of a cluster; `taken_ms` is on the cluster's clock."""

    name: str
    taken_ms: int
