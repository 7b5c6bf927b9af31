"""When a segment is full, or too old, and the next one begins (LogSegment.shouldRoll)."""

from __future__ import annotations

import pytest

from mockbroker.core.configs.values import ClusterConfigs, TopicConfigs
from mockbroker.core.log.segments import RollLimits, Segments
from tests.support.kept_log import NOW_MS, KeptLog


class Filling:
    """Segments that batches of given sizes and timestamps are admitted to, one record each."""

    def __init__(self, **limits: int) -> None:
        self.limits = RollLimits(**{"segment_bytes": 10_000, "segment_ms": 10_000, **limits})
        self.segments = Segments(0)
        self.end_offset = self.end_position = 0
        self.now_ms = NOW_MS

    def admit(self, size: int = 100, timestamp: int = NOW_MS) -> bool:
        rolled = self.segments.admit(
            size, timestamp, self.now_ms, self.limits, self.end_offset, self.end_position
        )
        self.segments.max_timestamps[-1] = max(self.segments.max_timestamps[-1], timestamp)
        self.end_offset += 1
        self.end_position += size
        return rolled


def test_a_segment_takes_batches_up_to_exactly_segment_bytes():
    filling = Filling(segment_bytes=300)
    assert [filling.admit() for _ in range(7)] == [False] * 3 + [True, False, False, True]
    assert filling.segments.base_offsets == [0, 3, 6]
    assert filling.segments.positions == [0, 300, 600]


def test_a_batch_larger_than_a_segment_has_one_to_itself():
    filling = Filling(segment_bytes=300)
    assert [filling.admit(size) for size in (500, 100, 500)] == [False, True, True]


def test_the_age_of_a_segment_is_the_timestamp_of_its_first_batch():
    filling = Filling(segment_ms=1000)
    filling.admit(timestamp=NOW_MS)
    filling.now_ms += 50_000  # the clock does not count
    assert not filling.admit(timestamp=NOW_MS + 1000)
    assert filling.admit(timestamp=NOW_MS + 1001)
    assert not filling.admit(timestamp=NOW_MS + 5)
    assert not filling.admit(timestamp=NOW_MS + 2001)
    assert filling.admit(timestamp=NOW_MS + 2002)


def test_without_a_timestamp_in_the_first_batch_the_clock_counts():
    filling = Filling(segment_ms=1000)
    filling.admit(timestamp=-1)
    filling.now_ms += 1000
    assert not filling.admit(timestamp=NOW_MS + 90_000)
    filling.now_ms += 1
    assert filling.admit(timestamp=-1)


def test_a_batch_without_a_timestamp_finds_no_segment_too_old():
    filling = Filling(segment_ms=1000)
    filling.admit()
    filling.now_ms += 50_000
    assert not filling.admit(timestamp=-1)


def test_a_segment_ends_when_its_offset_index_is_full():
    """An entry of 8 bytes for more than index.interval.bytes each."""
    filling = Filling(index_bytes=40, index_interval_bytes=250, segment_bytes=1 << 30)
    # The same timestamp throughout: the time index has one entry only.
    rolled = [filling.admit() for _ in range(20)]
    assert [at for at, each in enumerate(rolled) if each] == [16]
    # Entries were made before batches 3, 6, 9, 12 and 15, with 300 bytes since the last one.


def test_a_segment_ends_when_its_time_index_is_full():
    """An entry of 12 bytes wherever the other has one and time went on; one place stays free."""
    filling = Filling(index_bytes=36, index_interval_bytes=250, segment_bytes=1 << 30)
    rolled = [filling.admit(timestamp=NOW_MS + at) for at in range(15)]
    assert [at for at, each in enumerate(rolled) if each] == [7, 14]


def test_changed_limits_count_from_the_next_batch_on():
    filling = Filling(segment_bytes=1000)
    filling.admit()
    filling.limits = RollLimits(segment_bytes=150, segment_ms=10_000)
    assert filling.admit()


def test_an_offset_belongs_to_the_last_segment_that_begins_at_or_below_it():
    filling = Filling(segment_bytes=300)
    for _ in range(7):
        filling.admit()
    assert [filling.segments.index_of(offset) for offset in (0, 2, 3, 5, 6, 99)] == [
        *(0, 0, 1, 1, 2, 2),
    ]


def many(start: int, *steps: int) -> list[int]:
    """Timestamps in an order of no meaning, each `steps` above `start`."""
    return [start + steps[at % len(steps)] for at in range(45)]


@pytest.mark.parametrize(
    ("limits", "timestamps"),
    [
        ({"segment_bytes": 1000, "index_interval_bytes": 200}, many(NOW_MS, *range(0, 60, 7))),
        ({"index_bytes": 40, "index_interval_bytes": 450}, many(NOW_MS, *range(0, 50, 7))),
        ({"segment_bytes": 100_000}, many(-1, 0, 4, 1, 0, 2)),
    ],
    ids=["full segments", "full indexes", "no timestamp in the first batch"],
)
def test_a_log_asks_the_same_question_however_often_it_was_answered(limits, timestamps):
    """Most batches are admitted by a short cut, which must not outlive what it was made for."""
    direct = Filling(**{"segment_ms": 50, **limits})
    kept = KeptLog(cleanup_policy="delete")
    sizes = [100, 150, 71, 300, 90, 90, 90, 200, 71] * 5
    for at, (size, timestamp) in enumerate(zip(sizes, timestamps, strict=True)):
        direct.now_ms += 10
        rolled = kept.log.maybe_roll(size, timestamp, direct.now_ms, direct.limits)
        assert rolled == direct.admit(size, timestamp)
        kept.log.put(memoryview(bytearray(size)), at, timestamp)
        kept.log.end_offset = at + 1
        maxima = kept.log.layout.max_timestamps
        maxima[-1] = max(maxima[-1], timestamp)
    assert kept.log.layout.base_offsets == direct.segments.base_offsets
    assert len(direct.segments) > 1


def test_a_log_with_changed_limits_asks_again():
    kept = KeptLog(cleanup_policy="delete")
    kept.write((None, b"a"))
    kept.write((None, b"b"))
    assert kept.log.layout.base_offsets == [0]
    kept.configs = kept.topic_configs({"internal_segment_bytes": "100"})
    kept.write((None, b"c"))
    assert kept.log.layout.base_offsets == [0, 2]


def test_truncation_makes_the_segment_before_active_again_with_its_age():
    kept = KeptLog(cleanup_policy="delete", segment_ms=1000)
    kept.write((None, b"a", NOW_MS))
    kept.write((None, b"b", NOW_MS + 1000))
    kept.write((None, b"c", NOW_MS + 1001))
    assert kept.log.layout.base_offsets == [0, 2]
    kept.log.truncate(1)
    assert kept.log.layout.max_timestamps == [NOW_MS]
    kept.write((None, b"d", NOW_MS + 1000))
    kept.write((None, b"e", NOW_MS + 1001))
    assert kept.log.layout.base_offsets == [0, 2]


def test_a_segment_truncated_to_nothing_begins_again_with_the_next_batch():
    kept = KeptLog(cleanup_policy="delete", segment_ms=1000)
    kept.write((None, b"a", NOW_MS))
    kept.log.truncate(0)
    kept.write((None, b"b", NOW_MS + 5000))
    kept.write((None, b"c", NOW_MS + 6000))
    assert kept.log.layout.base_offsets == [0]
    kept.write((None, b"d", NOW_MS + 6001))
    assert kept.log.layout.base_offsets == [0, 2]


def test_the_limits_of_the_indexes_are_those_of_kafkas_configs_unless_they_are_given():
    limits = TopicConfigs(ClusterConfigs({}), {}).roll_limits
    assert RollLimits(limits.segment_bytes, limits.segment_ms) == limits


def test_each_segment_has_an_age_of_its_own():
    filling = Filling()
    times = (0, 10_001, 20_001, 20_002, 30_002)
    assert [filling.admit(timestamp=NOW_MS + at) for at in times] == [
        *(False, True, False, True, False),
    ]
    filling.now_ms += 10_000
    assert filling.admit(timestamp=NOW_MS + 30_003)


def test_a_copy_of_segments_goes_on_as_the_original_and_by_itself():
    one, other = (Filling(segment_bytes=1000, index_interval_bytes=200) for _ in range(2))
    for filling in (one, other):
        for at in range(25):
            filling.now_ms += 1
            filling.admit(timestamp=NOW_MS + 5 * at)
    columns = one.segments._columns()
    before = [list(column) for column in columns]
    one.segments = one.segments.fork()
    assert [list(column) for column in one.segments._columns()] == before
    for at in range(25, 60):
        for filling in (one, other):
            filling.admit(timestamp=NOW_MS + 5 * at)
        assert one.segments.base_offsets == other.segments.base_offsets
    assert one.segments._columns() == other.segments._columns()
    assert [list(column) for column in columns] == before


def test_an_index_without_room_is_full_with_its_first_entry():
    """It has one before batches 3 and 7; the segment without an entry goes on."""
    filling = Filling(index_bytes=4, index_interval_bytes=250, segment_bytes=1 << 30)
    rolled = [filling.admit() for _ in range(9)]
    assert [at for at, each in enumerate(rolled) if each] == [4, 8]


def test_a_segment_that_is_active_again_after_a_truncation_is_not_larger_than_others():
    kept = KeptLog(cleanup_policy="delete", internal_segment_bytes=300)
    for _ in range(6):
        kept.write((b"k", b"v"))
    assert kept.log.layout.base_offsets == [0, 4]
    kept.log.truncate(3)
    for _ in range(3):
        kept.write((b"k", b"v"))
    assert kept.log.layout.base_offsets == [0, 4]


def test_a_segment_without_timestamps_that_is_active_again_is_as_old_as_its_last_append():
    kept = KeptLog(cleanup_policy="delete", segment_ms=1000)
    for _ in range(2):
        kept.write((b"k", b"v", -1))
    kept.roll()
    kept.write((b"k", b"v", -1))
    kept.log.truncate(1)
    kept.now_ms += 1000
    kept.write((b"k", b"v", -1))
    assert kept.log.layout.base_offsets == [0]
    kept.now_ms += 1
    kept.write((b"k", b"v", -1))
    assert kept.log.layout.base_offsets == [0, 2]
