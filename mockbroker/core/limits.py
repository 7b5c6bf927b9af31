"""Protective limits of our own: the configs that bound what one request may cost, and what the
admin server keeps.

What exceeds one is refused, and counted by the limit's name (`Runtime.limits_exceeded`).
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

ADMIN_BODY_BYTES_MAX = "mockbroker.admin.body.bytes.max"
ADMIN_RECORDS_BYTES_MAX = "mockbroker.admin.records.bytes.max"
ADMIN_SNAPSHOTS_MAX = "mockbroker.admin.snapshots.max"
ADMIN_STREAMS_MAX = "mockbroker.admin.streams.max"
BATCH_RECORDS_MAX = "mockbroker.batch.records.max"
BATCH_DECOMPRESSED_BYTES_MAX = "mockbroker.batch.decompressed.bytes.max"
FETCH_SESSION_PARTITIONS_MAX = "mockbroker.fetch.session.partitions.max"
REQUEST_ELEMENTS_MAX = "mockbroker.request.elements.max"
RESPONSE_BYTES_MAX = "mockbroker.response.bytes.max"
RESPONSE_ELEMENTS_MAX = "mockbroker.response.elements.max"
STREAMS_TASKS_MAX = "mockbroker.streams.tasks.max"

UNLIMITED = 1 << 31


class BatchLimits(NamedTuple):
    """The most of one batch: records, and as many headers; bytes when decompressed."""

    records: int
    decompressed_bytes: int


class SessionRoom:
    """The partitions of one broker's fetch sessions, or of its share sessions.

    All sessions have at most `partitions_max`. One has at most `elements_max`, as a request looks
    at all of them. `exceeded` counts by the limit's name what there was no room for.
    """

    __slots__ = ("elements_max", "exceeded", "partitions", "partitions_max")

    def __init__(
        self,
        partitions_max: int = UNLIMITED,
        elements_max: int = UNLIMITED,
        exceeded: Counter[str] | None = None,
    ) -> None:
        self.partitions_max = partitions_max
        self.elements_max = elements_max
        self.exceeded: Counter[str] = Counter() if exceeded is None else exceeded
        self.partitions = 0  # of all sessions

    def resize(self, former: int, size: int) -> bool:
        """Let a session with `former` partitions have `size`; False if there is no room to grow.

        A session that is not open has none.
        """
        if size > former:
            if size > self.elements_max:
                self.exceeded[REQUEST_ELEMENTS_MAX] += 1
                return False
            if self.partitions + size - former > self.partitions_max:
                self.exceeded[FETCH_SESSION_PARTITIONS_MAX] += 1
                return False
        self.partitions += size - former
        return True
