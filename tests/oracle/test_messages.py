"""Our bytes are Kafka's bytes, in both directions, for every message in every version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from mockbroker_protocol.codec import Codec
from tests.oracle.catalogue import Entry, entries, kafka_json, versions_43
from tests.oracle.generate import Generator
from tests.support.java_pipe import JavaPipe

pytestmark = pytest.mark.java

ENTRIES = list(entries())
MESSAGES_PER_VERSION = 6

Sample = tuple[int, Any, str, Any]  # version, struct, hex of our bytes, Kafka's JSON


def samples(entry: Entry, version: int) -> Iterator[Sample]:
    """The default message, then generated ones."""
    codec = Codec(entry.schema, entry.message, version)
    generator = Generator(entry, version, f"{entry} v{version}")
    structs = [entry.class_of(entry.message.shape)()]
    structs += [generator.message() for _ in range(MESSAGES_PER_VERSION - 1)]
    for struct in structs:
        encoded = b"".join(codec.encode(struct))
        yield version, struct, encoded.hex(), kafka_json(entry, version, struct)


def without_records(json: Any) -> Any:
    """Kafka's converter reads records, yet leaves empty bytes in their place when it writes."""
    if isinstance(json, list):
        return [without_records(each) for each in json]
    if not isinstance(json, dict):
        return json
    return {
        name: "" if name == "records" and isinstance(value, str) else without_records(value)
        for name, value in json.items()
    }


def check(entry: Entry, versions: Iterable[int], oracle: JavaPipe) -> None:
    taken = [sample for version in versions for sample in samples(entry, version)]

    def item(version: int, **content: Any) -> dict[str, Any]:
        return {"name": entry.kafka_class, "version": version, **content}

    encoded = oracle.ask("encode", [item(v, json=j) for v, _, _, j in taken])
    decoded = oracle.ask("decode", [item(v, hex=h) for v, _, h, _ in taken])
    for (version, struct, ours, json), theirs, read in zip(taken, encoded, decoded, strict=True):
        where = f"{entry} v{version}: {struct}"
        assert theirs == {"hex": ours}, where
        content = without_records(json)
        assert read == {"json": content, "left": 0, "hex": ours, "unknown": []}, where
        codec = Codec(entry.schema, entry.message, version)
        assert codec.decode(bytes.fromhex(theirs["hex"])) == (struct, len(ours) // 2), where


@pytest.mark.parametrize("entry", ENTRIES, ids=str)
def test_both_sides_write_the_same_bytes_and_read_the_same_content(
    entry: Entry, kafka43: JavaPipe
) -> None:
    check(entry, versions_43(entry), kafka43)


@pytest.fixture(scope="module")
def stable39(kafka39: JavaPipe) -> dict[str, tuple[int, int]]:
    """The versions of each class that 3.9.1 holds for settled."""
    apis = kafka39.ask_one("apis")["apis"]
    known = {
        api[kind]: (api["lowest"], api["highestStable"])
        for api in apis
        for kind in ("request", "response")
    }
    protocols = ("ConsumerProtocolSubscription", "ConsumerProtocolAssignment")
    return known | dict.fromkeys(protocols, (0, 3)) | {"RequestHeaderData": (0, 2)}


def test_3_9_1_agrees_for_the_versions_it_knows(
    kafka39: JavaPipe, stable39: dict[str, tuple[int, int]]
) -> None:
    known = [entry for entry in ENTRIES if entry.kafka_class in stable39]
    assert len(known) > 100
    for entry in known:
        low, high = stable39[entry.kafka_class]
        check(entry, [v for v in entry.versions if low <= v <= high], kafka39)


def test_tags_that_nobody_declared_are_kept_by_both(kafka43: JavaPipe) -> None:
    flexible = [(e, v) for e in ENTRIES for v in e.versions if e.is_flexible(v)]
    items, structs = [], []
    for entry, version in flexible:
        generator = Generator(entry, version, f"tags {entry} v{version}")
        struct = generator.message(unknown_tags=True)
        encoded = b"".join(Codec(entry.schema, entry.message, version).encode(struct))
        items.append({"name": entry.kafka_class, "version": version, "hex": encoded.hex()})
        structs.append(struct)
    for (entry, version), item, struct, read in zip(
        flexible, items, structs, kafka43.ask("decode", items), strict=True
    ):
        where = f"{entry} v{version}"
        assert read["hex"] == item["hex"], where
        assert read["unknown"] == [77, 9000], where
        codec = Codec(entry.schema, entry.message, version)
        assert codec.decode(bytes.fromhex(item["hex"]))[0] == struct, where
