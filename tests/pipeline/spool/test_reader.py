"""A spool is read whole, while it grows, or as far as it goes."""

from __future__ import annotations

import pytest

from mockbroker.pipeline.spool.notes import Asked, Begin, End, Lost, packed
from mockbroker.pipeline.spool.reader import SpoolReader, spooled_runs
from mockbroker.pipeline.store import StoreError

BEGIN = Begin(1, "r", "c", 1, 2, 0, [])


def asked(seq):
    return Asked(seq, 1, 1, 1, 1, b"frame")


def file(path, number):
    path.mkdir(exist_ok=True, parents=True)
    return path / f"{number:06}.spool"


def put(path, number, *notes, cut=0):
    data = b"".join(map(packed, notes))
    with file(path, number).open("ab") as stream:
        stream.write(data[: len(data) - cut])


def test_files_are_read_one_behind_the_other(tmp_path):
    put(tmp_path, 0, BEGIN, asked(1))
    put(tmp_path, 1, asked(2), End(2, 1, 1))
    reader = SpoolReader(tmp_path)
    assert list(reader) == [BEGIN, asked(1), asked(2), End(2, 1, 1)]
    assert reader.ended
    assert reader.torn == ""


def test_what_comes_while_reading_is_read(tmp_path):
    put(tmp_path, 0, BEGIN)
    later = [
        lambda: put(tmp_path, 0, asked(1), cut=3),
        lambda: file(tmp_path, 0).write_bytes(packed(BEGIN) + packed(asked(1))),
        lambda: put(tmp_path, 1, asked(2)),
        lambda: put(tmp_path, 1, End(2, 1, 1)),
    ]

    def wait():
        later.pop(0)()
        return True

    assert list(SpoolReader(tmp_path, wait)) == [BEGIN, asked(1), asked(2), End(2, 1, 1)]
    assert later == []


def test_a_torn_tail_is_told_and_the_rest_is_used(tmp_path):
    put(tmp_path, 0, BEGIN, asked(1), asked(2), cut=4)
    reader = SpoolReader(tmp_path)
    assert list(reader) == [BEGIN, asked(1)]
    assert "000000.spool at byte" in reader.torn
    assert not reader.ended


def test_damage_in_the_middle_is_a_gap(tmp_path):
    put(tmp_path, 0, BEGIN, asked(1), asked(2), cut=4)
    put(tmp_path, 1, asked(5), End(5, 1, 1))
    reader = SpoolReader(tmp_path)
    found = list(reader)
    assert isinstance(found[2], Lost)
    assert (found[2].first_seq, found[2].last_seq) == (2, 4)
    assert found[3:] == [asked(5), End(5, 1, 1)]
    assert reader.torn


def test_a_spool_without_its_first_file_is_refused(tmp_path):
    put(tmp_path, 0, asked(7))
    with pytest.raises(StoreError, match="its first file is gone"):
        list(SpoolReader(tmp_path))


def test_a_spool_of_another_format_is_refused(tmp_path):
    put(tmp_path, 0, Begin(9, "r", "c", 1, 2, 0, []))
    with pytest.raises(StoreError, match="format 9"):
        list(SpoolReader(tmp_path))


def test_what_is_no_spool_is_refused(tmp_path):
    with pytest.raises(StoreError, match="there is no spool"):
        SpoolReader(tmp_path / "nowhere")
    with pytest.raises(StoreError, match="holds nothing"):
        list(SpoolReader(tmp_path))


def test_the_spools_of_a_directory_are_listed(tmp_path):
    assert spooled_runs(tmp_path) == []
    put(tmp_path / "_spool" / "b", 0, BEGIN)
    put(tmp_path / "_spool" / "a", 0, BEGIN)
    assert spooled_runs(tmp_path) == ["a", "b"]
