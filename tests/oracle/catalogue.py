"""Our declarations as the oracle knows them: the class, the versions, the JSON of each message."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from types import ModuleType
from typing import Any

from mockbroker_protocol.declarations import (
    class_names,
    is_api,
    messages_of,
    module_names,
    schema_module,
)
from mockbroker_protocol.declare import Array, Field, Message, Scalar, Shape

Json = Any

# Versions that Kafka 4 dropped and we still read: ControlledShutdown v0 alone had this header.
GONE_IN_43 = {("RequestHeader", 0)}

# A header without a client id is null to us, as every client that has none sends it; Kafka's class
# starts from an empty one.
OWN_DEFAULTS = {("RequestHeader", "client_id"): ""}

# Header fields whose names we shorten: (shape, our name) -> Kafka's name.
RENAMED = {
    ("RequestHeader", "api_key"): "request_api_key",
    ("RequestHeader", "api_version"): "request_api_version",
}

UNDECLARED_TAGS = {77: b"", 9000: b"unknown"}


@dataclass(frozen=True)
class Entry:
    """One message that we declare."""

    schema: ModuleType
    message: Message

    @property
    def name(self) -> str:
        return self.message.name

    @property
    def kafka_class(self) -> str:
        """The simple name of the class that Kafka generates for it."""
        of_jar = is_api(self.schema) or self.schema.__name__.endswith(".headers")
        return f"{self.name}Data" if of_jar else self.name

    @cached_property
    def classes(self) -> ModuleType:
        return import_module(self.schema.__name__.replace(".schemas.", ".messages."))

    def class_of(self, shape: Shape) -> type[Any]:
        cls: type[Any] = getattr(self.classes, class_names(self.schema)[id(shape)])
        return cls

    @property
    def versions(self) -> range:
        return range(self.message.versions.low, self.message.versions.high + 1)

    def is_flexible(self, version: int) -> bool:
        return version in self.message.flexible

    def __str__(self) -> str:
        return self.name


def entries() -> Iterator[Entry]:
    """Every message that we declare, in the order of its module's name."""
    for name in module_names():
        module = schema_module(name)
        for message in messages_of(module):
            yield Entry(module, message)


def versions_43(entry: Entry) -> list[int]:
    """The versions that 4.3.1's classes know."""
    return [version for version in entry.versions if (entry.name, version) not in GONE_IN_43]


def kafka_name(shape: Shape, field: Field) -> str:
    return RENAMED.get((shape.name, field.name), field.name)


def camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


def kafka_json(entry: Entry, version: int, struct: object) -> Json:
    """The struct as Kafka's JsonConverter writes it: tagged fields only where not the default."""
    return _shape_json(entry, entry.message.shape, version, struct)


def _shape_json(entry: Entry, shape: Shape, version: int, struct: object) -> Json:
    fresh = entry.class_of(shape)()
    node: dict[str, Json] = {}
    for field in shape.fields:
        if version not in field.versions:
            continue
        value = getattr(struct, field.name)
        if field.tag is not None and value == getattr(fresh, field.name):
            continue
        node[camel(kafka_name(shape, field))] = _value_json(entry, field.type, version, value)
    return node


def _value_json(entry: Entry, type_: Scalar | Array | Shape, version: int, value: Any) -> Json:
    if value is None:
        return None
    if isinstance(type_, Array):
        return [_value_json(entry, type_.element, version, each) for each in value]
    if isinstance(type_, Shape):
        return _shape_json(entry, type_, version, value)
    if type_ is Scalar.UUID:
        return base64.urlsafe_b64encode(value).decode().rstrip("=")
    if type_ in (Scalar.BYTES, Scalar.RECORDS):
        return base64.b64encode(value).decode()
    return value


def default_json(entry: Entry, shape: Shape) -> Json:
    """A fresh struct with all its fields, as the oracle dumps a fresh instance of Kafka's class."""
    fresh = entry.class_of(shape)()
    values = {field.name: getattr(fresh, field.name) for field in shape.fields}
    values |= {name: value for (owner, name), value in OWN_DEFAULTS.items() if owner == shape.name}
    return {
        camel(kafka_name(shape, field)): _default_json(entry, field, values[field.name])
        for field in shape.fields
    }


def _default_json(entry: Entry, field: Field, value: Any) -> Json:
    if isinstance(field.type, Shape) and value is not None:
        return default_json(entry, field.type)
    return _value_json(entry, field.type, 0, value)
