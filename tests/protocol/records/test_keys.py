"""The keys of records, read without the rest, are those that a full reading finds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockbroker_protocol.records import (
    BatchHeader,
    InvalidRecordError,
    Record,
    batch_payload,
    build_batch,
    scan_records,
)
from mockbroker_protocol.records.keys import scan_keys

BLOBS = st.one_of(
    st.none(), st.binary(max_size=3), st.sampled_from([b"x" * size for size in (70, 9000)])
)
RECORDS = st.lists(
    st.builds(
        Record,
        timestamp=st.sampled_from([0, 63, 64, -65, 10**6, 10**13]),
        key=BLOBS,
        value=BLOBS,
        headers=st.lists(st.tuples(st.text(max_size=2), BLOBS), max_size=2).map(tuple),
    ),
    min_size=1,
    max_size=80,
)


def payload_of(records: list[Record]) -> bytes:
    batch = build_batch(records)
    return batch_payload(BatchHeader(batch), batch)


@given(RECORDS)
def test_spans_keys_and_deltas_are_those_of_the_full_walk(records):
    payload = payload_of(records)
    expected = [
        (
            span.start,
            span.end,
            span.timestamp_delta,
            span.offset_delta,
            None
            if span.key_length < 0
            else payload[span.key_start : span.key_start + span.key_length],
            span.value_length >= 0,
        )
        for span in scan_records(payload, len(records))
    ]
    spans = scan_keys(payload, 0, len(records))
    assert [(*span[:3], *span[4:]) for span in spans] == expected


def test_a_walk_goes_on_where_the_last_one_ended():
    payload = payload_of([Record(key=b"k%d" % at) for at in range(200)])
    whole = scan_keys(payload, 0, 200)
    first = scan_keys(payload, 0, 77)
    assert first + scan_keys(payload, first[-1][1], 123) == whole
    assert scan_keys(payload, 0, 0) == []


@given(RECORDS, st.data())
def test_damage_is_an_error_or_gives_spans_within_the_payload(records, data):
    payload = bytearray(payload_of(records))
    at = data.draw(st.integers(0, len(payload) - 1))
    payload[at] = data.draw(st.integers(0, 255))
    del payload[data.draw(st.integers(0, len(payload))) :]
    try:
        spans = scan_keys(bytes(payload), 0, len(records))
    except InvalidRecordError:
        return
    assert len(spans) == len(records)
    for start, end, _, deltas_at, _, key, _ in spans:
        assert 0 <= start < deltas_at < end <= len(payload)
        assert key is None or len(key) < end - start


@pytest.mark.parametrize("cut", [1, 5, 6])
def test_a_payload_that_ends_early_is_an_error(cut):
    payload = payload_of([Record(key=b"k", value=b"v")])
    with pytest.raises(InvalidRecordError):
        scan_keys(payload[:-cut], 0, 1)
    with pytest.raises(InvalidRecordError):
        scan_keys(payload, 0, 2)
