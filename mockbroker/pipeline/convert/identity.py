"""The ids of records, from their headers or by the tracking of their topic."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from mockbroker.core.journal.tracking import Tracking, parse_path, value_at
from mockbroker.pipeline.convert.batches import OpenedBatch
from mockbroker_protocol.records import BatchHeader, Record, RecordsError, iter_records

Ids = list[str | None]
_Identify = Callable[[Record], str | None]


class Identities:
    """The identity of the records of each tracked topic."""

    def __init__(self) -> None:
        self._by_topic: dict[str, _Identify | None] = {}

    def track(self, tracking: Tracking) -> None:
        """Set the identity of a topic's records from now on; None for their key and value."""
        self._by_topic[tracking.topic] = _identify(tracking)

    def begin(self, tracked: Iterable[Tracking]) -> None:
        """Set the trackings at the start of the run."""
        for tracking in tracked:
            self.track(tracking)

    def identified(
        self, topic: str | None, opened: OpenedBatch, header: BatchHeader, batch: memoryview
    ) -> OpenedBatch:
        """The records with ids, if their topic is tracked. A header `mb-id` has priority."""
        if topic not in self._by_topic or not len(opened):
            return opened
        identify = self._by_topic[topic]
        found: Ids
        if identify is None:
            found = [f"{number & (1 << 64) - 1:016x}" for number in opened.value_hashes.tolist()]
        else:
            try:
                found = [identify(record) for record in iter_records(header, batch)]
            except RecordsError:
                return opened
        own: Ids = opened.ids or [None] * len(opened)
        ids = [mine if mine is not None else given for mine, given in zip(own, found, strict=True)]
        if all(each is None for each in ids):
            return opened
        # Not by `_replace`, which checks the length, here the number of records.
        return OpenedBatch(
            opened.deltas,
            opened.timestamps,
            opened.value_hashes,
            opened.key_hashes,
            opened.has_key,
            ids,
        )


def _identify(tracking: Tracking) -> _Identify | None:
    if tracking.header is not None:
        return _by_header(tracking.header)
    return None if tracking.key is None else _by_path(tracking.key)


def _by_header(name: str) -> _Identify:
    def identify(record: Record) -> str | None:
        values = [value for key, value in record.headers if key == name and value is not None]
        return bytes(values[-1]).decode("utf-8", "replace") if values else None

    return identify


def _by_path(text: str) -> _Identify:
    path = parse_path(text)

    def identify(record: Record) -> str | None:
        try:
            found = value_at(path, msgspec.json.decode(record.value or b""))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        if found is None or isinstance(found, str):
            return found
        return msgspec.json.encode(found, order="sorted").decode()

    return identify
