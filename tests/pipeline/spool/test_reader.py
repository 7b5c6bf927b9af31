"""A spool is read completely, while it grows, or up to its damage."""

from __future__ import annotations

import pytest

from mockbroker.core.journal.entries import RequestEntry
from mockbroker.core.journal.journal import Gap
from mockbroker.pipeline.spool.format import FORMAT, RunEnded, RunStarted, encode
from mockbroker.pipeline.spool.reader import SpoolReader, spooled_runs
from mockbroker.pipeline.store import StoreError

STARTED = RunStarted(FORMAT, "r", "c", 1, 2, 0, [])


def request(seq):
    return RequestEntry(seq, 1, 1, 1, 1, b"frame")


def file(path, number):
    path.mkdir(exist_ok=True, parents=True)
    return path / f"{number:06}.spool"


def put(path, number, *entries, cut=0):
    data = b"".join(map(encode, entries))
    with file(path, number).open("ab") as stream:
        stream.write(data[: len(data) - cut])


def gaps(reader):
    return [(each.first_seq, each.last_seq) for each in reader if isinstance(each, Gap)]


def test_files_are_read_one_behind_the_other(tmp_path):
    put(tmp_path, 0, STARTED, request(1))
    put(tmp_path, 1, request(2), RunEnded(2, 1, 1))
    reader = SpoolReader(tmp_path)
    assert list(reader) == [STARTED, request(1), request(2), RunEnded(2, 1, 1)]
    assert reader.ended
    assert reader.torn == ""


def test_what_comes_while_reading_is_read(tmp_path):
    put(tmp_path, 0, STARTED)
    later = [
        lambda: put(tmp_path, 0, request(1), cut=3),
        lambda: file(tmp_path, 0).write_bytes(encode(STARTED) + encode(request(1))),
        lambda: put(tmp_path, 1, request(2)),
        lambda: put(tmp_path, 1, RunEnded(2, 1, 1)),
    ]

    def wait():
        later.pop(0)()
        return True

    assert list(SpoolReader(tmp_path, wait)) == [STARTED, request(1), request(2), RunEnded(2, 1, 1)]
    assert later == []


def test_a_torn_tail_is_told_and_the_rest_is_used(tmp_path):
    put(tmp_path, 0, STARTED, request(1), request(2), cut=4)
    reader = SpoolReader(tmp_path)
    assert list(reader) == [STARTED, request(1)]
    assert "000000.spool at byte" in reader.torn
    assert not reader.ended


def test_damage_in_the_middle_is_a_gap(tmp_path):
    put(tmp_path, 0, STARTED, request(1), request(2), cut=4)
    put(tmp_path, 1, request(5), RunEnded(5, 1, 1))
    reader = SpoolReader(tmp_path)
    found = list(reader)
    assert isinstance(found[2], Gap)
    assert (found[2].first_seq, found[2].last_seq) == (2, 4)
    assert found[3:] == [request(5), RunEnded(5, 1, 1)]
    assert reader.torn


def test_a_spool_without_its_first_file_is_refused(tmp_path):
    put(tmp_path, 0, request(7))
    with pytest.raises(StoreError, match="its first file is missing"):
        list(SpoolReader(tmp_path))


def test_a_spool_of_another_format_is_refused(tmp_path):
    put(tmp_path, 0, RunStarted(9, "r", "c", 1, 2, 0, []))
    with pytest.raises(StoreError, match="format 9"):
        list(SpoolReader(tmp_path))


def test_what_is_no_spool_is_refused(tmp_path):
    with pytest.raises(StoreError, match="there is no spool"):
        SpoolReader(tmp_path / "nowhere")
    with pytest.raises(StoreError, match="its broker wrote nothing"):
        list(SpoolReader(tmp_path))


def test_the_spools_of_a_directory_are_listed(tmp_path):
    assert spooled_runs(tmp_path) == []
    put(tmp_path / "_spool" / "b", 0, STARTED)
    put(tmp_path / "_spool" / "a", 0, STARTED)
    assert spooled_runs(tmp_path) == ["a", "b"]


@pytest.mark.parametrize(
    ("number", "seq", "gap", "torn"),
    [
        pytest.param(
            1, 4, (2, 3), "000001.spool does not follow the file before it", id="entries of a file"
        ),
        pytest.param(2, 5, (2, 4), "000001.spool is missing", id="a file"),
    ],
)
def test_what_is_lost_between_two_files_is_a_gap(tmp_path, number, seq, gap, torn):
    put(tmp_path, 0, STARTED, request(1))
    put(tmp_path, number, request(seq), RunEnded(seq, 1, 1))
    reader = SpoolReader(tmp_path)
    assert gaps(reader) == [gap]
    assert reader.torn == torn


def test_entries_that_are_missing_at_the_end_are_a_gap(tmp_path):
    put(tmp_path, 0, STARTED, request(1), request(2), cut=1)
    put(tmp_path, 1, RunEnded(2, 1, 1))
    assert gaps(SpoolReader(tmp_path)) == [(2, 2)]


def test_a_spool_whose_first_entry_is_damaged_is_refused_with_the_place(tmp_path):
    put(tmp_path, 0, STARTED, request(1))
    path = file(tmp_path, 0)
    path.write_bytes(b"\1" + path.read_bytes()[1:])
    with pytest.raises(StoreError, match=r"000000\.spool at byte 0: "):
        list(SpoolReader(tmp_path))
    put(tmp_path, 1, request(2))
    with pytest.raises(StoreError, match=r"000000\.spool at byte 0: "):
        list(SpoolReader(tmp_path))


def test_every_flipped_bit_costs_entries_that_are_told(tmp_path):
    put(tmp_path, 0, STARTED, request(1), request(2))
    put(tmp_path, 1, request(3), RunEnded(3, 1, 1))
    for number in (0, 1):
        path = file(tmp_path, number)
        whole = path.read_bytes()
        for at in range(len(whole)):
            damaged = bytearray(whole)
            damaged[at] ^= 1 << at % 8
            path.write_bytes(damaged)
            reader = SpoolReader(tmp_path)
            found = read(reader)
            if isinstance(found, str):
                assert "000000.spool at byte 0: " in found
                continue
            assert f"{path.name} at byte " in reader.torn
            check_told(found, 3, ended=reader.ended)
        path.write_bytes(whole)


def read(reader):
    """All entries, or why there are none."""
    try:
        return list(reader)
    except StoreError as error:
        return str(error)


def check_told(found, last_seq, *, ended):
    """Every entry is there, in a gap, or behind the last one of a run that has not ended."""
    there = {each.seq for each in found if isinstance(each, RequestEntry)}
    for gap in found:
        if isinstance(gap, Gap):
            there |= set(range(gap.first_seq, gap.last_seq + 1))
    assert there == set(range(1, (last_seq if ended else max(there, default=0)) + 1))
