"""From a declaration and a version to the construct tree that reads and writes it."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

from construct import Construct
from construct import Struct as ConstructStruct

from mockbroker_protocol.composites import INT32, ArrayOf, Maybe, Shaped
from mockbroker_protocol.declarations import class_names
from mockbroker_protocol.declare import Array, Field, Message, Scalar, Shape
from mockbroker_protocol.exceptions import UnknownVersionError
from mockbroker_protocol.primitives import Bytes, Fixed, Records, Sized, String
from mockbroker_protocol.tags import TAGS, Node, TagSection

FIXED: dict[Scalar, Fixed] = {
    Scalar.BOOL: Fixed("bool", "?"),
    Scalar.INT8: Fixed("int8", "b"),
    Scalar.INT16: Fixed("int16", "h"),
    Scalar.INT32: INT32,
    Scalar.INT64: Fixed("int64", "q"),
    Scalar.UINT16: Fixed("uint16", "H"),
    Scalar.FLOAT64: Fixed("float64", "d"),
    Scalar.UUID: Fixed("uuid", "16s"),
}

SIZED: dict[Scalar, type[Sized]] = {
    Scalar.STRING: String,
    Scalar.BYTES: Bytes,
    Scalar.RECORDS: Records,
}


def message_construct(schema: ModuleType, message: Message, version: int) -> Shaped:
    """The tree of one version of `message`, which the module `schema` declares.

    Parsing gives, and building takes, an instance of the message's class in `messages/`.
    Raises UnknownVersionError.
    """
    if version not in message.versions:
        raise UnknownVersionError(f"{message.name} has versions {message.versions}, not {version}")
    classes = import_module(schema.__name__.replace(".schemas.", ".messages."))
    builder = _Builder(class_names(schema), classes, version, version in message.flexible)
    return builder.shaped(message.shape)


class _Builder:
    def __init__(
        self, names: dict[int, str], classes: ModuleType, version: int, flexible: bool
    ) -> None:
        self.names = names
        self.classes = classes
        self.version = version
        self.flexible = flexible

    def shaped(self, shape: Shape) -> Shaped:
        cls: type[Any] = getattr(self.classes, self.names[id(shape)])
        subcons: list[Construct] = []
        known: dict[int, tuple[str, Node]] = {}
        for field in shape.fields:
            if self.version not in field.versions:
                continue
            if field.tag is None:
                subcons.append(field.name / self.node(field))
            else:
                known[field.tag] = (field.name, self.node(field))
        if self.flexible:
            subcons.append(TAGS / TagSection(known, cls()))
        return Shaped(cls, ConstructStruct(*subcons))

    def node(self, field: Field) -> Node:
        nullable = self.version in field.nullable
        compact = self.flexible and field.compact
        if isinstance(field.type, Array):
            element = self.element(field.type.element)
            return ArrayOf(element, compact=compact, nullable=nullable)
        if isinstance(field.type, Shape):
            shaped = self.shaped(field.type)
            return Maybe(shaped, tagged=field.tag is not None) if nullable else shaped
        if field.type in SIZED:
            return SIZED[field.type](compact=compact, nullable=nullable)
        return FIXED[field.type]

    def element(self, type_: Scalar | Shape) -> Node:
        if isinstance(type_, Shape):
            return self.shaped(type_)
        if type_ in SIZED:
            return SIZED[type_](compact=self.flexible, nullable=False)
        return FIXED[type_]
