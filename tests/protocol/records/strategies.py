"""Records and batches for property tests."""

from __future__ import annotations

from hypothesis import strategies as st

from mockbroker_protocol.records import Record

blobs = st.none() | st.binary(max_size=300)
header_lists = st.lists(st.tuples(st.text(max_size=20), blobs), max_size=4).map(tuple)
# Deltas must fit 64 bits, so timestamps stay well inside.
timestamps = st.integers(-1, 2**61)
records = st.builds(
    Record,
    timestamp=timestamps,
    key=blobs,
    value=blobs,
    headers=header_lists,
)
record_lists = st.lists(records, min_size=1, max_size=20)


def numbered(records: list[Record], base_offset: int = 0) -> list[Record]:
    """The same records with consecutive offsets."""
    return [
        Record(base_offset + index, record.timestamp, record.key, record.value, record.headers)
        for index, record in enumerate(records)
    ]
