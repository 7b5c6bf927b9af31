"""Config definitions: the tables and what they accept are those of the broker's own classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mockbroker.core.configs.defs import (
    BROKER_CONFIGS,
    CLIENT_METRICS_CONFIGS,
    GROUP_CONFIGS,
    GROUP_SYNONYMS,
    TOPIC_CONFIGS,
    TOPIC_SYNONYMS,
    ConfigDef,
    ConfigType,
    to_text,
)
from mockbroker.core.errors import ConfigError
from tests.support.java_pipe import JavaPipe

pytestmark = pytest.mark.java

TABLES = {
    "broker": BROKER_CONFIGS,
    "topic": TOPIC_CONFIGS,
    "group": GROUP_CONFIGS,
    "client-metrics": CLIENT_METRICS_CONFIGS,
}
OURS = {
    "mockbroker.admin.body.bytes.max",
    "mockbroker.admin.records.bytes.max",
    "mockbroker.admin.snapshots.max",
    "mockbroker.admin.streams.max",
    "mockbroker.auto.created.at.once",
    "mockbroker.batch.decompressed.bytes.max",
    "mockbroker.batch.records.max",
    "mockbroker.coordinator.load.ms",
    "mockbroker.failure.detection",
    "mockbroker.fetch.makes.way",
    "mockbroker.partition.creation.ms",
    "mockbroker.replication",
    "mockbroker.replication.truncation",
    "mockbroker.fetch.session.partitions.max",
    "mockbroker.request.elements.max",
    "mockbroker.response.bytes.max",
    "mockbroker.response.elements.max",
    "mockbroker.streams.tasks.max",
    "mockbroker.transaction.marker.delay.ms",
    "record.validation",
    "telemetry.receiver",
}
# What a class config names has to be a class of the broker's; what a password is, Java hides.
NOT_PARSED = (ConfigType.CLASS, ConfigType.PASSWORD)

BOUNDS = [bound for bits in (16, 32, 64) for bound in (2 ** (bits - 1) - 1, 2 ** (bits - 1))]
NUMBERS = [
    *("0", "1", "-1", "-2", " 7 ", "+5", "-0", "007", "1_0", "1 2", "0x10", "\u0663", "\u00a05"),
    *("1.5", "1e-3", "1E7", "123456789.25", ".5", "5.", "NaN", "-Infinity", "1f"),
    *map(str, BOUNDS),
    *map(str, (9, 10, 11, 17, 18, 22, 23, 25, 2000, 4096, 15000, 1048575, 1048576, 3600000)),
]
WORDS = [
    *("", "abc", "true", "False", " TRUE ", "yes", "compact", " delete", "gzip", "GZIP", "zstd"),
    *("CreateTime", "upgrade", "required", "PLAINTEXT", "broker", "earliest", "read_committed"),
    *("by_duration:PT1H", "by_duration:P1DT2H3M4.5S", "by_duration:PT", "by_duration:PT-1H"),
]
LISTS = [
    *("a,b", "a,,b", ",", "a, b ,c", "a,a", "compact,delete", "classic,consumer", "*", "*,1:1"),
    *("1:2", "1:2,3:4", "1@h:9092", "1@[::1]:9092,2@h:1", "h:9092", "[::1]:9092", "1@h", "h"),
]


@pytest.fixture(scope="module")
def broker() -> Iterator[JavaPipe]:
    with JavaPipe("mockbroker.configs.Configs", ["configs"], "kafka-server") as pipe:
        yield pipe


def described(definition: ConfigDef) -> dict[str, Any]:
    return {
        "name": definition.name,
        "type": definition.type.name,
        "default": definition.default,
        "internal": definition.internal,
        "mode": definition.mode.name.lower().replace("_", "-"),
    }


@pytest.mark.covers("S304")
@pytest.mark.parametrize("table", TABLES)
def test_every_config_has_kafkas_type_default_and_update_mode(broker: JavaPipe, table: str) -> None:
    theirs = {d["name"]: d for d in broker.ask_one("definitions", table=table)["definitions"]}
    if table != "broker":  # only broker configs have update modes
        for definition in theirs.values():
            definition["mode"] = "read-only"
    ours = {name: described(d) for name, d in TABLES[table].items() if name not in OURS}
    assert ours == theirs


@pytest.mark.parametrize("table", TABLES)
def test_every_value_is_taken_or_refused_as_kafka_does(broker: JavaPipe, table: str) -> None:
    """With the same message."""
    items, ours = [], []
    for name, definition in TABLES[table].items():
        if name in OURS or definition.type in NOT_PARSED:
            continue
        for text in (*NUMBERS, *WORDS, *LISTS):
            items.append({"table": table, "name": name, "text": text})
            try:
                ours.append(to_text(definition.parse(text)))
            except ConfigError as error:
                ours.append(f"refused: {error}")
    answers = broker.ask("parse", items)
    theirs = [f"refused: {r['message']}" if "error" in r else r["text"] for r in answers]
    wrong = [
        (item["name"], item["text"], theirs[i], ours[i])
        for i, item in enumerate(items)
        if theirs[i] != ours[i]
    ]
    assert wrong == []


def test_topics_and_groups_fall_back_to_the_broker_configs_that_kafka_names(
    broker: JavaPipe,
) -> None:
    theirs = broker.ask_one("synonyms")
    assert {name: list(names) for name, names in TOPIC_SYNONYMS.items()} == theirs["topic"]
    assert theirs["group"] == GROUP_SYNONYMS
