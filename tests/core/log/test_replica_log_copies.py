"""Forks of a log, and stretches of one that are appended to another: the same bytes, once."""

from __future__ import annotations

import random

import pytest

from mockbroker.core.log.batch_store import VIEW_BYTES_MIN
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.log.segments import RollLimits
from mockbroker_protocol.records import BatchHeader
from tests.support.kept_log import KeptLog
from tests.support.requests import NOW_MS, batch_of, timed_batch

LIMITS = RollLimits(segment_bytes=1 << 20, segment_ms=1 << 40)


def append(log: ReplicaLog, batch: bytearray, epoch: int = 0, limits: RollLimits = LIMITS) -> int:
    header = BatchHeader(batch)
    log.maybe_roll(len(batch), header.max_timestamp, NOW_MS, limits)
    view = memoryview(batch)
    base = log.append(view, header.last_offset_delta, header.max_timestamp, epoch)
    log.producers.replay(view)
    return base


def content(log: ReplicaLog, offset: int = 0) -> bytes:
    pieces, _ = log.read(offset, log.end_offset, 1 << 40, at_least_one=True)
    return b"".join(pieces)


def replicate(leader: ReplicaLog, follower: ReplicaLog, bytes_max: int = 1 << 20) -> int:
    """Let the follower fetch until it has everything; how many fetches it took."""
    for fetches in range(10_000):
        taken = leader.read_slice(follower.end_offset, bytes_max)
        if taken is None:
            return fetches
        follower.append_slice(taken, NOW_MS, LIMITS)
    raise AssertionError("the follower never catches up")


def same(left: ReplicaLog, right: ReplicaLog) -> None:
    """Everything that clients can ask of a log is alike in both."""
    assert content(left) == content(right)
    assert left.end_offset == right.end_offset
    assert left.epochs.fork(left.end_offset).entries == right.epochs.entries
    assert left.segments == right.segments
    assert left.find_max_timestamp() == right.find_max_timestamp()
    assert left.producers.entries.keys() == right.producers.entries.keys()
    assert left.producers.first_unstable_offset() == right.producers.first_unstable_offset()


def test_a_fork_has_everything_and_goes_its_own_way():
    """What is appended to either of them later is not seen in the other."""
    log = ReplicaLog()
    append(log, batch_of(b"a", b"b"))
    append(log, batch_of(b"c", producer_id=4, producer_epoch=0, base_sequence=0), epoch=1)
    fork = log.fork()
    same(log, fork)
    append(log, batch_of(b"mine"), epoch=1)
    append(fork, batch_of(b"theirs"), epoch=2)
    assert b"mine" in content(log)
    assert b"mine" not in content(fork)
    assert b"theirs" in content(fork)
    assert b"theirs" not in content(log)
    assert (log.epochs.entries, fork.epochs.entries) == ([(0, 0), (1, 2)], [(0, 0), (1, 2), (2, 3)])


def test_a_fork_forgets_epochs_that_wrote_nothing():
    """A follower knows of an epoch from the batches alone, unlike the leader."""
    log = ReplicaLog()
    log.epochs.assign(3, 0)
    assert log.fork().epochs.entries == []
    append(log, batch_of(b"a"), epoch=3)
    log.epochs.assign(4, 1)
    assert log.fork().epochs.entries == [(3, 0)]


def test_large_batches_are_shared_not_copied():
    log = ReplicaLog()
    batch = batch_of(bytes(VIEW_BYTES_MIN))
    append(log, batch)
    follower = ReplicaLog()
    replicate(log, follower)
    for copy in (log.fork(), follower):
        (piece,), _ = copy.read(0, 1, 1 << 40, at_least_one=True)
        assert piece.obj is batch


@pytest.mark.parametrize(("bytes_max", "fetches"), [(1, 3), (1 << 20, 1)])
def test_a_follower_takes_whole_batches_within_its_limit(bytes_max, fetches):
    log, follower = ReplicaLog(), ReplicaLog()
    for value in (b"a", b"b", b"c"):
        append(log, batch_of(value))
    assert replicate(log, follower, bytes_max) == fetches
    same(log, follower)
    assert log.read_slice(3, 1) is None


@pytest.mark.parametrize(("missing", "fetches"), [(0, 1), (1, 2), (None, 2)])
def test_a_fetch_takes_what_fits_its_limit_exactly(missing, fetches):
    """Of three batches: all, or two and then the last one."""
    log, follower = ReplicaLog(), ReplicaLog()
    for value in (b"a", b"b", b"c"):
        append(log, batch_of(value))
    limit = 2 * log.size // 3 if missing is None else log.size - missing
    assert replicate(log, follower, limit) == fetches
    same(log, follower)


def test_a_fork_knows_what_is_gone():
    """Freed timestamps, holes, and how far the log is clean."""
    kept = KeptLog(internal_segment_bytes="200")
    kept.write((b"first", b"1", NOW_MS + 9))
    for version in range(6):
        kept.write((b"k", b"%d" % version), (b"other", b"%d" % version))
    kept.clean()
    kept.write((b"last", b"1"))
    fork = kept.log.fork()
    for offset in range(kept.log.end_offset):
        assert content(fork, offset) == content(kept.log, offset)
    kept.log.move_start(kept.log.end_offset)
    for _ in range(2):
        fork = kept.log.fork()
        assert fork.first_dirty_offset == kept.log.first_dirty_offset > 0
        assert fork.find_max_timestamp() == kept.log.find_max_timestamp()
        same(kept.log, fork)
        kept.write((b"last", b"2"))


@pytest.mark.parametrize("bytes_max", [1, 1 << 20])
def test_a_follower_of_a_compacted_log_is_read_across_the_same_holes(bytes_max):
    kept, follower = KeptLog(), ReplicaLog()
    kept.write((b"first", b"1"))
    for version in range(6):
        kept.write((b"k%d" % (version % 2), b"%d" % version), (b"other", b"%d" % version))
    kept.roll()
    kept.clean()
    replicate(kept.log, follower, bytes_max)
    for offset in range(kept.log.end_offset):
        assert content(follower, offset) == content(kept.log, offset)


def test_a_follower_starts_in_the_middle_when_the_leader_does():
    """The leader's beginning is gone; the follower's segments and timestamps are its own."""
    log = ReplicaLog()
    for timestamp in (900, 100, 200):
        append(log, timed_batch(timestamp))
    log.move_start(1)
    follower = ReplicaLog()
    follower.truncate_fully(log.start_offset)
    replicate(log, follower)
    assert (follower.start_offset, follower.end_offset) == (1, 3)
    assert content(follower, 1) == content(log, 1)
    found = follower.find_max_timestamp()
    assert found is not None
    assert (found.timestamp, found.offset) == (200, 2)


def test_a_log_that_ends_in_a_hole_is_followed_to_its_end():
    """After a cut inside of a batch there is nothing to send, and yet the offset counts."""
    log = ReplicaLog()
    append(log, batch_of(b"a"))
    append(log, batch_of(b"b", b"c"))
    earlier = log.fork()
    earlier.truncate(1)
    log.truncate(2)
    assert (log.end_offset, log.batch_count) == (2, 1)
    for follower in (ReplicaLog(), earlier):
        replicate(log, follower)
        assert follower.end_offset == 2
    append(log, batch_of(b"d"))
    for follower in (ReplicaLog(), earlier):
        replicate(log, follower)
        assert content(follower) == content(log)


@pytest.mark.parametrize("seed", range(20))
def test_any_schedule_of_appends_cuts_and_fetches_ends_alike(seed):
    """Equal prefixes and equal appends give equal logs, whatever the fetches' sizes are."""
    draw = random.Random(seed)
    log, follower = ReplicaLog(), ReplicaLog()
    limits = LIMITS
    epoch = 0
    for _ in range(120):
        step = draw.random()
        if step < 0.6:
            size = draw.choice([1, 10, VIEW_BYTES_MIN])
            fields = {}
            if draw.random() < 0.3:
                producer = draw.randrange(3)
                fields = {"producer_id": producer, "producer_epoch": 0, "base_sequence": 0}
            values = [bytes(size)] * draw.randrange(1, 4)
            timestamp = NOW_MS + draw.randrange(1000)
            append(log, batch_of(*values, timestamp=timestamp, **fields), epoch, limits)
        elif step < 0.7:
            epoch += 1
        elif step < 0.8 and log.end_offset:
            follower.truncate(draw.choice(list(bases(log))))
        elif step < 0.9:
            follower = follower.fork()
        else:
            taken = log.read_slice(follower.end_offset, draw.choice([1, 100, 1 << 16]))
            if taken is not None:
                follower.append_slice(taken, NOW_MS, limits)
    replicate(log, follower)
    same(log, follower)
    same(log, log.fork())


def bases(log: ReplicaLog) -> list[int]:
    return [BatchHeader(batch).base_offset for batch in log.batches()]
