"""Small tables and sums that must be Kafka's: keys, headers, error codes, hashes, record types."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from mockbroker.core.hashing.java_hash import coordinator_partition, string_hash
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.consumer_protocol import encode_subscription
from mockbroker_protocol.declarations import declared_keys
from mockbroker_protocol.headers import request_header_version, response_header_version
from mockbroker_protocol.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from tests.oracle.catalogue import entries, kafka_json
from tests.oracle.generate import Generator
from tests.support.java_pipe import JavaPipe

pytestmark = pytest.mark.java

TEXTS = ["", "a", "group", "my-transactional-id", "grüppe ✓", "😀", "polygenelubricants", "x" * 999]


def snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)


@pytest.fixture(scope="module")
def apis(kafka43: JavaPipe) -> list[dict[str, Any]]:
    return [api for api in kafka43.ask_one("apis")["apis"] if "BROKER" in api["listeners"]]


def test_api_keys_bear_kafkas_names_and_numbers(apis: list[dict[str, Any]]) -> None:
    ours = {key.value: key.name for key in ApiKey}
    assert {api["key"]: snake(api["name"]).upper() for api in apis}.items() <= ours.items()


def test_every_api_of_a_broker_is_declared(apis: list[dict[str, Any]]) -> None:
    assert {api["key"] for api in apis} <= set(declared_keys())


def test_requests_and_responses_carry_the_header_that_kafka_expects(
    apis: list[dict[str, Any]],
) -> None:
    theirs = {
        (api["key"], int(version)): tuple(headers)
        for api in apis
        if api["key"] in set(declared_keys())
        for version, headers in api["headers"].items()
    }
    ours = {
        (key, version): (
            request_header_version(key, version),
            response_header_version(key, version),
        )
        for key, version in theirs
    }
    assert ours == theirs


def test_error_codes_and_their_messages_are_kafkas(kafka43: JavaPipe) -> None:
    theirs = {
        error["code"]: (error["name"], error["retriable"], error["message"])
        for error in kafka43.ask_one("errors")["errors"]
    }
    ours = {code.value: (code.name, code.retriable, code.message) for code in ErrorCode}
    assert ours == theirs


def test_groups_and_transactional_ids_hash_as_in_java(kafka43: JavaPipe) -> None:
    rng = random.Random(5)
    texts = TEXTS + ["".join(chr(rng.randint(32, 0x2FFF)) for _ in range(20)) for _ in range(200)]
    for text, theirs in zip(
        texts, kafka43.ask("hash", [{"text": text} for text in texts]), strict=True
    ):
        assert string_hash(text) == theirs["hash"]
        assert coordinator_partition(text, 50) == theirs["abs"] % 50


def test_keys_of_internal_records_begin_with_their_type(kafka43: JavaPipe) -> None:
    topics = {"consumer_offsets": CONSUMER_OFFSETS, "transaction_state": TRANSACTION_STATE}
    seen = 0
    for entry in entries():
        topic = topics.get(entry.schema.__name__.rpartition(".")[2])
        if topic is None or not entry.name.endswith("Key"):
            continue
        key = Generator(entry, 0, entry.name).message()
        theirs = kafka43.ask_one("record.key", name=entry.name, json=kafka_json(entry, 0, key))
        assert topic.encode_key(key).hex() == theirs["hex"]
        assert topic.decode_key(bytes.fromhex(theirs["hex"])) == key
        seen += 1
    assert seen >= 10


def test_values_and_blobs_begin_with_their_version(kafka43: JavaPipe) -> None:
    by_name = {entry.name: entry for entry in entries()}
    value = by_name["OffsetCommitValue"]
    for version in value.versions:
        struct = Generator(value, version, f"value {version}").message()
        json = kafka_json(value, version, struct)
        theirs = kafka43.ask_one("record.value", name=value.name, version=version, json=json)
        assert CONSUMER_OFFSETS.encode_value(struct, version).hex() == theirs["hex"]
    blob = by_name["ConsumerProtocolSubscription"]
    for version in blob.versions:
        struct = Generator(blob, version, f"blob {version}").message()
        json = kafka_json(blob, version, struct)
        theirs = kafka43.ask_one("record.value", name=blob.name, version=version, json=json)
        assert encode_subscription(struct, version).hex() == theirs["hex"]
