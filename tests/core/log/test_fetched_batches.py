"""A range of a log's batches, as a share fetch reads it."""

from __future__ import annotations

import pytest

from mockbroker.core.log.fetched_batches import FetchedBatches
from mockbroker_protocol.records import BatchHeader
from tests.support.kept_log import KeptLog, bases_of

# The first offset of each batch; the log ends at 9.
BASES = [0, 2, 3, 6]


@pytest.fixture
def kept() -> KeptLog:
    kept = KeptLog()
    for count in (2, 1, 3, 3):
        kept.write(*((b"k", b"v"),) * count)
    return kept


def read(kept: KeptLog, offset: int, count: int) -> FetchedBatches:
    """So many batches from that of an offset on."""
    first = max(at for at, base in enumerate(BASES) if base <= offset)
    size = sum(header.size for header in kept.headers[first : first + count])
    return kept.log.batches_read(offset, size)


@pytest.mark.parametrize(
    ("offset", "count", "bases", "last"), [(0, 4, BASES, 8), (1, 1, [0], 1), (4, 2, [3, 6], 8)]
)
def test_a_read_has_whole_batches_from_that_of_the_offset_on(
    kept: KeptLog, offset: int, count: int, bases: list[int], last: int
) -> None:
    fetched = read(kept, offset, count)
    assert (len(fetched), list(fetched.base_offsets)) == (count, bases)
    assert (fetched.base_offset, fetched.last_offset) == (bases[0], last)
    headers = list(fetched.headers())
    assert [header.base_offset for header, _ in headers] == bases
    assert [BatchHeader(batch).size for _, batch in headers] == [len(batch) for _, batch in headers]


def test_a_read_without_bytes_has_no_batch(kept: KeptLog) -> None:
    fetched = kept.log.batches_read(9, 0)
    assert (len(fetched), list(fetched.headers())) == (0, [])


@pytest.mark.parametrize(("offset", "end"), [(1, 1), (2, 2), (3, 5), (4, 5), (6, 8), (20, 20)])
def test_a_batch_ends_with_its_last_offset(kept: KeptLog, offset: int, end: int) -> None:
    """Below the first batch and above the last one, an offset stands for itself."""
    assert read(kept, 2, 3).batch_end(offset) == end


@pytest.mark.parametrize(
    ("first", "last", "bases"),
    [
        (2, 8, [2, 3, 6]),
        (3, 3, [3]),
        (4, 5, [3]),
        (4, 6, [3, 6]),
        (5, 5, [3]),
        (0, 1, [2]),
        (7, 30, [6]),
    ],
)
def test_the_records_of_a_range_are_those_of_the_batches_that_reach_into_it(
    kept: KeptLog, first: int, last: int, bases: list[int]
) -> None:
    assert list(bases_of(b"".join(read(kept, 2, 3).records(first, last)))) == bases
