"""What an answer says has happened: records delivered, offsets committed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from mockbroker.core.message_facts import TopicName, targets
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.records import BatchHeader, RecordsError, split_batches

Fields = dict[str, Any]
Opener = Callable[[Any, Any, TopicName], Iterator[Fields]]


def parts_of(api_key: int, request: Any, response: Any, topic_name: TopicName) -> Iterator[Fields]:
    """The fields of the events that an answer holds. `request` is None when it is forgotten."""
    opener = _OPENERS.get(api_key)
    return iter(()) if opener is None else opener(request, response, topic_name)


def error_names(message: Any) -> tuple[str, ...]:
    """The names of all error codes in an answer but NONE, each once, in order."""
    found: dict[str, None] = {}
    if message is not None:
        for code in _codes(message):
            if code:
                found[error_name(code)] = None
    return tuple(found)


def error_name(code: int) -> str:
    """Kafka's name of an error code; the number of one that Kafka does not have."""
    known = ErrorCode._value2member_map_.get(code)
    return str(code) if known is None else known.name


def _codes(item: msgspec.Struct) -> Iterator[int]:
    for name in item.__struct_fields__:
        value = getattr(item, name)
        if name.endswith("error_code"):
            yield value
        elif isinstance(value, msgspec.Struct):
            yield from _codes(value)
        elif isinstance(value, list) and value and isinstance(value[0], msgspec.Struct):
            for each in value:
                yield from _codes(each)


def _headers(records: Any) -> Iterator[BatchHeader]:
    if records is None:
        return
    try:
        for header, _ in split_batches(records):
            yield header
    except RecordsError:
        return


def _delivered(request: Any, response: Any, topic_name: TopicName) -> Iterator[Fields]:
    asked: dict[tuple[str, int], int] = {}
    if request is not None:
        asked = {
            (topic, partition): item.fetch_offset
            for topic, partition, item in targets(request, topic_name)
            if hasattr(item, "fetch_offset")
        }
    for topic, partition, answer in targets(response, topic_name):
        headers = list(_headers(answer.records))
        if not headers:
            continue
        # A consumer passes over what comes before the offset it asked for, and over markers.
        wanted = asked.get((topic, partition), headers[0].base_offset)
        yield {
            "kind": "deliver",
            "topic": topic,
            "partition": partition,
            "first_offset": max(wanted, headers[0].base_offset),
            "last_offset": headers[-1].last_offset,
            "records": sum(header.count for header in headers if not header.is_control),
            "bytes": sum(header.size for header in headers),
        }


def _committed(request: Any, response: Any, topic_name: TopicName) -> Iterator[Fields]:
    if request is None:
        return
    failed = {
        (topic, partition)
        for topic, partition, answer in targets(response, topic_name)
        if answer.error_code
    }
    for topic, partition, item in targets(request, topic_name):
        if (topic, partition) not in failed:
            yield {
                "kind": "commit",
                "topic": topic,
                "partition": partition,
                "offset": item.committed_offset,
            }


_OPENERS: dict[int, Opener] = {
    int(ApiKey.FETCH): _delivered,
    int(ApiKey.OFFSET_COMMIT): _committed,
    int(ApiKey.TXN_OFFSET_COMMIT): _committed,
}
