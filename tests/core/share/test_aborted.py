"""Records of aborted transactions among those that a fetch has acquired."""

from __future__ import annotations

from mockbroker.core.share.aborted import without
from mockbroker.core.share.acquisition import AcquiredRecords


def test_ranges_are_divided_by_what_is_left_out_of_them() -> None:
    ranges = [AcquiredRecords(0, 9, 1), AcquiredRecords(10, 19, 2)]
    left_out = [(-3, -1), (2, 3), (8, 11), (19, 19), (25, 30)]
    assert without(ranges, left_out) == [
        AcquiredRecords(0, 1, 1),
        AcquiredRecords(4, 7, 1),
        AcquiredRecords(12, 18, 2),
    ]


def test_a_range_that_is_left_out_as_a_whole_is_gone() -> None:
    assert without([AcquiredRecords(5, 6, 1)], [(5, 6)]) == []
