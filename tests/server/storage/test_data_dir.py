"""Data directories: the content of the file at any time, and invalid files."""

from __future__ import annotations

import dataclasses
import io
import os
import shutil
import socket
import threading
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mockbroker import Cluster
from mockbroker.client import Client
from mockbroker.core.snapshot.changes import ClusterDelta
from mockbroker.core.snapshot.frames import (
    FILE_HEADER,
    Frame,
    check_file_header,
    file_header,
    frame,
    read_frames,
)
from mockbroker.core.snapshot.image import ClusterImage
from mockbroker.disk import DISK
from mockbroker.server.config import ListenerSpec, ServerError
from mockbroker.server.storage import data_dir as data_dirs
from mockbroker.server.storage import lock as locks
from mockbroker.server.storage.lock import Lock
from mockbroker.server.storage.snapshot_files import (
    COMPACTED_FILE,
    FILE,
    Found,
    read_directory,
)
from mockbroker.server.storage.snapshots import read_snapshot
from mockbroker_protocol.records import Record, iter_records, split_batches
from tests.support.librdkafka import produce
from tests.support.life import Life
from tests.support.logged import logged
from tests.support.stored_clusters import Stored
from tests.support.waiting import wait_until


def cluster(directory: Path, **options: object) -> Cluster:
    """One broker with topic t; options of `ServerConfig` beside those of `Cluster`."""
    made = Cluster(brokers=1, topics={"t": 1}, data_dir=directory)
    made._config = dataclasses.replace(made.config, **options)  # type: ignore[arg-type]
    return made


def values(image: ClusterImage) -> list[bytes]:
    """What is in the first partition of t."""
    (topic,) = [each for each in image.topics if each.name == "t"]
    log_id = topic.partitions[0].log_id
    if not log_id:
        return []
    return [
        bytes(record.value or b"")
        for stored in image.logs[log_id].log.batches()
        for header, batch in split_batches(bytes(stored))
        for record in iter_records(header, batch)
    ]


def as_after_a_kill(directory: Path, into: Path) -> ClusterImage:
    """What somebody finds who starts where this process would be killed now."""
    into.mkdir()
    shutil.copy(directory / FILE, into / FILE)
    return read_directory(into).image


def as_after_a_crash(directory: Path, into: Path, synced_bytes: int) -> ClusterImage:
    """What somebody finds after the machine has crashed, and lost what was not synced."""
    into.mkdir()
    (into / FILE).write_bytes((directory / FILE).read_bytes()[:synced_bytes])
    return read_directory(into).image


def attempt(directory: Path, *, recover: bool = False) -> Found | str:
    """What is found in a directory, or why it is refused."""
    try:
        return read_directory(directory, recover=recover)
    except ServerError as error:
        return str(error)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file with ten records, each in a frame of its own."""
    directory = tmp_path_factory.mktemp("written")
    with cluster(directory) as kafka, Client(kafka.bootstrap_servers) as client:
        for at in range(10):
            client.produce("t", [b"value %d" % at])
        return (directory / FILE).read_bytes()


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The bytes of a file, each time that the disk has them all."""
    sizes: list[int] = []
    real = DISK.sync

    def sync(fd: int) -> None:
        size = os.fstat(fd).st_size
        real(fd)
        sizes.append(size)

    monkeypatch.setattr(DISK, "sync", sync)
    return sizes


@pytest.fixture
def directory(tmp_path: Path, written: bytes) -> Path:
    (tmp_path / FILE).write_bytes(written)
    return tmp_path


def test_what_is_acknowledged_is_in_the_file(tmp_path):
    with cluster(tmp_path / "data") as kafka, Client(kafka.bootstrap_servers) as client:
        for at in range(5):
            client.produce("t", [b"%d" % at])
            found = as_after_a_kill(tmp_path / "data", tmp_path / str(at))
            assert values(found) == [b"%d" % n for n in range(at + 1)]


def test_what_nobody_is_told_of_gets_into_the_file_as_well(tmp_path):
    with cluster(tmp_path) as kafka:
        kafka.call(lambda core: core.create_topic("quiet", 1, 1))
        wait_until(lambda: "quiet" in {t.name for t in read_directory(tmp_path).image.topics})


def test_a_cluster_goes_on_where_it_was(tmp_path):
    for at in range(3):
        with cluster(tmp_path) as kafka, Client(kafka.bootstrap_servers) as client:
            assert [r.value for r in kafka.records("t")] == [b"%d" % n for n in range(at)]
            client.produce("t", [b"%d" % at])


def test_the_clock_goes_on_from_where_it_was_moved_to(tmp_path):
    with cluster(tmp_path) as kafka, Client(kafka.bootstrap_servers) as client:
        kafka.clock.advance("3d")
        then = kafka.call(lambda core: core.runtime.now_ms())
        client.produce("t", [b"v"])
    with cluster(tmp_path) as kafka:
        assert kafka.call(lambda core: core.runtime.now_ms()) >= then


def test_a_restored_snapshot_is_what_the_file_holds_from_then_on(tmp_path):
    with cluster(tmp_path / "data") as kafka, Client(kafka.bootstrap_servers) as client:
        client.produce("t", [b"kept"])
        snapshot = kafka.snapshot()
        client.produce("t", [b"gone"])
        kafka.restore(snapshot)
        client.produce("t", [b"after"])
        found = as_after_a_kill(tmp_path / "data", tmp_path / "copy")
        assert values(found) == [b"kept", b"after"]


# -- files that end early or are damaged -----------------------------------------------------------


def test_wherever_the_file_ends_the_whole_frames_count(directory, written):
    frames = [at for at in range(len(written)) if written.startswith(b"value ", at)]
    path = directory / FILE
    refused_up_to = 0
    for size in [*range(0, frames[-2], 101), *range(frames[-2], len(written))]:
        path.write_bytes(written[:size])
        found = attempt(directory)
        if isinstance(found, str):
            assert str(path) in found
            refused_up_to = size
            continue
        whole = values(found.image)
        assert whole == [b"value %d" % n for n in range(len(whole))]
        assert found.end <= size
        # A record is there unless it, or what follows it in its frame, is not.
        assert len(whole) >= sum(at + 40 < size for at in frames) - 1
        assert len(whole) <= sum(at < size for at in frames)
    assert refused_up_to < frames[0]  # what is not a whole snapshot is none


def test_a_flipped_bit_is_refused_with_file_and_place_or_all_before_it_is_kept(directory, written):
    path = directory / FILE
    for at in range(0, len(written), 23):
        damaged = bytearray(written)
        damaged[at] ^= 0x10
        path.write_bytes(damaged)
        refused = attempt(directory)
        assert isinstance(refused, str)
        assert str(path) in refused
        found = attempt(directory, recover=True)
        if isinstance(found, str):  # there is nothing before it
            assert str(path) in found
            continue
        assert found.damage is not None
        assert f"byte {found.damage.offset}" in refused
        assert found.end <= at
        if any(topic.name == "t" for topic in found.image.topics):
            kept = values(found.image)
            assert kept == [b"value %d" % n for n in range(len(kept))]


def test_a_damaged_directory_starts_only_when_told_to(directory, written, caplog):
    path = directory / FILE
    at = written.index(b"value 6")
    path.write_bytes(written[:at] + b"#" + written[at + 1 :])
    with pytest.raises(ServerError, match="is damaged at byte"), cluster(directory):
        pass
    with cluster(directory, recover=True) as kafka:
        assert [r.value for r in kafka.records("t")] == [b"value %d" % n for n in range(6)]
    assert (directory / "cluster.log.damaged").read_bytes()[at : at + 1] == b"#"
    assert f"{path} is damaged at byte" in caplog.text
    with cluster(directory) as kafka:
        assert len(kafka.records("t")) == 6


def test_a_write_that_was_cut_off_is_told_in_one_line(directory, written, caplog):
    path = directory / FILE
    path.write_bytes(written[:-9])
    with cluster(directory) as kafka:
        assert len(kafka.records("t")) == 9
    (line,) = [record.getMessage() for record in logged(caplog) if FILE in record.getMessage()]
    assert line.startswith(f"{path}: cut off at byte ")


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"something else altogether", "this is not a snapshot of mockbroker"),
        (b"mockbroker\r\n\0\0\0\1" + bytes(50), "the format is 1; "),
        (b"", "this is not a snapshot of mockbroker"),
    ],
)
def test_other_files_and_formats_are_refused(tmp_path, data, complaint):
    (tmp_path / FILE).write_bytes(data)
    with pytest.raises(ServerError, match=f"{FILE}: {complaint}"), cluster(tmp_path, recover=True):
        pass
    assert (tmp_path / FILE).read_bytes() == data


def test_what_a_crash_left_aside_is_cleared_away(directory):
    for name in ("cluster.log.new", "cluster.log.compacted"):
        (directory / name).write_bytes(b"half a file")
    with cluster(directory) as kafka:
        assert len(kafka.records("t")) == 10
    assert sorted(os.listdir(directory)) == [FILE, "lock"]


def test_a_directory_serves_one_at_a_time(directory):
    with (
        cluster(directory) as kafka,
        pytest.raises(ServerError, match=rf"is in use by process {os.getpid()}"),
        cluster(directory),
    ):
        pass
    held = Lock(directory)
    with cluster(directory.parent / "other") as kafka, pytest.raises(ServerError, match="in use"):
        kafka.save(directory)
    held.release()
    with cluster(directory):
        pass


def content(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): path.read_bytes() if path.is_file() else b""
        for path in directory.rglob("*")
    }


@pytest.mark.parametrize("lock", [None, b"", b"4711\n"], ids=["no lock", "empty lock", "old lock"])
@pytest.mark.parametrize(
    ("damage", "options"),
    [
        ("bit", {}),
        ("end", {}),
        ("other file", {"recover": True}),
        ("", {"node_ids": [4, 5]}),
        ("", {"kafka_version": "3.9"}),
        ("bit", {"recover": True, "node_ids": [4, 5]}),
        ("cut", {"node_ids": [4, 5]}),
    ],
)
def test_a_refused_start_changes_nothing(directory, written, damage, options, lock):
    path = directory / FILE
    match damage:
        case "bit":
            path.write_bytes(written.replace(b"value 6", b"value #"))
        case "end":
            path.write_bytes(written[:100])
        case "cut":
            path.write_bytes(written[:-9])
        case "other file":
            path.write_bytes(b"other")
    (directory / "cluster.log.compacted").write_bytes(b"half a file")
    if lock is not None:
        (directory / "lock").write_bytes(lock)
    before = content(directory)
    with pytest.raises(ServerError), cluster(directory, **options):
        pass
    assert content(directory) == before


def test_a_refused_start_makes_no_directory(tmp_path):
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(ServerError),
        cluster(tmp_path / "new" / "data", listeners=(ListenerSpec(port=taken.getsockname()[1]),)),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_every_damaged_file_that_was_given_up_is_kept(directory, written):
    path = directory / FILE
    for name in ("cluster.log.damaged", "cluster.log.damaged.2"):
        with cluster(directory) as kafka, Client(kafka.bootstrap_servers) as client:
            client.produce("t", [b"value more"])
        data = path.read_bytes()
        at = data.rindex(b"value ")
        path.write_bytes(data[:at] + b"#" + data[at + 1 :])
        damaged = path.read_bytes()
        with cluster(directory, recover=True):
            pass
        assert (directory / name).read_bytes() == damaged


def test_a_lock_that_was_left_over_locks_nothing(directory):
    (directory / "lock").write_text(f"{os.getpid()}\n")
    with cluster(directory) as kafka:
        assert len(kafka.records("t")) == 10


def test_a_lock_whose_file_was_removed_meanwhile_is_taken_on_the_new_one(directory, monkeypatch):
    held = Lock(directory)
    first = True

    def flock(fd: int) -> bool:
        nonlocal first
        if first:  # the holder ends between the opening of the file and the lock
            first = False
            held.release(undo=True)
        return real(fd)

    real = locks._lock
    monkeypatch.setattr(locks, "_lock", flock)
    second = Lock(directory)
    with pytest.raises(ServerError, match="in use"):
        Lock(directory)
    second.release()


def test_a_stopped_cluster_notices_every_bit_that_flips(directory):
    with cluster(directory):
        pass
    path = directory / FILE
    whole = path.read_bytes()
    expected = values(read_directory(directory).image)
    for at in range(0, len(whole), 11):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << at % 8
        path.write_bytes(damaged)
        found = attempt(directory)
        if isinstance(found, str):
            assert str(path) in found
            assert "byte" in found or at < FILE_HEADER.size
        else:  # in the last frame, which has no change
            assert values(found.image) == expected


@given(seed=st.integers(0, 1 << 32))
@example(seed=262144)  # a static config without a value
@settings(max_examples=60, deadline=None)
def test_a_file_that_contradicts_itself_is_refused_in_words(changed_frames, seed):
    """Its checksums are right: no crash makes such files, but other programs do."""
    directory, frames = changed_frames
    draw = Random(seed)
    number = draw.randrange(len(frames))
    tree = msgspec.msgpack.decode(frames[number].head)
    settings_at = ClusterDelta.__struct_fields__.index("settings")
    if tree[settings_at] and draw.random() < 0.3:
        inner = msgspec.msgpack.decode(tree[settings_at])
        tree[settings_at] = msgspec.msgpack.encode(mutated(inner, draw))
    else:
        tree = mutated(tree, draw)
    heads = [each.head for each in frames]
    heads[number] = msgspec.msgpack.encode(tree)
    data = b"".join(
        b"".join(frame(head, [memoryview(each.body)]))
        for head, each in zip(heads, frames, strict=True)
    )
    (directory / FILE).write_bytes(file_header() + data)
    refused = ""
    try:
        read_snapshot(directory)
    except ServerError as error:
        refused = str(error)
    assert not refused or str(directory / FILE) in refused or "plays Kafka" in refused


@pytest.fixture(scope="module")
def changed_frames(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Frame]]:
    """A directory, and the frames of a cluster in which much has happened."""
    life = Life(3)
    stored = Stored(life.node.cluster)
    for _ in range(12):
        life.step()
        stored.flush()
    file = io.BytesIO(stored.data)
    frames = list(read_frames(file, check_file_header(file), len(stored.data)))
    return tmp_path_factory.mktemp("changed"), frames


def mutated(tree: Any, draw: Random) -> Any:
    """The tree with another value at one place."""
    if isinstance(tree, list) and tree and draw.random() < 0.9:
        at = draw.randrange(len(tree))
        return [*tree[:at], mutated(tree[at], draw), *tree[at + 1 :]]
    if isinstance(tree, dict) and tree and draw.random() < 0.9:
        at = draw.choice(sorted(tree, key=repr))
        return {**tree, at: mutated(tree[at], draw)}
    match tree:
        case bool():
            return not tree
        case int():
            return draw.choice([0, -1, tree + 1, tree - 1, 1 << 31, 1 << 62, -(1 << 62)])
        case str():
            return draw.choice(["", "x", "t"])
        case bytes():
            return draw.choice([b"", tree[::-1], tree[:-1]])
        case list():
            return draw.choice([[], [*tree, *tree[:1]], tree[:-1], tree[::-1]])
        case dict():
            return {}
    return draw.choice([0, None, "x"])


def test_a_server_that_cannot_be_started_lets_the_directory_go(directory):
    with pytest.raises(ServerError, match="1 are stored"), cluster(directory, node_ids=[4, 5]):
        pass
    with cluster(directory):
        pass


# -- what the disk has -----------------------------------------------------------------------------


def test_with_sync_nothing_is_acknowledged_before_the_disk_has_it(tmp_path, monkeypatch):
    asked, may_go_on = threading.Event(), threading.Event()
    answered: list[int] = []
    real = DISK.sync

    def slow(fd: int) -> None:
        asked.set()
        assert may_go_on.wait(30)
        real(fd)

    def send(client: Client) -> None:
        answered.append(client.produce("t", [b"v"])[0].base_offset)

    with cluster(tmp_path, sync=True) as kafka, ExitStack() as opened:
        clients = [opened.enter_context(Client(kafka.bootstrap_servers)) for _ in range(4)]
        for client in clients:
            client.produce("t", [b"first"])
        monkeypatch.setattr(DISK, "sync", slow)
        threads = [threading.Thread(target=send, args=(client,)) for client in clients]
        for thread in threads:
            thread.start()
        assert asked.wait(30)
        wait_until(lambda: len(kafka.records("t")) == 8)
        assert answered == []
        may_go_on.set()
        for thread in threads:
            thread.join(30)
        assert sorted(answered) == [4, 5, 6, 7]


def test_with_sync_a_crash_of_the_machine_loses_nothing_acknowledged(tmp_path, synced):
    data = tmp_path / "data"
    with cluster(data, sync=True) as kafka, Client(kafka.bootstrap_servers) as client:
        for at in range(5):
            client.produce("t", [b"%d" % at])
            found = as_after_a_crash(data, tmp_path / str(at), synced[-1])
            assert values(found) == [b"%d" % n for n in range(at + 1)]


@pytest.mark.parametrize("over_http", [False, True])
def test_with_sync_a_crash_of_the_machine_loses_no_topic_of_the_admin_api(
    tmp_path, synced, over_http
):
    data = tmp_path / "data"
    with cluster(data, sync=True) as kafka:
        handle = Cluster.connect(kafka.admin_url) if over_http else kafka
        for at in range(3):
            handle.topic(f"new{at}").create()
            found = as_after_a_crash(data, tmp_path / str(at), synced[-1])
            assert f"new{at}" in {topic.name for topic in found.topics}


def test_secured_connections_wait_for_the_disk_as_well(tmp_path, synced):
    options = {"security_protocol": "SASL_PLAINTEXT", "users": {"alice": "secret"}}
    for count in (1, 2):
        kafka = Cluster(brokers=1, topics={"t": 1}, data_dir=tmp_path / "data", **options)
        kafka._config = dataclasses.replace(kafka.config, sync=True)
        with kafka:
            before = len(synced)
            login = {"sasl_mechanisms": "PLAIN", "sasl_username": "alice"}
            produce(
                kafka.bootstrap_servers,
                "t",
                [b"v"],
                security_protocol="SASL_PLAINTEXT",
                sasl_password="secret",
                **login,
            )
            assert len(synced) > before
            found = as_after_a_kill(tmp_path / "data", tmp_path / str(count))
            assert values(found) == [b"v"] * count


def test_a_disk_that_is_full_ends_the_server_and_nothing_is_acknowledged(tmp_path, monkeypatch):
    def full(_fd: int, _pieces: object) -> int:
        raise OSError(28, "No space left on device")

    kafka = cluster(tmp_path)
    kafka.start()
    try:
        with Client(kafka.bootstrap_servers) as client:
            client.produce("t", [b"kept"])
            monkeypatch.setattr(DISK, "write", full)
            with pytest.raises(Exception, match=r".") as refused:
                client.produce("t", [b"lost"])
            assert not isinstance(refused.value, AssertionError)
    finally:
        with pytest.raises(BaseExceptionGroup) as ended:
            kafka.stop()
    assert ended.group_contains(ServerError, match="No space left on device")
    assert values(read_directory(tmp_path).image) == [b"kept"]


def test_pieces_that_are_written_in_part_are_written_on(tmp_path, monkeypatch):
    real = os.writev
    monkeypatch.setattr(os, "writev", lambda fd, pieces: real(fd, [pieces[0][:2]]))
    fd = os.open(tmp_path / "file", os.O_CREAT | os.O_WRONLY)
    assert DISK.write(fd, [b"abcd", memoryview(b"efg"), b""]) == 7
    os.close(fd)
    assert (tmp_path / "file").read_bytes() == b"abcdefg"


# -- compaction of the file ------------------------------------------------------------------------


def test_a_long_file_is_written_anew_while_clients_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr(data_dirs, "COMPACTION_BYTES_MIN", 50_000)
    path = tmp_path / "data" / FILE
    with cluster(tmp_path / "data") as kafka, Client(kafka.bootstrap_servers) as client:
        kafka.topic("again").create(configs={"cleanup.policy": "compact"})
        sent: list[bytes] = []
        data_dir = kafka.server.data_dir
        assert data_dir is not None

        def goes_on() -> bool:
            for _ in range(10):
                client.produce("again", [Record(key=b"k", value=b"x" * 5000)])
                sent.append(b"%d" % len(sent))
                client.produce("t", [sent[-1]])
            kafka.topic("again").run_compaction()
            return data_dir.generation >= 4

        wait_until(goes_on)
        found = as_after_a_kill(tmp_path / "data", tmp_path / "copy")
        assert values(found) == sent
        assert path.stat().st_size < len(sent) * 5000
    with cluster(tmp_path / "data") as kafka:
        assert [r.value for r in kafka.records("t")] == sent
        (again,) = kafka.records("again")[-1:]
        assert again.value == b"x" * 5000


def test_clients_do_not_wait_for_the_copy_of_what_they_wrote_meanwhile(tmp_path, monkeypatch):
    monkeypatch.setattr(data_dirs, "COMPACTION_BYTES_MIN", 50_000)
    monkeypatch.setattr(data_dirs, "COPY_BYTES", 20_000)
    image_is_written, may_go_on = threading.Event(), threading.Event()
    compacted: set[int] = set()
    written: list[tuple[bool, int, int]] = []  # to the new file or not, thread, bytes
    begin, write, sync = DISK.begin, DISK.write, DISK.sync

    def begin_slow(path: Path) -> int:
        fd = begin(path)
        if path.name == COMPACTED_FILE:
            compacted.add(fd)
        return fd

    def write_counted(fd: int, pieces: Any) -> int:
        size = write(fd, pieces)
        written.append((fd in compacted, threading.get_ident(), size))
        return size

    def sync_slow(fd: int) -> None:
        if fd in compacted and not image_is_written.is_set():
            image_is_written.set()
            assert may_go_on.wait(30)
        sync(fd)

    monkeypatch.setattr(DISK, "begin", begin_slow)
    monkeypatch.setattr(DISK, "write", write_counted)
    monkeypatch.setattr(DISK, "sync", sync_slow)
    sent = [b"%d" % at * 5000 for at in range(60)]
    with cluster(tmp_path / "data") as kafka, Client(kafka.bootstrap_servers) as client:
        data_dir = kafka.server.data_dir
        assert data_dir is not None
        before = data_dir.generation
        for value in sent[:30]:
            client.produce("t", [value])
        assert image_is_written.wait(30)
        already = len(written)
        for value in sent[30:]:
            client.produce("t", [value])
        may_go_on.set()
        wait_until(lambda: data_dir.generation > before)
        meanwhile = written[already:]
        assert values(as_after_a_kill(tmp_path / "data", tmp_path / "copy")) == sent
    [server] = {thread for is_new, thread, _ in written if not is_new}
    copied = [(thread, size) for is_new, thread, size in meanwhile if is_new]
    assert sum(size for _, size in copied) > 30 * 5000
    assert sum(size for thread, size in copied if thread == server) <= 20_000
