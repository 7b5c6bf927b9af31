"""Keys, values and headers are bytes, text or null."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker import Cluster
from mockbroker.api.payloads import as_bytes


def test_text_is_utf_8() -> None:
    assert as_bytes("é", "value") == b"\xc3\xa9"
    assert as_bytes(b"\xff", "value") == b"\xff"
    assert as_bytes(None, "value") is None


@pytest.mark.parametrize(
    ("record", "named"),
    [
        ({"value": 3}, "value: it is bytes, str or None, not int"),
        ({"value": "x", "key": 1.5}, "key: it is bytes, str or None, not float"),
        ({"value": "x", "headers": {"a": [1]}}, r"headers\['a'\]: .* not list"),
    ],
)
def test_a_record_of_another_type_is_refused_by_its_path(
    record: dict[str, Any], named: str
) -> None:
    with Cluster(brokers=1) as kafka, pytest.raises(TypeError, match=named):
        kafka.topic("t").produce(**record)
