"""Damaged bytes mean to us what they mean to Kafka: the same content, or a refusal by both."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from mockbroker_protocol.codec import Codec
from mockbroker_protocol.exceptions import DecodeError
from tests.oracle.catalogue import Entry, entries, versions_43
from tests.oracle.generate import Generator
from tests.support.java_pipe import JavaPipe

pytestmark = pytest.mark.java

MESSAGES_PER_VERSION = 2
DAMAGES_PER_MESSAGE = 12
MESSAGE_BYTES_MAX = 400

# The values that lengths, counts, nulls and varints turn on, besides any other.
BYTES = (0, 1, 2, 0x7F, 0x80, 0xFF, 0xFE)


def damaged(entry: Entry, version: int) -> Iterator[tuple[Codec, bytes]]:
    """Messages with one or two bytes replaced, some of them cut short; the same every time."""
    codec = Codec(entry.schema, entry.message, version)
    generator = Generator(entry, version, f"damaged {entry} v{version}")
    chance = random.Random(f"{entry} v{version}")
    for _ in range(MESSAGES_PER_VERSION):
        data = b"".join(codec.encode(generator.message()))[:MESSAGE_BYTES_MAX]
        for _ in range(DAMAGES_PER_MESSAGE if data else 0):
            changed = bytearray(data)
            for _ in range(chance.choice((1, 1, 2))):
                value = chance.choice((*BYTES, chance.randrange(256)))
                changed[chance.randrange(len(changed))] = value
            if chance.random() < 0.15:
                changed = changed[: chance.randrange(len(changed) + 1)]
            yield codec, bytes(changed)


def ours(codec: Codec, data: bytes) -> tuple[str, int] | None:
    """What we write for what we read, and the bytes left over; None if we refuse."""
    try:
        message, end = codec.decode(data)
    except DecodeError:
        return None
    return b"".join(codec.encode(message)).hex(), len(data) - end


@pytest.mark.parametrize("entry", list(entries()), ids=str)
def test_damaged_bytes_are_read_alike_or_refused_by_both(entry: Entry, kafka43: JavaPipe) -> None:
    """Every version of every message; Kafka's classes of 4.3.1 are the judge."""
    cases = [case for version in versions_43(entry) for case in damaged(entry, version)]
    items = [
        {"name": entry.kafka_class, "version": codec.version, "hex": data.hex()}
        for codec, data in cases
    ]
    for (codec, data), answer in zip(cases, kafka43.ask("decode", items), strict=True):
        # Kafka reads tags in any order but cannot write what it has read then; we sort them.
        if "Invalid raw tag field list" in (answer.get("message") or ""):
            continue
        theirs = None if "error" in answer else (answer["hex"], answer["left"])
        assert ours(codec, data) == theirs, f"{codec}: {data.hex()}: {answer}"
