"""Metrics as clients push them: the numbers are read, damage is told, the rest is passed over."""

from __future__ import annotations

import struct

import pytest

from mockbroker.core.telemetry.otlp import OtlpError, Point, points
from mockbroker_protocol.runtime import uvarint


def part(field: int, content: bytes) -> bytes:
    """A field of bytes: a text or a message."""
    return uvarint(field << 3 | 2) + uvarint(len(content)) + content


def attribute(key: str, value: bytes) -> bytes:
    return part(7, part(1, key.encode()) + part(2, value))


def data_point(value: bytes, *attributes: bytes) -> bytes:
    time = uvarint(3 << 3 | 1) + struct.pack("<Q", 1_700_000_000_000_000_000)
    return part(1, b"".join(attributes) + time + value)


def pushed(*metrics: bytes) -> bytes:
    """MetricsData of one resource and scope."""
    scope = part(1, part(1, b"the scope")) + b"".join(part(2, metric) for metric in metrics)
    resource = part(1, attribute("client", part(1, b"ignored"))) + part(2, scope)
    return part(1, resource)


AS_DOUBLE = uvarint(4 << 3 | 1) + struct.pack("<d", 2.5)
AS_INT = uvarint(6 << 3 | 1) + struct.pack("<q", -7)
GAUGE = part(1, b"a.gauge") + part(5, data_point(AS_DOUBLE))
SUM = (
    part(1, b"a.sum")
    + part(3, b"1")  # the unit
    + part(
        7,
        data_point(AS_INT, attribute("node", part(1, b"3")), attribute("id", b"\x18\x2a"))
        + data_point(AS_DOUBLE)
        + uvarint(2 << 3)  # the temporality, a number
        + uvarint(1),
    )
)


def test_gauges_and_sums_are_read_with_their_attributes():
    time_ns = 1_700_000_000_000_000_000
    assert points(pushed(GAUGE, SUM)) == [
        Point("a.gauge", "gauge", 2.5, {}, time_ns),
        Point("a.sum", "sum", -7, {"node": "3", "id": "42"}, time_ns),
        Point("a.sum", "sum", 2.5, {}, time_ns),
    ]


def test_what_is_no_number_is_passed_over():
    histogram = part(1, b"a.histogram") + part(9, data_point(AS_DOUBLE))
    assert [point.name for point in points(pushed(histogram, GAUGE))] == ["a.gauge"]
    assert points(b"") == []


@pytest.mark.parametrize(
    "data",
    [
        *(b"\x0a\x05ab", b"\x0a", b"\x80" * 11, b"\x0b", b"\x09abc", pushed(GAUGE)[:-1]),
        pushed(part(1, b"m") + part(5, data_point(part(4, b"abc")))),
        pushed(part(1, b"m") + part(5, data_point(part(6, b"")))),
        pushed(part(1, b"m") + part(5, data_point(AS_INT, attribute("a", part(4, b"abc"))))),
    ],
    ids=[
        *("short", "no size", "endless number", "a group", "half a number", "cut"),
        *("a double of text", "an integer of nothing", "an attribute of text"),
    ],
)
def test_damage_is_told(data):
    with pytest.raises(OtlpError):
        points(data)
