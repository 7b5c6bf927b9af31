"""What a crash leaves of a data directory, at every operation on its files."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
import trio

from mockbroker.core.snapshot.capture import capture
from mockbroker.core.snapshot.frames import SECTOR_BYTES
from mockbroker.core.snapshot.image import ClusterImage
from mockbroker.server.config import ServerError, StorageError
from mockbroker.server.storage import data_dir as data_dirs
from mockbroker.server.storage.data_dir import DataDir
from mockbroker.server.storage.snapshot_files import FILE, read_directory
from mockbroker_protocol.records import iter_records, split_batches
from tests.support.crashing_disk import CrashingDisk, FailAt, Files, put
from tests.support.life import Life
from tests.support.requests import Node, batch_of
from tests.support.stored_clusters import log_state, revived

Key = bytes


def key_of(image: ClusterImage) -> Key:
    """Stands for all that an image says, but for its time and the ids that were drawn."""

    def log(log_id: int) -> Any:
        kept = image.logs.get(log_id)
        return None if kept is None else (kept.high_watermark, repr(log_state(kept.log)))

    topics = [
        (
            topic.name,
            topic.topic_id,
            topic.overrides,
            [
                (
                    msgspec.structs.replace(each, log_id=0, own=()),
                    log(each.log_id),
                    [(own.node_id, log(own.log_id)) for own in each.own],
                )
                for each in topic.partitions
            ],
        )
        for topic in image.topics
    ]
    return msgspec.msgpack.encode((image.settings, sorted(topics, key=lambda each: each[0])))


class History:
    """The life of a cluster in a data directory: its states, and which were acknowledged when."""

    def __init__(self, directory: Path, seed: int, *, sync: bool) -> None:
        self.root = directory
        self.disk = CrashingDisk()
        self.directory = directory / "data"
        self.sync = sync
        self.draw = Random(seed)
        self.states: list[Key] = []
        self.flushed: list[tuple[int, int]] = []  # after so many operations, up to which state
        self.durable: list[tuple[int, int]] = []

    def _flush(self, data_dir: DataDir, life: Life) -> None:
        must_wait = data_dir.flush()
        self.states.append(key_of(capture(life.node.cluster)))
        if must_wait and not self.sync:
            return  # for ever: the disk has failed
        self.flushed.append((len(self.disk.operations), len(self.states) - 1))

    async def run(self, steps: int) -> None:
        """Raises what ends the cluster."""
        life = Life(self.draw.randrange(1000))
        data_dir = DataDir(self.directory, sync=self.sync, disk=self.disk)
        try:
            if data_dir.image is not None:
                self.states.append(key_of(data_dir.image))
                life.go_on_as(data_dir.image)
            self.states.append(key_of(capture(life.node.cluster)))
            data_dir.follow(life.node.cluster)
            self._flush(data_dir, life)
            self.durable.append((len(self.disk.operations), 0))
            await self._live(life, data_dir, steps)
        finally:
            data_dir.close()
        self.durable.append((len(self.disk.operations), len(self.states) - 1))

    async def _live(self, life: Life, data_dir: DataDir, steps: int) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(data_dir.run)
            for _ in range(steps):
                life.step()
                self._flush(data_dir, life)
                state = len(self.states) - 1
                if self.draw.random() < 0.5:
                    await data_dir.durable()
                    if self.sync:
                        self.durable.append((len(self.disk.operations), state))
                else:
                    await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()

    def acknowledged(self, at: int, acknowledgements: list[tuple[int, int]]) -> int:
        """The last state that was acknowledged by then, -1 for none."""
        return max((state for when, state in acknowledgements if when <= at), default=-1)


def history(
    directory: Path, seed: int, *, sync: bool, steps: int = 25, begin: Files | None = None
) -> History:
    """A life in a new directory, or in one with the files `begin`."""
    made = History(directory / "life", seed, sync=sync)
    made.root.mkdir(parents=True)
    for path, data in (begin or {}).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    trio.run(made.run, steps)
    return made


class Finder:
    """Tells which of the states of a life a crash has left; fails for any other."""

    def __init__(self, made: History, directory: Path) -> None:
        self.made = made
        self.directory = directory
        self._known: dict[bytes, int] = {}  # by what is read of the file

    def __call__(self, files: Files) -> int:
        """The index of the latest such state; -1 if there is no cluster."""
        if self.made.directory / FILE not in files:
            return -1
        put(files, self.made.root, self.directory)
        found = read_directory(self.directory / "data")
        data = files[self.made.directory / FILE][: found.end]
        if data not in self._known:
            key = key_of(found.image)
            self._known[data] = max(
                index for index, state in enumerate(self.made.states) if state == key
            )
        return self._known[data]


def read(directory: Path) -> ClusterImage:
    return read_directory(directory).image


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is compacted in a life of a few steps."""
    monkeypatch.setattr(data_dirs, "COMPACTION_BYTES_MIN", 6000)
    monkeypatch.setattr(data_dirs, "SURPLUS_MAX", 1.2)


# -- the laws --------------------------------------------------------------------------------------


def check_kills(made: History, directory: Path, step: int) -> None:
    find = Finder(made, directory)
    for at in range(len(made.disk.operations) + 1):
        for number, files in enumerate(made.disk.killed(at, step)):
            acknowledged = made.acknowledged(at, made.flushed)
            assert find(files) >= acknowledged, f"operation {at}, byte {number * step}"


@pytest.mark.parametrize("sync", [False, True], ids=["written", "synced"])
def test_a_kill_loses_nothing_that_was_acknowledged(tmp_path, sync):
    check_kills(history(tmp_path, 1, sync=sync, steps=12), tmp_path / "left", 301)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1))
def test_a_kill_at_many_bytes_loses_nothing_that_was_acknowledged(tmp_path, seed):
    check_kills(history(tmp_path, seed, sync=False, steps=8), tmp_path / "left", 7)


def check_power(made: History, directory: Path, each: int, seed: int) -> set[int]:
    find, draw = Finder(made, directory), Random(seed)
    found_states = set()
    for at in range(len(made.disk.operations) + 1):
        for number in range(each):
            found = find(made.disk.without_power(at, draw))
            assert found >= made.acknowledged(at, made.durable), f"operation {at}, try {number}"
            found_states.add(found)
    return found_states


@pytest.mark.parametrize("sync", [False, True], ids=["written", "synced"])
def test_a_power_failure_leaves_one_state_and_all_that_was_synced(tmp_path, sync):
    made = history(tmp_path, 2, sync=sync, steps=12)
    found = check_power(made, tmp_path / "left", 4, 5)
    assert len(found) > 5  # it does lose something


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sync", [False, True], ids=["written", "synced"])
def test_power_failures_of_many_lives(tmp_path, sync, seed):
    made = history(tmp_path, seed, sync=sync, steps=20)
    check_power(made, tmp_path / "left", 6, seed)


def values_of(image: ClusterImage) -> list[bytes]:
    """The values of t, each by its first byte."""
    (topic,) = image.topics
    log = image.logs.get(topic.partitions[0].log_id)
    batches = [] if log is None else log.log.batches()
    return [
        record.value[:1]
        for stored in batches
        for header, batch in split_batches(bytes(stored))
        for record in iter_records(header, batch)
        if record.value
    ]


def test_what_a_start_has_dropped_never_comes_back(tmp_path, monkeypatch):
    """Not even when what is written in its place ends where it began."""
    monkeypatch.setattr(data_dirs, "COMPACTION_BYTES_MIN", 1 << 20)

    def appended(node: Node, data_dir: DataDir, letter: bytes) -> int:
        node.produce(batch_of(letter * 1000, timestamp=node.now_ms))
        data_dir.flush()
        return path.stat().st_size

    path = tmp_path / "life" / FILE
    node, before = Node(), DataDir(path.parent)
    node.topic("t")
    before.follow(node.cluster)
    ends = [appended(node, before, letter) for letter in (b"a", b"b", b"c")]
    before.close()
    data = bytearray(path.read_bytes()[: ends[2]])
    at = ends[0] // SECTOR_BYTES * SECTOR_BYTES + SECTOR_BYTES
    data[at : at + SECTOR_BYTES] = bytes(SECTOR_BYTES)  # of b, which the disk has in part
    path.write_bytes(data)

    disk = CrashingDisk()
    after = DataDir(path.parent, disk=disk)
    assert after.image is not None
    assert values_of(after.image) == [b"a"]
    node.cluster = revived(after.image, now_ms=lambda: node.now_ms)
    after.follow(node.cluster)
    assert appended(node, after, b"d") == ends[1]
    draw, left, found = Random(1), tmp_path / "left", set()
    for _ in range(200):
        put(disk.without_power(len(disk.operations), draw), path.parent, left)
        found.add(b"".join(values_of(read(left))))
    after.close()
    assert found == {b"a", b"ad"}


def check_two_lives(directory: Path, seed: int, *, sync: bool, each: int) -> None:
    """A power failure, a life that begins with what it left, and another power failure."""
    first = history(directory / "first", seed, sync=sync, steps=8)
    draw = Random(seed)
    for number in range(each):
        at = draw.randrange(len(first.disk.operations) // 2, len(first.disk.operations))
        left = first.disk.without_power(at, draw)
        here = directory / f"{number}"
        begin = {here / "life" / path.relative_to(first.root): left[path] for path in left}
        second = history(here, seed + number, sync=sync, steps=4, begin=begin)
        check_power(second, here / "left", 6, seed)


@pytest.mark.parametrize("sync", [False, True], ids=["written", "synced"])
def test_a_start_after_a_power_failure_goes_on_with_what_it_found(tmp_path, sync):
    check_two_lives(tmp_path, 3, sync=sync, each=4)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_many_starts_after_power_failures_go_on_with_what_they_found(tmp_path, seed):
    check_two_lives(tmp_path, seed, sync=seed % 2 == 0, each=15)


# -- a disk that fails -----------------------------------------------------------------------------


def error_of(made: History) -> ServerError | None:
    """The one error that ends a life, if one does."""
    try:
        trio.run(made.run, 12)
    except ServerError as refused:
        return refused
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup):
            (error,) = error.exceptions
        assert isinstance(error, ServerError)
        return error
    return None


def check_failures(directory: Path, number: int, *, sync: bool, forever: bool, steps: range) -> int:
    """Let each operation of a life fail; returns how many lives that ended."""
    ended = 0
    for at in steps:
        made = History(directory / f"{at}", 4, sync=sync)
        made.root.mkdir(parents=True)
        made.disk.fail = FailAt(at, number, forever=forever)
        error = error_of(made)
        if error is not None:
            assert os.strerror(number) in str(error)
            assert str(made.directory) in str(error)
            ended += 1
            if not isinstance(error, StorageError):
                assert made.durable == []
                assert list(made.root.iterdir()) == []  # a refused start leaves nothing
                continue
        assert made.disk.open_files == 0
        acknowledged = made.durable if sync else made.flushed
        key = key_of(read(made.directory))
        found = max(index for index, state in enumerate(made.states) if state == key)
        assert found >= made.acknowledged(len(made.disk.operations), acknowledged)
        assert sorted(os.listdir(made.directory)) == [FILE, "lock"]
        again = History(made.root, 5, sync=sync)  # with room, it goes on
        trio.run(again.run, 3)
        assert again.states[0] == key
    return ended


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO], ids=["full", "broken"])
@pytest.mark.parametrize("sync", [False, True], ids=["written", "synced"])
def test_a_disk_that_fails_ends_the_cluster_and_it_goes_on_where_it_was(tmp_path, sync, number):
    ended = check_failures(tmp_path, number, sync=sync, forever=True, steps=range(0, 30, 2))
    assert ended >= 10


@pytest.mark.parametrize("sync", [False, True], ids=["written", "synced"])
def test_one_operation_that_fails_loses_nothing_that_was_acknowledged(tmp_path, sync):
    check_failures(tmp_path, errno.EIO, sync=sync, forever=False, steps=range(1, 30, 2))
