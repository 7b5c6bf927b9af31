"""A batch made anew with some of its records says the same of those as the old one did."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mockbroker.core.log.compacted_batch import emptied, rebuild
from mockbroker_protocol.records import (
    BatchHeader,
    Record,
    TimestampType,
    batch_payload,
    build_batch,
    check_crc,
    iter_records,
)
from mockbroker_protocol.records.keys import scan_keys

NOW_MS = 1_700_000_000_000
BLOBS = st.one_of(st.none(), st.binary(max_size=4), st.just(b"x" * 300))
RECORDS = st.lists(
    st.builds(
        Record,
        timestamp=st.integers(0, 10_000_000).map(lambda at: NOW_MS - at),
        key=BLOBS,
        value=BLOBS,
        headers=st.lists(st.tuples(st.text(max_size=3), BLOBS), max_size=2).map(tuple),
    ),
    min_size=1,
    max_size=8,
)


def placed(records: list[Record], base_offset: int) -> list[Record]:
    return [
        Record(base_offset + at, each.timestamp, each.key, each.value, each.headers)
        for at, each in enumerate(records)
    ]


def read(batch: bytearray) -> list[Record]:
    check_crc(batch)
    header = BatchHeader(batch)
    assert header.size == len(batch)
    return list(iter_records(header, batch))


@given(RECORDS, st.integers(0, 4), st.one_of(st.none(), st.integers(0, 10**10)), st.data())
def test_the_records_that_stay_are_unchanged(records, codec, later_ms, data):
    base = 1000
    records = placed(records, base)
    batch = build_batch(
        records,
        base_offset=base,
        leader_epoch=5,
        codec=codec,
        producer_id=7,
        producer_epoch=1,
        base_sequence=3,
        transactional=True,
    )
    header, horizon = BatchHeader(batch), None if later_ms is None else NOW_MS + later_ms
    stays = data.draw(st.sets(st.sampled_from(range(len(records))), min_size=1))
    payload = batch_payload(header, batch)
    spans = [each for at, each in enumerate(scan_keys(payload, 0, header.count)) if at in stays]
    copy = rebuild(header, payload, spans, horizon)
    kept = [each for at, each in enumerate(records) if at in stays]
    assert read(copy) == kept
    after = BatchHeader(copy)
    assert (after.base_offset, after.last_offset) == (base, header.last_offset)
    assert (after.leader_epoch, after.codec, after.is_transactional) == (5, codec, True)
    assert (after.producer_id, after.producer_epoch, after.base_sequence) == (7, 1, 3)
    assert after.max_timestamp == max(each.timestamp for each in kept)
    assert after.has_delete_horizon == (horizon is not None)
    assert after.base_timestamp == (kept[0].timestamp if horizon is None else horizon)


@given(RECORDS, st.integers(0, 4))
def test_a_horizon_outlives_the_loss_of_more_records(records, codec):
    records = placed(records, 0)
    batch = build_batch(records, codec=codec)
    for horizon in (NOW_MS + 5, None):
        header = BatchHeader(batch)
        payload = batch_payload(header, batch)
        batch = rebuild(header, payload, scan_keys(payload, 0, header.count)[-1:], horizon)
    assert read(batch) == records[-1:]
    assert BatchHeader(batch).has_delete_horizon
    assert BatchHeader(batch).base_timestamp == NOW_MS + 5


def test_with_log_append_time_every_record_keeps_the_time_of_the_batch():
    records = placed([Record(timestamp=NOW_MS, key=b"k", value=None)] * 2, 0)
    batch = build_batch(
        records, timestamp_type=TimestampType.LOG_APPEND_TIME, append_time=NOW_MS + 77
    )
    header = BatchHeader(batch)
    payload = batch_payload(header, batch)
    for horizon, base_timestamp in ((NOW_MS + 1000, NOW_MS + 1000), (None, NOW_MS + 77)):
        copy = rebuild(header, payload, scan_keys(payload, 0, 2)[1:], horizon)
        assert [record.timestamp for record in read(copy)] == [NOW_MS + 77]
        assert BatchHeader(copy).base_timestamp == base_timestamp


@given(RECORDS, st.integers(0, 4), st.booleans())
def test_an_emptied_batch_keeps_its_place_and_its_producer(records, codec, transactional):
    batch = build_batch(
        placed(records, 50),
        base_offset=50,
        leader_epoch=5,
        codec=codec,
        producer_id=7,
        producer_epoch=2,
        base_sequence=2**31 - 2,
        transactional=transactional,
    )
    before, copy = BatchHeader(batch), emptied(BatchHeader(batch))
    after = BatchHeader(copy)
    assert read(copy) == []
    assert len(copy) == 61
    assert (after.base_offset, after.last_offset) == (50, before.last_offset)
    assert (after.producer_id, after.producer_epoch, after.leader_epoch) == (7, 2, 5)
    assert (after.base_sequence, after.last_sequence) == (2**31 - 2, before.last_sequence)
    assert (after.codec, after.is_transactional, after.count) == (0, transactional, 0)
    assert (after.base_timestamp, after.max_timestamp) == (-1, before.max_timestamp)
