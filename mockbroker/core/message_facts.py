"""What a decoded request or answer is about: its topics and partitions, its group, its producer.

Kafka's messages name these things alike, so a plan for each struct is made from its fields once,
and serves every API and version. A *target* is a topic, mostly with a partition, and the innermost
struct that speaks of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import msgspec

TopicName = Callable[[bytes], "str | None"]

# Field -> the fact it tells, wherever it stands at the top level of a message.
SCALARS: Mapping[str, str] = {
    "acks": "acks",
    "isolation_level": "isolation_level",
    "group_id": "group",
    "consumer_group_id": "group",
    "member_id": "member",
    "group_instance_id": "instance_id",
    "instance_id": "instance_id",
    "generation_id": "generation",
    "generation_id_or_member_epoch": "generation",
    "member_epoch": "generation",
    "transactional_id": "transactional_id",
    "v3_and_below_transactional_id": "transactional_id",
    "producer_id": "producer_id",
    "v3_and_below_producer_id": "producer_id",
    "producer_epoch": "producer_epoch",
    "v3_and_below_producer_epoch": "producer_epoch",
    "error_code": "error_code",
    "throttle_time_ms": "throttle_time_ms",
}
# Fields that name the topic of a struct and of what is below it.
_TOPIC_FIELDS = ("topic", "topic_name")
_PARTITION_FIELDS = ("partition_index", "partition", "index", "partition_id")
_PARTITION_LISTS = ("partitions", "partition_indexes", "partition_ids")
_TOPIC_LISTS = ("topic_names", "subscribed_topic_names")
_ZERO_UUID = bytes(16)
_TOPIC_RESOURCE = 2  # ConfigResource.Type.TOPIC


class Target(NamedTuple):
    """A topic that a message speaks of; `partition` is -1 where it means the topic as a whole."""

    topic: str
    partition: int
    item: Any


class _Plan(NamedTuple):
    topic_field: str | None
    has_topic_id: bool
    partition_field: str | None
    partition_lists: tuple[str, ...]
    topic_lists: tuple[str, ...]
    children: tuple[str, ...]
    is_config_resource: bool


@cache
def _plan(kind: type[msgspec.Struct]) -> _Plan:
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    named = next((name for name in _TOPIC_FIELDS if name in fields), None)
    if named is None and "Topic" in kind.__name__ and "name" in fields:
        named = "name"
    if named is not None and not _is_text(fields[named].type):
        named = None
    return _Plan(
        named,
        "topic_id" in fields,
        next((name for name in _PARTITION_FIELDS if name in fields), None),
        tuple(name for name in _PARTITION_LISTS if name in fields and _holds_ints(fields[name])),
        tuple(name for name in _TOPIC_LISTS if name in fields),
        tuple(name for name, field in fields.items() if _holds_structs(field)),
        {"resource_type", "resource_name"} <= fields.keys(),
    )


def scalars(message: msgspec.Struct) -> dict[str, object]:
    """The facts that stand at the top level, by the names of `SCALARS`; empty ones are left out."""
    found: dict[str, object] = {}
    for name in message.__struct_fields__:
        fact = SCALARS.get(name)
        if fact is not None:
            value = getattr(message, name)
            if value not in (None, "") and fact not in found:
                found[fact] = value
    return found


def targets(message: msgspec.Struct, topic_name: TopicName) -> Iterator[Target]:
    """Every topic and partition that the message names, in its order.

    `topic_name` tells the name behind a topic id; an id nobody knows is shown in hex.
    """
    return _walk(message, "", topic_name)


def _walk(item: msgspec.Struct, topic: str, topic_name: TopicName) -> Iterator[Target]:
    plan = _plan(type(item))
    here = _topic_of(item, plan, topic_name) or topic
    if here and plan.partition_field is not None:
        yield Target(here, getattr(item, plan.partition_field), item)
        return
    for name in plan.topic_lists:
        for text in getattr(item, name) or ():
            yield Target(text, -1, item)
    found = False
    for name in plan.partition_lists:
        for partition in getattr(item, name) or () if here else ():
            found = True
            yield Target(here, partition, item)
    for name in plan.children:
        value = getattr(item, name)
        for child in value if isinstance(value, list) else (value,):
            if child is not None:
                for target in _walk(child, here, topic_name):
                    found = True
                    yield target
    if here and here != topic and not found:
        yield Target(here, -1, item)


def _topic_of(item: msgspec.Struct, plan: _Plan, topic_name: TopicName) -> str:
    if plan.topic_field is not None:
        name: str | None = getattr(item, plan.topic_field)
        if name:
            return name
    if plan.has_topic_id:
        topic_id: bytes = item.topic_id  # type: ignore[attr-defined]
        if topic_id != _ZERO_UUID:
            return topic_name(topic_id) or topic_id.hex()
    if plan.is_config_resource and item.resource_type == _TOPIC_RESOURCE:  # type: ignore[attr-defined]
        return str(item.resource_name)  # type: ignore[attr-defined]
    return ""


def _is_text(annotation: object) -> bool:
    return annotation is str or str in getattr(annotation, "__args__", ())


def _element(annotation: object) -> object:
    """The element type of `list[X]` or `list[X] | None`; None for anything else."""
    if getattr(annotation, "__origin__", None) is list:
        return annotation.__args__[0]  # type: ignore[attr-defined]
    for option in getattr(annotation, "__args__", ()):
        if getattr(option, "__origin__", None) is list:
            return option.__args__[0]
    return None


def _holds_ints(field: msgspec.structs.FieldInfo) -> bool:
    return _element(field.type) is int


def _holds_structs(field: msgspec.structs.FieldInfo) -> bool:
    options = (field.type, _element(field.type), *getattr(field.type, "__args__", ()))
    return any(isinstance(each, type) and issubclass(each, msgspec.Struct) for each in options)
