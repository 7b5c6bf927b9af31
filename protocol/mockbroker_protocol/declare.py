"""The vocabulary of declarations: what a message looks like in all its versions.

A declaration reads like the JSON files that Kafka generates its own classes from. A *message* has
a name, the range of versions that exist, those that are *flexible* (compact forms and tagged
fields, KIP-482) and its *fields*. A field has a type, the versions it exists in, those in which it
may be null, perhaps a tag, and the default that stands in where it is absent. The type is a
*scalar*, an *array* of a type, or a *shape*: fields of its own under a name of its own.

Nothing here touches bytes: `primitives.message_construct` turns a declaration and a version into a
`construct` tree, `generate` turns it into a struct class and a table.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from msgspec import Struct

VERSION_MAX = 32767


class Versions(Struct, frozen=True):
    """An inclusive range of versions; empty if `low` is above `high`."""

    low: int
    high: int

    def __contains__(self, version: int) -> bool:
        return self.low <= version <= self.high

    def __str__(self) -> str:
        if self.low > self.high:
            return "none"
        if self.high == VERSION_MAX:
            return f"{self.low}+"
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"

    @staticmethod
    def parse(text: str) -> Versions:
        """Read Kafka's notation: `3`, `3-7`, `3+` or `none`."""
        if text == "none":
            return NEVER
        if text.endswith("+"):
            return Versions(int(text[:-1]), VERSION_MAX)
        low, _, high = text.partition("-")
        return Versions(int(low), int(high or low))


NEVER = Versions(0, -1)
ALWAYS = Versions(0, VERSION_MAX)


class Scalar(Enum):
    """The types without parts (section "Protocol primitive types" of Kafka's protocol guide)."""

    BOOL = "bool"
    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    UINT16 = "uint16"
    FLOAT64 = "float64"
    UUID = "uuid"
    STRING = "string"
    BYTES = "bytes"
    RECORDS = "records"


BOOL = Scalar.BOOL
INT8 = Scalar.INT8
INT16 = Scalar.INT16
INT32 = Scalar.INT32
INT64 = Scalar.INT64
UINT16 = Scalar.UINT16
FLOAT64 = Scalar.FLOAT64
UUID = Scalar.UUID
STRING = Scalar.STRING
BYTES = Scalar.BYTES
RECORDS = Scalar.RECORDS

NATURAL_DEFAULTS: dict[Scalar, object] = {
    BOOL: False,
    INT8: 0,
    INT16: 0,
    INT32: 0,
    INT64: 0,
    UINT16: 0,
    FLOAT64: 0.0,
    UUID: bytes(16),
    STRING: "",
    BYTES: b"",
    RECORDS: None,
}
"""What a field without a stated default holds where it is absent."""


class _Natural(Enum):
    NATURAL = "the type's natural default"


NATURAL = _Natural.NATURAL


class Field:
    """One field of a message or shape.

    `versions` and `nullable` are in Kafka's notation ("4+", "0-12"); `nullable=True` means in
    every version. A field with a `tag` exists only in the tagged section. `compact=False` keeps a
    string in its int16 form in flexible versions, as only the client id of a request header does.
    """

    __slots__ = ("compact", "default", "name", "nullable", "tag", "type", "versions")

    def __init__(
        self,
        name: str,
        type: FieldType,  # noqa: A002
        versions: str | None = None,
        *,
        nullable: str | bool = False,
        tag: int | None = None,
        default: object = NATURAL,
        compact: bool = True,
    ) -> None:
        self.name = name
        self.type = type
        self.versions = ALWAYS if versions is None else Versions.parse(versions)
        if isinstance(nullable, bool):
            self.nullable = ALWAYS if nullable else NEVER
        else:
            self.nullable = Versions.parse(nullable)
        self.tag = tag
        if default is NATURAL and isinstance(type, Scalar):
            default = NATURAL_DEFAULTS[type]
        self.default = default
        self.compact = compact


class Array:
    """An array of scalars or shapes."""

    __slots__ = ("element",)

    def __init__(self, element: Scalar | Shape) -> None:
        self.element = element


class Shape:
    """Named fields that belong together: an array's element, or one nested struct."""

    __slots__ = ("fields", "name")

    def __init__(self, name: str, *fields: Field) -> None:
        self.name = name
        self.fields = fields


FieldType: TypeAlias = Scalar | Array | Shape


class Message:
    """A request, a response, a header, or a record of an internal topic.

    `versions` are those that can be spoken, `flexible` those with compact forms and tagged fields.
    A `leading` message is a header: more follows in the same buffer, which must not be copied.
    """

    __slots__ = ("flexible", "leading", "name", "shape", "versions")

    def __init__(
        self, name: str, *fields: Field, versions: str, flexible: str, leading: bool = False
    ) -> None:
        self.name = name
        self.versions = Versions.parse(versions)
        self.flexible = Versions.parse(flexible)
        self.leading = leading
        self.shape = Shape(name, *fields)
