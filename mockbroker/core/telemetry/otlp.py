"""A decoder of pushed metrics in the OpenTelemetry format (OTLP).

The payload is a protobuf message, `MetricsData`. The decoder reads numbers with their metric,
attributes and time. It skips histograms, which no Kafka client sends.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_DOUBLE = struct.Struct("<d")
_INT64 = struct.Struct("<q")

# MetricsData → ResourceMetrics → ScopeMetrics → Metric → Gauge or Sum → NumberDataPoint
_RESOURCE_METRICS, _SCOPE_METRICS, _METRICS = 1, 2, 2
_NAME, _GAUGE, _SUM = 1, 5, 7
_DATA_POINTS = 1
_TIME, _AS_DOUBLE, _AS_INT, _ATTRIBUTES = 3, 4, 6, 7


class Point(NamedTuple):
    """One number. `kind` is "gauge" or "sum"; `time_ns` is the client's time since the epoch."""

    name: str
    kind: str
    value: float
    attributes: dict[str, str]
    time_ns: int


class OtlpError(ValueError):
    """The bytes are not a protobuf message; `str()` has the position."""


def points(data: bytes | memoryview) -> list[Point]:
    """The numbers of a `MetricsData`, in order. Raises OtlpError."""
    return [
        point
        for resource in _all(bytes(data), _RESOURCE_METRICS)
        for scope in _all(resource, _SCOPE_METRICS)
        for metric in _all(scope, _METRICS)
        for point in _points_of(metric)
    ]


def _points_of(metric: bytes) -> Iterator[Point]:
    name = "".join(part.decode("utf-8", "replace") for part in _all(metric, _NAME))
    for kind, field in (("gauge", _GAUGE), ("sum", _SUM)):
        for holder in _all(metric, field):
            for point in _all(holder, _DATA_POINTS):
                yield _point(name, kind, point)


def _point(name: str, kind: str, data: bytes) -> Point:
    value, time_ns, attributes = 0.0, 0, {}
    for field, content in _fields(data):
        if isinstance(content, int):
            continue
        if field == _AS_DOUBLE:
            value = _fixed(_DOUBLE, content)
        elif field == _AS_INT:
            value = _fixed(_INT64, content)
        elif field == _TIME:
            time_ns = int.from_bytes(content, "little")
        elif field == _ATTRIBUTES:
            key, text = _attribute(content)
            attributes[key] = text
    return Point(name, kind, value, attributes, time_ns)


def _attribute(data: bytes) -> tuple[str, str]:
    """A KeyValue, with its value as text."""
    key, text = "", ""
    for field, content in _fields(data):
        if field == 1 and isinstance(content, bytes):
            key = content.decode("utf-8", "replace")
        elif field == 2 and isinstance(content, bytes):
            for kind, value in _fields(content):
                if isinstance(value, int):
                    text = str(value)
                elif kind == 4:
                    text = str(_fixed(_DOUBLE, value))
                else:
                    text = value.decode("utf-8", "replace")
    return key, text


def _fixed(layout: struct.Struct, content: bytes) -> float:
    """A number of eight bytes, which a client may have sent as text of any length."""
    if len(content) != layout.size:
        raise OtlpError(f"a number of {len(content)} bytes")
    number: float = layout.unpack(content)[0]
    return number


def _all(data: bytes, wanted: int) -> Iterator[bytes]:
    for field, content in _fields(data):
        if field == wanted and isinstance(content, bytes):
            yield content


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The number and content of each field: varints as integers, the others as bytes."""
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        kind = tag & 7
        if kind == _VARINT:
            number, position = _varint(data, position)
            yield tag >> 3, number
            continue
        if kind == _BYTES:
            size, position = _varint(data, position)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise OtlpError(f"wire type {kind} before byte {position}")
        if position + size > len(data):
            raise OtlpError(f"a field of {size} bytes at byte {position} goes beyond the end")
        yield tag >> 3, data[position : position + size]
        position += size


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 64:
        if position >= len(data):
            raise OtlpError(f"a number ends at byte {position}, with the message")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise OtlpError(f"a number before byte {position} has no end")
