"""One error for a whole request: ours is Kafka's `getErrorResponse`, for every API and version."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mockbroker.handlers import load_all
from mockbroker.handlers.base import APIS, CLOSE_CONNECTION
from mockbroker.handlers.error_responses import error_response
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.codec import request_codec, response_codec
from mockbroker_protocol.declarations import declared_keys, schema_module
from tests.oracle.catalogue import Entry
from tests.oracle.generate import Generator
from tests.support.java_pipe import JavaPipe

pytestmark = pytest.mark.java

load_all()

ERRORS = (ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
REQUESTS_PER_VERSION = 5


def requests(key: ApiKey, version: int) -> Iterator[Any]:
    """The default request, then generated ones; such as Kafka takes."""
    schema = schema_module(key.name.lower())
    entry = Entry(schema, schema.REQUEST)
    generator = Generator(entry, version, f"errors of {key.name} v{version}")
    structs = [entry.class_of(schema.REQUEST.shape)()]
    structs += [generator.message() for _ in range(REQUESTS_PER_VERSION - 1)]
    for request in structs:
        if key in MENDED:
            MENDED[key](request)
        yield request


def mend_produce(request: Any) -> None:
    """Kafka puts partitions into a map, so each topic has one name and a partition at least."""
    for number, topic in enumerate(request.topic_data):
        topic.name = f"topic-{number}"
        topic.topic_id = bytes(15) + bytes([number + 1])
        for position, partition in enumerate(topic.partition_data):
            partition.index = position
            partition.records = partition.records or b""
    request.topic_data = [topic for topic in request.topic_data if topic.partition_data]


def mend_markers(request: Any) -> None:
    """Likewise a map, of producers and their partitions."""
    for number, marker in enumerate(request.markers):
        marker.producer_id = number
        for position, topic in enumerate(marker.topics):
            topic.name = f"topic-{position}"
            topic.partition_indexes = list(set(topic.partition_indexes))
        marker.topics = [topic for topic in marker.topics if topic.partition_indexes]


def mend_acls(request: Any) -> None:
    """Kafka refuses to read what has a type or an operation that it does not know."""
    for row in (
        getattr(request, "creations", None) or getattr(request, "filters", None) or [request]
    ):
        for name in row.__struct_fields__:
            if isinstance(getattr(row, name), int):
                setattr(row, name, 3)


def mend_scram(request: Any) -> None:
    """Null asks for all users, for whom Kafka has no error response."""
    request.users = request.users or []


MENDED: dict[ApiKey, Callable[[Any], None]] = {
    ApiKey.PRODUCE: mend_produce,
    ApiKey.WRITE_TXN_MARKERS: mend_markers,
    ApiKey.DESCRIBE_ACLS: mend_acls,
    ApiKey.CREATE_ACLS: mend_acls,
    ApiKey.DELETE_ACLS: mend_acls,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: mend_scram,
}


def words_aside(value: Any, *, has_words: bool = True) -> Any:
    """Builtins of a decoded response; of a message's words only that there are some.

    An API that is not served has no contract to say whether there are any: then they are left out.

    Rows are sorted, because Kafka takes some of them from maps.
    """
    if isinstance(value, list):
        return sorted((words_aside(each, has_words=has_words) for each in value), key=str)
    if isinstance(value, memoryview):
        return bytes(value)
    if not hasattr(value, "__struct_fields__"):
        return value
    fields = {name: getattr(value, name) for name in value.__struct_fields__}
    return {
        name: (has_words and each and "words")
        if name == "error_message"
        else words_aside(each, has_words=has_words)
        for name, each in fields.items()
    }


@pytest.mark.parametrize("key", declared_keys(), ids=lambda key: key.name)
def test_every_api_says_an_error_where_kafka_says_it(key: ApiKey, kafka43: JavaPipe) -> None:
    versions = schema_module(key.name.lower()).REQUEST.versions
    taken = [
        (version, error, request)
        for version in range(versions.low, versions.high + 1)
        for error in ERRORS
        for request in requests(key, version)
    ]
    items = [
        {
            "key": int(key),
            "version": version,
            "error": int(error),
            "hex": b"".join(request_codec(key, version).encode(request)).hex(),
        }
        for version, error, request in taken
    ]
    answers = kafka43.ask("error.response", items)
    for (version, error, request), item, theirs in zip(taken, items, answers, strict=True):
        where = f"{key.name} v{version}: {request}"
        codec = response_codec(key, version)
        read = request_codec(key, version).decode(bytes.fromhex(str(item["hex"])))[0]
        ours = error_response(key, version, read, error)
        assert "hex" in theirs, f"{where}: {theirs}"
        if theirs["hex"] is None:
            assert ours is CLOSE_CONNECTION, where
            continue
        sent = codec.decode(b"".join(codec.encode(ours)))[0]
        expected = codec.decode(bytes.fromhex(theirs["hex"]))[0]
        served = int(key) in APIS
        assert words_aside(sent, has_words=served) == words_aside(expected, has_words=served), where
