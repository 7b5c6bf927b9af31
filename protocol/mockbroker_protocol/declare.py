"""The vocabulary of declarations: what a message looks like in all its versions.

A declaration reads like the JSON files that Kafka generates its own classes from. A *message* has
a name, the range of versions that exist, those that are *flexible* (compact forms and tagged
fields, KIP-482) and its *fields*. A field has a type, the versions it exists in, those in which it
may be null, perhaps a tag, and the default that stands in where it is absent. The type is a
*scalar*, an *array* of a type, or a *shape*: fields of its own under a name of its own. As in
Kafka's files, name, type and versions stand first, and the fields inside follow in `of`:

    Field("topics", Array("FetchTopic"), "7+").of(
        Field("topic", STRING, "7-12"),
    )

Nothing here touches bytes: `primitives.message_construct` turns a declaration and a version into a
`construct` tree, `generate` turns it into a struct class and a table.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from msgspec import Struct

# The vocabulary of declarations; their modules import all of it.
__all__ = [
    "BOOL",
    "BROKER_ID",
    "BYTES",
    "CONFIG_RESOURCE",
    "COORDINATOR",
    "COORDINATOR_KEY",
    "FLOAT64",
    "GENERATION",
    "GROUP_ID",
    "INSTANCE_ID",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "MEMBER_ID",
    "PARTITION",
    "PRODUCER_EPOCH",
    "PRODUCER_ID",
    "RECORDS",
    "STRING",
    "TOPIC_ID",
    "TOPIC_NAME",
    "TRANSACTIONAL_ID",
    "UINT16",
    "UUID",
    "Array",
    "Field",
    "Message",
    "Shape",
]

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


class Entity(Enum):
    """The kind of thing that a field's value names. The first five are Kafka's (`EntityType` of its
    generator).
    """

    TOPIC_NAME = "topicName"
    GROUP_ID = "groupId"
    TRANSACTIONAL_ID = "transactionalId"
    PRODUCER_ID = "producerId"
    BROKER_ID = "brokerId"
    # Ours: Kafka's definitions have none for these.
    TOPIC_ID = "topicId"
    PARTITION = "partition"
    MEMBER_ID = "memberId"
    INSTANCE_ID = "groupInstanceId"
    GENERATION = "generation"  # of a classic group; the member epoch of the others
    PRODUCER_EPOCH = "producerEpoch"
    COORDINATOR_KEY = "coordinatorKey"  # a group or a transactional id: only the request says


TOPIC_NAME = Entity.TOPIC_NAME
GROUP_ID = Entity.GROUP_ID
TRANSACTIONAL_ID = Entity.TRANSACTIONAL_ID
PRODUCER_ID = Entity.PRODUCER_ID
BROKER_ID = Entity.BROKER_ID
TOPIC_ID = Entity.TOPIC_ID
PARTITION = Entity.PARTITION
MEMBER_ID = Entity.MEMBER_ID
INSTANCE_ID = Entity.INSTANCE_ID
GENERATION = Entity.GENERATION
PRODUCER_EPOCH = Entity.PRODUCER_EPOCH
COORDINATOR_KEY = Entity.COORDINATOR_KEY


class EntityBy(Struct, frozen=True):
    """The kind of thing that a field names, given by a number beside it, in `field`."""

    field: str
    kinds: dict[int, Entity]

    def __str__(self) -> str:
        return ", ".join(f"{kind.value} ({self.field} {n})" for n, kind in self.kinds.items())


# ConfigResource.Type; those that are not here (client metrics) name no entity.
CONFIG_RESOURCE = EntityBy(
    "resource_type", {2: TOPIC_NAME, 4: BROKER_ID, 8: BROKER_ID, 32: GROUP_ID}
)
# FindCoordinatorRequest.CoordinatorType; the key of a share partition is no id.
COORDINATOR = EntityBy("key_type", {0: GROUP_ID, 1: TRANSACTIONAL_ID})


class Field:
    """One field of a message or shape.

    `versions` and `nullable` are in Kafka's notation ("4+", "0-12"); `nullable=True` means in
    every version. A field with a `tag` exists only in the tagged section. `compact=False` keeps a
    string in its int16 form in flexible versions, as only the client id of a request header does.

    `entity` is the `entityType` that Kafka's definition of the field has, `own_entity` one that we
    add because it has none. With `null_is_all` null stands for every topic.
    """

    __slots__ = (
        "compact",
        "default",
        "entity",
        "name",
        "null_is_all",
        "nullable",
        "own_entity",
        "tag",
        "type",
        "versions",
    )

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
        entity: Entity | None = None,
        own_entity: Entity | EntityBy | None = None,
        null_is_all: bool = False,
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
        self.entity = entity
        self.own_entity = own_entity
        self.null_is_all = null_is_all

    def of(self, *fields: Field) -> Field:
        """Set the fields of the shape that is this field's type, or its array's element."""
        shape = self.type.element if isinstance(self.type, Array) else self.type
        assert isinstance(shape, Shape), f"{self.name} has no fields of its own"
        shape.of(*fields)
        return self

    @property
    def names(self) -> Entity | EntityBy | None:
        """The kind of thing that the field names: Kafka's, or ours if Kafka has none."""
        return self.own_entity if self.entity is None else self.entity


class Array:
    """`Array(INT32)`, or `Array("FetchTopic")`, an array of a shape."""

    __slots__ = ("element",)

    def __init__(self, element: Scalar | Shape | str) -> None:
        self.element = Shape(element) if isinstance(element, str) else element


class Shape:
    """Named fields that belong together: an array's element, or one nested struct."""

    __slots__ = ("fields", "name")

    def __init__(self, name: str) -> None:
        self.name = name
        self.fields: tuple[Field, ...] = ()

    def of(self, *fields: Field) -> Shape:
        """Set the fields."""
        self.fields = fields
        return self


FieldType: TypeAlias = Scalar | Array | Shape


class Message:
    """A request, a response, a header, or a record of an internal topic.

    `versions` are those that can be spoken, `flexible` those with compact forms and tagged fields.
    A `leading` message is a header: more follows in the same buffer, which must not be copied.
    """

    __slots__ = ("flexible", "leading", "name", "shape", "versions")

    def __init__(self, name: str, versions: str, *, flexible: str, leading: bool = False) -> None:
        self.name = name
        self.versions = Versions.parse(versions)
        self.flexible = Versions.parse(flexible)
        self.leading = leading
        self.shape = Shape(name)

    def of(self, *fields: Field) -> Message:
        """Set the fields."""
        self.shape.of(*fields)
        return self
