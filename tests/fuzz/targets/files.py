"""Files that a cluster is started from, and spools of its journal.

An input is the number of a kind, and a file. A file is damaged anywhere; or a part of it is
replaced and its checksums are right, as no fault of a disk makes them. It is read as `serve --load`
reads it, up to the image of a cluster. An image with right checksums is then put in place as it is.

Memory: logs, batches and their indexes are Python objects, some hundred bytes for each batch of 61.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from functools import cached_property
from io import BytesIO
from typing import Any

import msgspec

from mockbroker.core.journal.entries import AppendEntry, RequestEntry, ResponseEntry
from mockbroker.core.journal.journal import Gap
from mockbroker.core.snapshot.builder import Builder
from mockbroker.core.snapshot.frames import (
    DamageError,
    FormatError,
    check_file_header,
    file_header,
    frame,
    read_frames,
)
from mockbroker.core.snapshot.image import ClusterImage
from mockbroker.pipeline.spool import format as spool
from tests.core.snapshot.test_over_the_wire import Life
from tests.fuzz.engine import Target
from tests.fuzz.mutate import INTERESTING, SIGNED, mutated
from tests.fuzz.work import Broken
from tests.support.stored_clusters import Stored

STEPS = 25
INPUT_BYTES_MAX = 64 * 1024
SNAPSHOT, SPOOL = 0, 1


class Files(Target):
    """See the module."""

    name = "files"
    modules = ("mockbroker.core.snapshot", "mockbroker.pipeline.spool")

    @cached_property
    def snapshots(self) -> list[bytes]:
        """Stored clusters, with changes behind the image."""
        found = []
        for seed in range(3):
            life = Life(seed)
            stored = Stored(life.node.cluster)
            for _ in range(STEPS):
                life.step()
                if life.draw.random() < 0.3:
                    stored.flush()
            stored.flush()
            found.append(bytes(stored.data))
        return found

    @cached_property
    def spools(self) -> list[bytes]:
        topic = spool.InitialTopic("orders", "AAAAAAAAAAAAAAAAAAAAAA", [(1, 0)])
        entries = [
            spool.RunStarted(spool.FORMAT, "run", "cluster", 1, 2, 0, [topic]),
            spool.ClientIdentified(1, "127.0.0.1", 5, "PLAINTEXT", "User:a", "kafka", "4"),
            RequestEntry(1, 2, 3, 1, 1, b"\0\x12\0\x03\0\0\0\1\xff\xff\0\1\1\0"),
            ResponseEntry(2, 2, 3, 1, 1, 1, 18, 3, 1, [b"\0\0"], "", ()),
            AppendEntry(
                3, 2, 3, 1, 1, "orders", bytes(16), 0, 0, 0, 0, 1, 70, -1, -1, -1, False, 1
            ),
            Gap(4, 5, "lost"),
            spool.RunEnded(5, 6, 7),
        ]
        return [b"".join(map(spool.encode, entries))]

    def draw(self, number: int) -> bytes:
        rng = self.rng(number)
        kind = rng.choice((SNAPSHOT, SNAPSHOT, SPOOL))
        seeds = self.snapshots if kind == SNAPSHOT else self.spools
        data = rng.choice(seeds)
        if rng.random() < 0.3:
            data = mutated(rng, data, seeds, INPUT_BYTES_MAX)
        else:
            data = _resealed(rng, data) if kind == SNAPSHOT else _resealed_spool(rng, data)
        return bytes([kind]) + data

    def check(self, data: bytes) -> None:
        if data[:1] == bytes([SPOOL]):
            for _ in spool.decode(data[1:]):
                pass
            return
        try:
            _image(data[1:])
        except (FormatError, DamageError) as error:
            if not str(error):
                raise Broken("refused without a reason") from error

    def memory_bytes_max(self, data: bytes) -> int:
        return super().memory_bytes_max(data) + 200 * len(data)


def _image(data: bytes) -> ClusterImage:
    """What a file says. Raises FormatError and DamageError."""
    source = BytesIO(data)
    builder = Builder()
    for each in read_frames(source, check_file_header(source), len(data)):
        builder.add(each)
    if not builder.complete:
        raise DamageError(0, "the file ends before the snapshot that it begins with")
    return builder.image()


# -- files with right checksums --------------------------------------------------------------------


def _frames(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    source = BytesIO(data)
    for each in read_frames(source, check_file_header(source), len(data)):
        yield each.head, each.body


def _resealed(rng: random.Random, data: bytes) -> bytes:
    frames = list(_frames(data))
    at = rng.randrange(len(frames))
    out = [file_header()]
    for index, (head, body) in enumerate(frames):
        pieces = head, body
        if index == at and rng.random() < 0.2:
            pieces = head, mutated(rng, body, (), INPUT_BYTES_MAX)
        elif index == at:
            pieces = _changed_msgpack(rng, head), body
        out += [bytes(piece) for piece in frame(pieces[0], [memoryview(pieces[1])])]
        if index == at and rng.random() < 0.05:
            out += out[-2:]
    return b"".join(out)


def _resealed_spool(rng: random.Random, data: bytes) -> bytes:
    bodies = []
    position = 0
    while position < len(data):
        size, _ = spool.HEADER.unpack_from(data, position)
        position += spool.HEADER.size
        bodies.append(data[position : position + size])
        position += size
    at = rng.randrange(len(bodies))
    bodies[at] = _changed_msgpack(rng, bodies[at])
    return b"".join(spool.HEADER.pack(len(body), zlib.crc32(body)) + body for body in bodies)


def _changed_msgpack(rng: random.Random, data: bytes) -> bytes:
    if rng.random() < 0.2:
        return mutated(rng, data, (), INPUT_BYTES_MAX)
    value = msgspec.msgpack.decode(data, strict=False)
    settings = value[4] if isinstance(value, list) and len(value) > 4 else None
    if isinstance(settings, bytes) and settings and rng.random() < 0.5:
        value[4] = _changed_msgpack(rng, settings)  # msgpack inside of msgpack
        return msgspec.msgpack.encode(value)
    return msgspec.msgpack.encode(_changed(rng, value))


def _changed(rng: random.Random, value: Any) -> Any:
    if isinstance(value, list) and value and rng.random() < 0.95:
        at = rng.randrange(len(value))
        drawn = rng.random()
        if drawn < 0.05:
            return value[:at] + value[at + 1 :]
        if drawn < 0.08:
            return [*value, value[at]]
        return [*value[:at], _changed(rng, value[at]), *value[at + 1 :]]
    if isinstance(value, dict) and value and rng.random() < 0.95:
        key = rng.choice(list(value))
        return {**value, key: _changed(rng, value[key])}
    if isinstance(value, bool):
        return not value
    if isinstance(value, int) and rng.random() < 0.9:
        return rng.choice((*INTERESTING, *SIGNED, value + 1, value - 1))
    if isinstance(value, bytes) and rng.random() < 0.9:
        return mutated(rng, value, (), INPUT_BYTES_MAX)
    return rng.choice((None, 0, -1, "", "x", b"", b"x" * 16, [], {}, True, 1.5, 2**63 - 1))
