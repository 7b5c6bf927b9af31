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
        ({"value": 3}, "value: expected bytes | str | None, not int"),
        ({"value": "x", "key": 1.5}, "key: expected bytes | str | None, not float"),
        ({"headers": {"a": [1]}}, "headers['a']: expected bytes | str | None, not list"),
        ({"headers": {1: b""}}, "headers: a key: expected str, not int"),
        ({"headers": ["a"]}, "headers[0]: expected tuple[str, bytes | str | None], not str"),
        ({"partition": "0"}, "partition: expected int | None, not str"),
        ({"timestamp_ms": 1.5}, "timestamp_ms: expected int | None, not float"),
    ],
)
def test_a_record_of_another_type_is_refused_by_its_path(
    record: dict[str, Any], named: str
) -> None:
    """Alone, and in a list of records. Nothing is appended."""
    with Cluster(brokers=1, topics={"t": 1}) as kafka:
        topic = kafka.topic("t")
        with pytest.raises(TypeError) as found:
            topic.produce(**record)
        assert str(found.value) == named
        with pytest.raises(TypeError) as found:
            topic.produce_all([{"value": "right"}, record])  # type: ignore[list-item]
        assert str(found.value) == f"records[1].{named}"
        assert topic.records() == []


@pytest.mark.parametrize(
    ("records", "named"),
    [
        ([{"valu": "x"}], "records[0]: unknown field 'valu'; did you mean 'value'?"),
        (["x", 5], "records[1].value: expected bytes | str | None, not int"),
        ("xyz", "records: expected a list of records, not str"),
        ({"value": "x"}, "records: expected a list of records, not dict"),
        (5, "records: expected a list of records, not int"),
    ],
)
def test_what_is_no_list_of_records_is_refused(records: Any, named: str) -> None:
    with Cluster(brokers=1, topics={"t": 1}) as kafka:
        with pytest.raises(TypeError) as found:
            kafka.topic("t").produce_all(records)
        assert str(found.value) == named
        assert kafka.topic("t").records() == []


def test_a_record_without_a_partition_goes_to_the_one_that_is_asked() -> None:
    with Cluster(brokers=1, topics={"t": 3}) as kafka:
        assert kafka.partition("t", 2).produce("x").partition == 2
        assert kafka.topic("t").produce_all([{"value": "y", "partition": None}])[0].offset == 0
