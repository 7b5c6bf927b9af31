"""Cleaning after cleaning, a log holds what a model says that works record by record."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockbroker_protocol.records import BatchHeader, ControlType, Record, iter_records
from tests.support.kept_log import KEYS_MAX, NOW_MS, KeptLog

KEYS = st.sampled_from([b"", b"a", b"b", b"c", b"d" * 70, None])
VALUES = st.one_of(st.none(), st.binary(max_size=3), st.just(b"x" * 200))
BATCH = st.fixed_dictionaries(
    {
        "records": st.lists(
            st.tuples(KEYS, VALUES, st.integers(0, 5000).map(lambda at: NOW_MS + at)),
            min_size=1,
            max_size=6,
        ),
        "codec": st.integers(0, 4),
        "producer": st.sampled_from([-1, -1, 1, 2]),
    }
)
ROUND = st.fixed_dictionaries(
    {
        "batches": st.lists(BATCH, max_size=6),
        "roll": st.booleans(),
        "later_ms": st.sampled_from([0, 400, 1000]),
        "keys_max": st.sampled_from([3, KEYS_MAX]),
        "step": st.sampled_from([1, 7, 10_000]),
    }
)


class Model:
    """What a log holds, worked out record by record."""

    def __init__(self) -> None:
        self.records: dict[int, tuple[int, bytes | None, bytes | None, int]] = {}
        self.horizons: dict[int, int] = {}  # by base offset of the batch

    def write(self, base: int, records: list[tuple[bytes | None, bytes | None, int]]) -> None:
        for at, (key, value, timestamp) in enumerate(records):
            self.records[base + at] = (base, key, value, timestamp)

    def clean(self, dirty: int, end: int, keys_max: int, now_ms: int, retention_ms: int) -> int:
        """One cleaning of what is below `end`; how far it came."""
        newest: dict[bytes, int] = {}
        indexed = end
        for offset, (base, key, _, _) in sorted(self.records.items()):
            if not dirty <= offset < end or key is None:
                continue
            if key not in newest and len(newest) == keys_max:
                indexed = base
                break
            newest[key] = offset
        for offset, (base, key, value, _) in list(self.records.items()):
            outlived = value is None and self.horizons.get(base, now_ms + 1) <= now_ms
            if offset < indexed and (key is None or newest.get(key, -1) > offset or outlived):
                del self.records[offset]
        for offset, (base, _, value, _) in self.records.items():
            if offset < indexed and value is None:
                self.horizons.setdefault(base, now_ms + retention_ms)
        return indexed

    def cut(self, end: int) -> None:
        """The log ends at `end` now."""
        self.records = {offset: each for offset, each in self.records.items() if offset < end}

    @property
    def shown(self) -> list[tuple[int, bytes | None, bytes | None, int]]:
        return [(offset, *record[1:]) for offset, record in sorted(self.records.items())]


def newest_values(records: list[Record]) -> dict[bytes | None, bytes]:
    newest = {record.key: record.value for record in records if record.key is not None}
    return {key: value for key, value in newest.items() if value is not None}


def producer_ends(kept: KeptLog) -> dict[int, tuple[int, int]]:
    return {
        producer_id: (entry.epoch, entry.last_sequence)
        for producer_id, entry in kept.log.producers.entries.items()
    }


@given(st.lists(ROUND, min_size=1, max_size=5))
def test_a_log_cleaned_again_and_again_holds_what_a_model_says(rounds):
    kept = KeptLog(internal_segment_bytes=400, delete_retention_ms=1000)
    model = Model()
    sequences = {1: 0, 2: 0}
    for each in rounds:
        for batch in each["batches"]:
            records, producer = batch["records"], batch["producer"]
            if producer < 0:
                base = kept.write(*records, codec=batch["codec"])
            else:
                base = kept.write_as(producer, sequences[producer], *records, codec=batch["codec"])
                sequences[producer] += len(records)
            model.write(base, records)
        if each["roll"]:
            kept.roll()
        kept.now_ms += each["later_ms"]
        before, ends = newest_values(kept.records), producer_ends(kept)
        dirt, end_offset = kept.dirt, kept.log.end_offset
        cleaning = kept.cleaning(each["keys_max"])
        while not cleaning.step(each["step"]):
            pass
        if cleaning.result is not None:
            reached = model.clean(*dirt[:2], each["keys_max"], kept.now_ms, 1000)
            assert reached == cleaning.result.end_offset
        assert [(r.offset, r.key, r.value, r.timestamp) for r in kept.records] == model.shown
        assert newest_values(kept.records) == before
        assert kept.log.end_offset == end_offset
        assert kept.log.size == len(kept.content) == sum(s.size for s in kept.log.segments)
        kept.log._replay_producers()
        assert producer_ends(kept) == ends

        again = kept.content
        if each["keys_max"] == KEYS_MAX:
            kept.clean()
            kept.clean()
            clean = [r.key for r in kept.records if r.offset < dirt.first_uncleanable_offset]
            assert len(clean) == len(set(clean))
            settled = kept.content
            kept.clean()
            assert kept.content == settled
            if again != settled:  # only an empty batch at the end of an earlier round may go
                assert [
                    (r.offset, r.key, r.value, r.timestamp) for r in kept.records
                ] == model.shown
        for offset in range(end_offset):
            following = [h for h in kept.headers if h.last_offset >= offset]
            fetched = kept.fetched_bases(offset, bytes_max=1)
            assert fetched == [header.base_offset for header in following[:1]]


STEP = st.one_of(
    st.tuples(st.just("write"), BATCH),
    st.tuples(st.sampled_from(["roll", "clean", "clean", "free", "retain"]), st.none()),
    st.tuples(st.sampled_from(["start", "cut"]), st.integers(0, 100)),
    st.tuples(st.just("wait"), st.sampled_from([400, 1000])),
)


@pytest.mark.covers("S30")
@given(st.lists(STEP, max_size=30))
def test_a_log_that_is_cleaned_emptied_and_cut_holds_what_a_model_says(steps):
    """Compaction, retention, deleted records and truncation, in any order."""
    kept = KeptLog(
        cleanup_policy="compact,delete",
        internal_segment_bytes=400,
        delete_retention_ms=1000,
        retention_bytes=900,
        retention_ms=-1,
    )
    log, model = kept.log, Model()
    for what, detail in steps:
        if what == "write":
            model.write(kept.write(*detail["records"], codec=detail["codec"]), detail["records"])
        elif what == "wait":
            kept.now_ms += detail
        elif what == "clean":
            dirt, result = kept.dirt, kept.clean()
            if result is not None:
                model.clean(*dirt[:2], KEYS_MAX, kept.now_ms, 1000)
        elif what == "start":
            log.move_start(min(detail, log.end_offset))
        elif what == "cut":
            bases = [header.base_offset for header in kept.headers]
            if bases:
                log.truncate(bases[detail % len(bases)])
                model.cut(log.end_offset)
        elif what == "retain":
            start = log.start_offset
            kept.retain()
            assert log.start_offset == start or log.size >= 900
        else:
            getattr(log, what)()
        start = log.start_offset
        readable = [(r.offset, r.key, r.value, r.timestamp) for r in kept.records]
        assert [r for r in readable if r[0] >= start] == [r for r in model.shown if r[0] >= start]
        assert len(kept.content) <= log.size == sum(segment.size for segment in log.segments)
        assert log.segments[0].base_offset <= start <= log.end_offset
        for offset in range(start, log.end_offset):
            following = [h.base_offset for h in kept.headers if h.last_offset >= offset]
            assert kept.fetched_bases(offset, bytes_max=1) == following[:1]
        for wanted in (NOW_MS, NOW_MS + 2500, NOW_MS + 5000):
            first = next((r[0] for r in model.shown if r[0] >= start and r[3] >= wanted), None)
            found = log.find_timestamp(wanted)
            assert (None if found is None else found.offset) == first


# -- with transactions -----------------------------------------------------------------------------


def read_committed(kept: KeptLog) -> dict[bytes | None, bytes]:
    """Key -> newest value, as a consumer reads that is told of the aborted transactions: it drops
    what their producers wrote, from the first offset to the marker.
    """
    log, end = kept.log, kept.last_stable_offset
    upcoming = log.producers.aborted_between(0, end)
    aborting: set[int] = set()
    seen: list[Record] = []
    for batch in log.batches():
        header = BatchHeader(batch)
        if header.base_offset >= end:
            break
        while upcoming and upcoming[0].first_offset <= header.last_offset:
            aborting.add(upcoming.pop(0).producer_id)
        if header.is_control:
            aborting.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in aborting):
            seen += [r for r in iter_records(header, batch) if r.offset >= log.start_offset]
    return newest_values(seen)


TRANSACTIONAL = st.one_of(
    st.tuples(st.sampled_from(["plain", "data", "data"]), st.sampled_from([1, 2, 3]), KEYS),
    st.tuples(st.sampled_from(["commit", "abort"]), st.sampled_from([1, 2, 3]), st.none()),
    st.tuples(st.sampled_from(["clean", "clean", "expire"]), st.none(), st.none()),
)


@given(st.lists(TRANSACTIONAL, max_size=60), st.booleans())
def test_consumers_of_committed_records_see_the_same_before_and_after(steps, bumping):
    """However transactions lie across each other and across the rounds; with `bumping`, markers
    raise the epoch of their producer (KIP-890).
    """
    kept = KeptLog(delete_retention_ms=0)
    log, epochs, sequences, ongoing = kept.log, dict.fromkeys((1, 2, 3), 0), {}, set()
    for number, (what, producer, key) in enumerate(steps):
        if what == "plain":
            kept.write((key, b"%d" % number))
        elif what == "data":
            sequence = sequences.get(producer, 0)
            record = (key, b"%d" % number)
            kept.write_as(producer, sequence, record, epoch=epochs[producer], transactional=True)
            sequences[producer] = sequence + 1
            ongoing.add(producer)
        elif what in ("commit", "abort") and producer in ongoing:
            ongoing.discard(producer)
            if bumping:
                epochs[producer] += 1
                sequences[producer] = 0
            kind = ControlType.COMMIT if what == "commit" else ControlType.ABORT
            kept.end(producer, kind, epoch=epochs[producer])
        elif what == "expire":
            for later_ms in (0, 10**6):
                log.producers.expire(NOW_MS + number * 10**7 + later_ms, 10, 600_000)
        elif what == "clean":
            kept.roll()
            before, stable = read_committed(kept), kept.last_stable_offset
            end = kept.dirt.first_uncleanable_offset
            kept.clean()
            left = [record.key for record in kept.records if record.offset < end]
            assert len(left) == len(set(left))
            assert read_committed(kept) == before
            assert kept.last_stable_offset == stable
            spans = [(entry.first_offset, entry.last_offset) for entry in log.producers.aborted]
            assert spans == sorted(spans, key=lambda span: span[1])
