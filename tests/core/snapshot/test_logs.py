"""Logs in a file: after any history of a log, the file's log is equal."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockbroker.core.log.file_state import FileState
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.snapshot.image import LogImage
from mockbroker.core.snapshot.logs import (
    BadLogError,
    LogDelta,
    apply,
    change_of,
    changes_of_whole,
    copy_of,
    is_pristine,
    set_stored_from,
)
from mockbroker_protocol.records import ControlType
from tests.support.kept_log import KeptLog
from tests.support.stored_clusters import log_state


class FiledLog:
    """A log, and what a file holds of it."""

    def __init__(self, kept: KeptLog) -> None:
        self.kept = kept
        self.stored = kept.log.file_state = FileState(1)
        self.filed: ReplicaLog | None = None
        self.bytes_written = 0

    def flush(self) -> LogDelta:
        change, pieces = change_of(self.kept.log, self.kept.settled, self.stored)
        wire = msgspec.msgpack.encode(change)
        body = b"".join(pieces)
        self.bytes_written = len(body)
        read = msgspec.msgpack.decode(wire, type=LogDelta)
        self.filed = apply(self.filed, read, memoryview(body))
        return change

    def check(self) -> None:
        assert self.filed is not None
        assert log_state(self.filed) == log_state(self.kept.log)


@pytest.fixture
def kept() -> KeptLog:
    return KeptLog(segment_bytes=1 << 20)


def test_appended_batches_are_written_once(kept):
    filed = FiledLog(kept)
    kept.write((b"k", b"v"))
    filed.flush()
    filed.check()
    kept.write((b"k", b"w"))
    filed.flush()
    assert filed.bytes_written == len(list(kept.log.batches())[1])
    filed.check()
    filed.flush()
    assert filed.bytes_written == 0


def test_a_removal_at_the_front_writes_nothing_again(kept):
    filed = FiledLog(kept)
    for at in range(20):
        kept.write((b"k%d" % at, b"v"))
    filed.flush()
    kept.log.move_start(15)
    kept.log.free()
    change = filed.flush()
    assert filed.bytes_written == 0
    assert change.keep_from == 15
    filed.check()


def test_after_a_truncation_only_later_batches_are_written(kept):
    filed = FiledLog(kept)
    kept.write(*((b"k", b"v"),) * 3)
    kept.write(*((b"k", b"v"),) * 3)
    filed.flush()
    kept.log.truncate(4)  # in the middle of the second batch, which goes as a whole
    kept.write((b"other", b"v"))
    filed.flush()
    assert filed.bytes_written == len(list(kept.log.batches())[1])
    filed.check()


def test_a_log_that_was_restored_is_continued_with_what_is_appended_only(kept):
    kept.write_as(1, 0, (b"k", b"v"))
    stored = kept.log.file_state = FileState(1)
    set_stored_from(LogImage(kept.log, kept.settled), stored)
    kept.write_as(1, 1, (b"k", b"w"))
    change, pieces = change_of(kept.log, kept.settled, stored)
    assert b"".join(pieces) == bytes(list(kept.log.batches())[1])
    assert (change.producers, change.epochs, change.freed_maxima) == (None, None, None)
    assert stored.rewrites == 0


def test_compacted_batches_are_written_again():
    kept = KeptLog(segment_bytes=1 << 20)
    filed = FiledLog(kept)
    for at in range(10):
        kept.write((b"k%d" % (at % 2), b"v%d" % at))
    kept.roll()
    kept.write((b"active", b"v"))
    filed.flush()
    assert kept.clean() is not None
    filed.flush()
    compacted = list(kept.log.batches())
    assert filed.bytes_written == sum(map(len, compacted[:-1]))
    filed.check()


def test_a_large_batch_is_as_good_as_a_small_one(kept):
    filed = FiledLog(kept)
    for size in (40_000, 10, 100_000, 10):
        kept.write((b"k", b"v" * size))
        filed.flush()
    filed.check()


@pytest.mark.parametrize("bytes_max", [1, 200, 1000, 1 << 20])
def test_a_whole_log_can_be_written_in_pieces(kept, bytes_max):
    for at in range(30):
        kept.write_as(1, at, (b"k", b"v" * (at * 7)))
        if at % 7 == 0:
            kept.log.roll()
    filed = None
    parts = list(changes_of_whole(3, LogImage(copy_of(kept.log), 30), bytes_max))
    for change, pieces in parts:
        filed = apply(filed, change, memoryview(b"".join(pieces)))
    assert filed is not None
    assert log_state(filed) == log_state(kept.log)
    largest = max(map(len, kept.log.batches()))
    assert all(change.tail_bytes < bytes_max + largest for change, _ in parts)
    if bytes_max == 1:
        assert len(parts) == 30


def test_a_log_without_batches_is_one_piece(kept):
    kept.write((b"k", b"v"))
    kept.log.truncate_fully(7)
    ((change, pieces),) = changes_of_whole(3, LogImage(copy_of(kept.log), 7), 1000)
    assert pieces == []
    assert log_state(apply(None, change, memoryview(b""))) == log_state(kept.log)


def test_a_new_log_is_pristine_until_something_is_appended():
    kept = KeptLog()
    kept.log.epochs.assign(0, 0)
    assert is_pristine(kept.log, 0)
    assert not is_pristine(kept.log, 1)
    kept.write((b"k", b"v"))
    assert not is_pristine(kept.log, 0)


def test_a_copy_shares_the_bytes_and_changes_independently(kept):
    kept.write((b"k", b"v"))
    kept.log.epochs.assign(3, kept.log.end_offset)  # an epoch that has written nothing yet
    twin = copy_of(kept.log)
    assert log_state(twin) == log_state(kept.log)
    before = log_state(twin)
    kept.write((b"k", b"w"))
    assert log_state(twin) == before


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda body: body[:-1], "another number of bytes"),
        (lambda body: body[:8] + (500).to_bytes(4, "big") + body[12:], "does not follow"),
        (lambda body: body[:8] + (10).to_bytes(4, "big") + body[12:], "does not follow"),
    ],
)
def test_bytes_that_are_no_batches_are_refused(kept, damage, why):
    kept.write((b"k", b"v"))
    change, pieces = change_of(kept.log, 1, FileState(1))
    with pytest.raises(BadLogError, match=why):
        apply(None, change, memoryview(damage(b"".join(pieces))))


RECORD = st.tuples(
    st.sampled_from([b"a", b"b", b"c"]), st.one_of(st.none(), st.binary(max_size=40))
)
STEP = st.one_of(
    st.tuples(st.just("write"), st.lists(RECORD, min_size=1, max_size=4)),
    st.tuples(st.just("produce"), st.tuples(st.sampled_from([1, 2]), st.booleans())),
    st.tuples(st.just("end"), st.tuples(st.sampled_from([1, 2]), st.booleans())),
    st.tuples(st.just("roll"), st.none()),
    st.tuples(st.just("clean"), st.none()),
    st.tuples(st.just("truncate"), st.integers(0, 60)),
    st.tuples(st.just("start"), st.integers(0, 60)),
    st.tuples(st.just("free"), st.none()),
    st.tuples(st.just("epoch"), st.none()),
    st.tuples(st.just("later"), st.sampled_from([1, 5000])),
    st.tuples(st.just("flush"), st.none()),
)


@given(st.lists(STEP, max_size=40), st.sampled_from([120, 400, 1 << 20]))
def test_any_history_of_a_log_is_the_same_in_the_file(steps, segment_bytes):
    kept = KeptLog(internal_segment_bytes=segment_bytes, segment_ms=3000)
    filed = FiledLog(kept)
    sequences = {1: 0, 2: 0}
    epoch = 0
    for step, argument in steps:
        log = kept.log
        match step:
            case "write":
                kept.write(*argument)
            case "produce":
                producer_id, transactional = argument
                is_open = log.producers.has_ongoing_transaction(producer_id)
                kept.write_as(
                    producer_id,
                    sequences[producer_id],
                    (b"p", b"v"),
                    transactional=transactional or is_open,
                )
                sequences[producer_id] += 1
            case "end":
                kind = ControlType.COMMIT if argument[1] else ControlType.ABORT
                kept.end(argument[0], kind)
            case "roll":
                kept.roll()
            case "clean":
                kept.clean()
            case "truncate":
                log.truncate(max(argument, log.start_offset))
            case "start":
                log.move_start(min(argument, log.end_offset))
            case "free":
                log.free()
            case "epoch":
                epoch += 1
                log.epochs.assign(epoch, log.end_offset)
            case "later":
                kept.now_ms += argument
            case "flush":
                filed.flush()
                filed.check()
    filed.flush()
    filed.check()
