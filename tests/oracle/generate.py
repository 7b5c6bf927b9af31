"""Seeded messages: any content that a version can carry, corners preferred."""

from __future__ import annotations

import math
import random
import struct
from typing import Any

from mockbroker_protocol.declare import Array, Field, Scalar, Shape
from tests.oracle.catalogue import UNDECLARED_TAGS, Entry

_LIMITS = {
    Scalar.INT8: (-(2**7), 2**7 - 1),
    Scalar.INT16: (-(2**15), 2**15 - 1),
    Scalar.UINT16: (0, 2**16 - 1),
    Scalar.INT32: (-(2**31), 2**31 - 1),
    Scalar.INT64: (-(2**63), 2**63 - 1),
}
_TEXTS = ("", "a", "topic-1", "schlüssel ✓", "emoji 😀", "x" * 126, "y" * 127, "z" * 300)
# Lengths around those at which an unsigned varint of length + 1 takes another byte.
_SIZES = (0, 1, 5, 126, 127, 128, 1000)
_COUNTS = (0, 1, 1, 2, 3)


class Generator:
    """Makes messages of one entry and version; the same seed makes the same messages."""

    def __init__(self, entry: Entry, version: int, seed: str) -> None:
        self.entry = entry
        self.version = version
        self.rng = random.Random(seed)
        self.depth = 0

    def message(self, *, unknown_tags: bool = False) -> Any:
        return self._struct(self.entry.message.shape, unknown_tags=unknown_tags)

    def _struct(self, shape: Shape, *, unknown_tags: bool = False) -> Any:
        values = {
            field.name: self._field(field)
            for field in shape.fields
            if self.version in field.versions
            and (field.tag is None or self.rng.random() < 0.7)  # an absent tag is its default
        }
        if unknown_tags and self.entry.is_flexible(self.version):
            values["unknown_tags"] = UNDECLARED_TAGS
        return self.entry.class_of(shape)(**values)

    def _field(self, field: Field) -> Any:
        if self.version in field.nullable and self.rng.random() < 0.3:
            return None
        if isinstance(field.type, Array):
            element = field.type.element
            count = self.rng.choice(_COUNTS)
            return [self._element(element) for _ in range(count)]
        return self._element(field.type)

    def _element(self, type_: Scalar | Shape) -> Any:
        return self._struct(type_) if isinstance(type_, Shape) else self._scalar(type_)

    def _scalar(self, type_: Scalar) -> Any:
        rng = self.rng
        if type_ in _LIMITS:
            low, high = _LIMITS[type_]
            return rng.choice((low, high, 0, 1, rng.randint(low, high)))
        if type_ is Scalar.BOOL:
            return rng.random() < 0.5
        if type_ is Scalar.FLOAT64:
            return self._double()
        if type_ is Scalar.UUID:
            return rng.randbytes(16)
        if type_ is Scalar.STRING:
            return rng.choice(_TEXTS)
        return rng.randbytes(rng.choice(_SIZES))

    def _double(self) -> float:
        """Any finite double: JSON has no word for the others."""
        (value,) = struct.unpack(">d", self.rng.randbytes(8))
        return value if math.isfinite(value) else 0.5
