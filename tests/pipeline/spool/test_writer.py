"""A spool holds past and new entries of a journal; a gap is written, or the cluster waits."""

from __future__ import annotations

import errno
from random import Random

import pytest

from mockbroker.core.cluster import Cluster
from mockbroker.core.events import TopicsChanged
from mockbroker.core.journal.entries import EventEntry
from mockbroker.core.journal.journal import Gap, Journal
from mockbroker.pipeline.spool import writer as writing
from mockbroker.pipeline.spool.format import RunEnded, RunStarted
from mockbroker.pipeline.spool.reader import SpoolReader
from mockbroker.pipeline.spool.writer import SpoolWriter
from mockbroker.pipeline.store import StoreError
from tests.pipeline.spool.test_reader import check_told
from tests.support.crashing_disk import CrashingDisk, FailAt, put
from tests.support.logged import logged


@pytest.fixture
def cluster():
    found = Cluster(seed=1)
    found.keep_journal(Journal(lambda: 5))
    return found


def writer_of(cluster, directory, **options):
    return SpoolWriter(cluster, directory, "r", real_ns=lambda: 5, **options)


def entries(directory):
    return list(SpoolReader(directory / "_spool" / "r"))


def said(cluster, count, size=0):
    """Some entries in the journal: requests of `size` bytes."""
    for _ in range(count):
        cluster.runtime.journal.request(1, 1, 1, b"\x00\x03" + bytes(size))


def seqs(found):
    return [entry.seq for entry in found if hasattr(entry, "seq")]


def test_it_holds_what_was_there_and_what_came(cluster, tmp_path):
    said(cluster, 3)
    writer = writer_of(cluster, tmp_path)
    said(cluster, 2)
    cluster.create_topic("t", 2)
    writer.stop()
    said(cluster, 1)  # nobody follows any more
    writer.close()
    found = entries(tmp_path)
    assert isinstance(found[0], RunStarted)
    assert found[0].topics == []
    assert isinstance(found[-1], RunEnded)
    assert seqs(found) == list(range(1, cluster.runtime.journal.last_seq))
    events = [entry.event for entry in found if isinstance(entry, EventEntry)]
    [changed] = [event for event in events if isinstance(event, TopicsChanged)]
    assert [topic.topic for topic in changed.created] == ["t"]
    assert writer.error is None


def test_topics_of_before_are_told_at_the_beginning(cluster, tmp_path):
    cluster.create_topic("old", 1)
    cluster.runtime.journal.clear()  # it reaches back no further
    cluster.create_topic("new", 1)
    writer_of(cluster, tmp_path).stop()
    begin = entries_when_done(tmp_path)[0]
    assert [topic.name for topic in begin.topics] == ["old"]
    assert isinstance(entries(tmp_path)[1], Gap)


def entries_when_done(directory):
    """All entries of a spool that is about to end."""
    return list(SpoolReader(directory / "_spool" / "r", wait=lambda: True))


def test_files_roll(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "_WRITE_BYTES", 1)  # each entry is written by itself
    writer = writer_of(cluster, tmp_path, file_bytes_max=10_000)
    said(cluster, 30, 1000)
    writer.stop()
    writer.close()
    assert len(list((tmp_path / "_spool" / "r").iterdir())) >= 2
    assert seqs(entries(tmp_path)) == list(range(1, 31))


def test_what_has_no_room_is_told_as_a_gap(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(SpoolWriter, "_work", lambda self: self._wake.wait())
    writer = writer_of(cluster, tmp_path, queue_bytes_max=10_000)
    said(cluster, 20, 1000)
    while writer._write_some():
        pass
    said(cluster, 1)
    writer.stop()
    while writer._write_some():
        pass
    writer._end_file()
    found = entries(tmp_path)
    [lost] = [entry for entry in found if isinstance(entry, Gap)]
    kept = seqs(found)
    assert kept == [*range(1, lost.first_seq), 21]
    assert lost.last_seq == 20


def test_the_cluster_may_wait_instead(cluster, tmp_path):
    writer = writer_of(cluster, tmp_path, overflow="block", queue_bytes_max=5_000)
    said(cluster, 200, 1000)
    writer.stop()
    writer.close()
    assert seqs(entries(tmp_path)) == list(range(1, 201))


def test_a_disk_that_is_full_does_not_end_the_cluster(cluster, tmp_path, monkeypatch):
    def full(self):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(SpoolWriter, "_next_file", full)
    writer = writer_of(cluster, tmp_path)
    said(cluster, 5)
    writer.stop()
    writer.close()
    assert "No space left" in str(writer.error)


def test_a_run_is_not_written_twice_and_a_place_has_to_be_there(cluster, tmp_path):
    writer_of(cluster, tmp_path).stop()
    with pytest.raises(StoreError, match="has a run r already"):
        writer_of(cluster, tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot write into"):
        writer_of(cluster, tmp_path / "file")
    with pytest.raises(StoreError, match="journal_bytes=0"):
        writer_of(Cluster(seed=1), tmp_path)


def test_whatever_a_power_failure_leaves_is_told(cluster, tmp_path):
    disk = CrashingDisk()
    root = tmp_path / "life"
    root.mkdir()
    writer = SpoolWriter(cluster, root, "r", file_bytes_max=3000, disk=disk)
    for _ in range(12):
        said(cluster, 5, 200)
    writer.stop()
    writer.close()
    last_seq = cluster.runtime.journal.last_seq
    draw = Random(3)
    for at in range(len(disk.operations) + 1):
        for _ in range(5):
            put(disk.without_power(at, draw), root, tmp_path / "left")
            try:
                reader = SpoolReader(tmp_path / "left" / "_spool" / "r")
                found = list(reader)
            except StoreError:
                assert at < len(disk.operations)
                continue
            check_told(found, last_seq, ended=reader.ended)
    assert reader.ended  # what was stopped cleanly is on the disk
    assert reader.torn == ""


def test_a_disk_that_fails_at_any_operation_is_told_once(cluster, tmp_path, caplog):
    refused = []
    for at in range(7):
        caplog.clear()
        disk = CrashingDisk(FailAt(at, errno.EIO))
        root = tmp_path / f"{at}"
        root.mkdir()
        said(cluster, 5, 200)
        try:
            writer = SpoolWriter(cluster, root, "r", file_bytes_max=1, disk=disk)
        except StoreError as error:
            refused.append(str(error))
            continue
        said(cluster, 5, 200)
        writer.stop()
        writer.close()
        assert writer.error is not None
        assert disk.open_files == 0
        (line,) = [record.getMessage() for record in logged(caplog)]
        assert str(writer.path) in line
        assert "Input/output error" in line
    assert len(refused) == 3
    assert all("Input/output error" in each for each in refused)
