"""Messages with something in every field: what one version of a declaration can carry."""

from __future__ import annotations

from importlib import import_module
from itertools import count
from types import ModuleType
from typing import Any

from mockbroker_protocol import ApiKey
from mockbroker_protocol.codec import Codec, request_codec, response_codec
from mockbroker_protocol.declarations import class_names, schema_module
from mockbroker_protocol.declare import Array, EntityBy, FieldType, Scalar, Shape
from mockbroker_protocol.records import Record, build_batch


class Populator:
    """Fills structs of one module: two elements in each array, and no value twice."""

    def __init__(self, schema: ModuleType) -> None:
        self._classes = import_module(schema.__name__.replace(".schemas.", ".messages."))
        self._names = class_names(schema)
        self._numbers = count(1)

    def struct(self, shape: Shape) -> Any:
        """One struct; a number that says what a field beside it names says one of these things."""
        fields = {field.name: self._value(field.type) for field in shape.fields}
        for field in shape.fields:
            if isinstance(field.names, EntityBy):
                kinds = sorted(field.names.kinds)
                fields[field.names.field] = kinds[next(self._numbers) % len(kinds)]
        return getattr(self._classes, self._names[id(shape)])(**fields)

    def _value(self, type_: FieldType) -> Any:
        if isinstance(type_, Array):
            return [self._value(type_.element) for _ in range(2)]
        if isinstance(type_, Shape):
            return self.struct(type_)
        number = next(self._numbers)
        match type_:
            case Scalar.BOOL:
                return True
            case Scalar.STRING:
                return str(number)  # a name, and the node id of a broker that is a resource
            case Scalar.BYTES:
                return b"%d" % number
            case Scalar.UUID:
                return number.to_bytes(16, "big")
            case Scalar.RECORDS:
                return build_batch([Record(timestamp=1, value=b"x")], producer_id=number)
            case Scalar.FLOAT64:
                return float(number)
            case Scalar.INT8:
                return number % 128
            case _:
                return number


def populated(key: ApiKey, version: int, *, request: bool = True) -> Any:
    """A message of an API with all fields of a version, and defaults for those it lacks."""
    codec = (request_codec if request else response_codec)(key, version)
    return read_back(codec, Populator(schema_module(key.name.lower())).struct(codec.message.shape))


def read_back(codec: Codec, message: Any) -> Any:
    """What a message is on the other side."""
    decoded, _ = codec.decode(memoryview(b"".join(codec.encode(message))), 0)
    return decoded
