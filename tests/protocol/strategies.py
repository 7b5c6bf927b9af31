"""Hypothesis strategies for messages: any value that one version of a declaration can carry."""

from __future__ import annotations

import functools
from importlib import import_module
from types import ModuleType
from typing import Any

from hypothesis import strategies as st

from mockbroker_protocol.codec import Codec
from mockbroker_protocol.declarations import (
    class_names,
    messages_of,
    module_names,
    schema_module,
)
from mockbroker_protocol.declare import Array, Field, FieldType, Scalar, Shape

# Short, but with every length of UTF-8 and now and then too long for a one-byte length.
TEXTS = st.text("aé€😀", max_size=4) | st.sampled_from(["", "topic-1", "x" * 126, "x" * 127])
BLOBS = st.binary(max_size=4) | st.sampled_from([b"", bytes(126), bytes(127)])

SCALARS: dict[Scalar, st.SearchStrategy[Any]] = {
    Scalar.BOOL: st.booleans(),
    Scalar.INT8: st.integers(-(2**7), 2**7 - 1),
    Scalar.INT16: st.integers(-(2**15), 2**15 - 1),
    Scalar.INT32: st.integers(-(2**31), 2**31 - 1),
    Scalar.INT64: st.integers(-(2**63), 2**63 - 1),
    Scalar.UINT16: st.integers(0, 2**16 - 1),
    Scalar.FLOAT64: st.floats(allow_nan=False),
    Scalar.UUID: st.binary(min_size=16, max_size=16),
    Scalar.STRING: TEXTS,
    Scalar.BYTES: BLOBS,
    Scalar.RECORDS: BLOBS,
}

UNKNOWN_TAGS = st.none() | st.dictionaries(
    st.integers(50, 300), st.binary(max_size=3), min_size=1, max_size=2
)


def all_codecs() -> list[Codec]:
    """A codec of its own for every declared message in every version."""
    return [
        Codec(schema, message, version)
        for schema in map(schema_module, module_names())
        for message in messages_of(schema)
        for version in range(message.versions.low, message.versions.high + 1)
    ]


def schema_of(codec: Codec) -> ModuleType:
    return codec._schema


@functools.cache
def messages(codec: Codec, elements_max: int = 5) -> st.SearchStrategy[Any]:
    """Instances of the codec's message. `elements_max` bounds the outermost arrays."""
    return Strategies(codec).shapes(codec.message.shape, elements_max)


class Strategies:
    """Strategies for the parts of one message in one version."""

    def __init__(self, codec: Codec) -> None:
        schema = schema_of(codec)
        self.classes = import_module(schema.__name__.replace(".schemas.", ".messages."))
        self.names = class_names(schema)
        self.version = codec.version
        self.flexible = codec.flexible

    def shapes(self, shape: Shape, elements_max: int) -> st.SearchStrategy[Any]:
        present = {
            field.name: self.fields(field, elements_max)
            for field in shape.fields
            if self.version in field.versions
        }
        if self.flexible:
            present["unknown_tags"] = UNKNOWN_TAGS
        return st.builds(getattr(self.classes, self.names[id(shape)]), **present)

    def fields(self, field: Field, elements_max: int) -> st.SearchStrategy[Any]:
        strategy = self.values(field.type, elements_max)
        return st.none() | strategy if self.version in field.nullable else strategy

    def values(self, type_: FieldType, elements_max: int) -> st.SearchStrategy[Any]:
        if isinstance(type_, Array):
            return st.lists(self.values(type_.element, elements_max), max_size=elements_max)
        if isinstance(type_, Shape):
            return self.shapes(type_, max(elements_max // 2, 1))
        return SCALARS[type_]
