"""Protective limits of our own: the configs that bound what one request may cost, and what the
admin server keeps.

What exceeds one is refused, and counted by the limit's name (`Runtime.limits_exceeded`).
"""

from __future__ import annotations

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


class BatchLimits(NamedTuple):
    """The most of one batch: records, and as many headers; bytes when decompressed."""

    records: int
    decompressed_bytes: int
