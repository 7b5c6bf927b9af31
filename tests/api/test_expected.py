"""Records by their content: what is missing, its nearest record, and what was not expected."""

from __future__ import annotations

import re
import traceback
from typing import Any
from unittest.mock import ANY

import pytest
import trio

from mockbroker import Cluster
from mockbroker.core.errors import ApiError
from tests.api.test_interface import with_kafka
from tests.support.doc_examples import DOCS

ORDERS = (
    {"value": '{"id": 1, "what": "tea"}', "key": "a", "headers": {"source": "web"}, "partition": 0},
    {"value": '{"id": 2, "what": "tea"}', "key": "b", "partition": 0},
    {"value": "no json", "key": None, "partition": 1},
)


async def message(kafka: Any, *args: Any, **named: Any) -> list[str]:
    """The lines of the failure."""
    with pytest.raises(AssertionError) as raised:
        await kafka.expect_records("orders", *args, **named)
    text = str(raised.value)
    if "timeout_s" not in named:
        text = re.sub(r"after [\d.e-]+ s", "after 0 s", text)
    return text.splitlines()


@with_kafka
async def test_records_are_expected_by_value_key_header_partition_and_json(kafka: Any) -> None:
    """In any order; what an expectation leaves out is not compared."""
    await kafka.topic("orders").produce_all(ORDERS)
    found = await kafka.expect_records(
        "orders",
        [
            {"value": b"no json", "key": None, "partition": 1, "headers": []},
            {"value_json": {"what": "tea", "id": 2}, "key": "b"},
            {"headers": {"source": b"web"}},
        ],
    )
    assert [(each.partition, each.offset) for each in found] == [(1, 0), (0, 1), (0, 0)]
    await kafka.topic("orders").expect_records(
        ["no json", {"value_json": {"id": ANY, "what": "tea"}}, ORDERS[1]["value"]]
    )


@with_kafka
async def test_vague_expectations_leave_the_record_to_the_exact_one(kafka: Any) -> None:
    await kafka.topic("orders").produce_all(ORDERS)
    found = await kafka.expect_records(
        "orders", [{}, {"partition": 0}, {"value_json": {"id": 1, "what": "tea"}}]
    )
    assert [(each.partition, each.offset) for each in found] == [(1, 0), (0, 1), (0, 0)]


@with_kafka
async def test_the_order_is_that_of_each_partition(kafka: Any) -> None:
    orders = kafka.topic("orders")
    await orders.produce_all({"value": value, "partition": 0} for value in "ab")
    await orders.produce_all({"value": value, "partition": 1} for value in "ac")
    for order in ("abac", "acab", "aabc"):
        found = await orders.expect_records(list(order), in_order=True)
        assert [each.value for each in found] == [each.encode() for each in order]
    assert await message(kafka, list("baac"), in_order=True) == [
        "topic 'orders' holds the 4 expected records in another order after 0 s",
        "  expected        stands at",
        "  [0] value=b'b'  orders-0 offset 1",
        "  [1] value=b'a'  orders-0 offset 0  before [0]",
        "  [2] value=b'a'  orders-1 offset 0",
        "  [3] value=b'c'  orders-1 offset 1",
    ]
    await orders.expect_records(["b", "c"], in_order=True, allow_others=True)


@with_kafka
async def test_a_failure_shows_what_is_missing_the_nearest_record_and_the_rest(kafka: Any) -> None:
    await kafka.topic("orders").produce_all(ORDERS)
    assert await message(
        kafka,
        [
            {"value_json": {"id": 1, "what": "coffee"}, "key": "a"},
            {"value_json": {"id": 2, "what": "tea"}},
        ],
    ) == [
        "topic 'orders' lacks 1 of 2 expected records and holds 2 records not expected after 0 s",
        "  missing                                              nearest            differs",
        "  [0] value_json={'id': 1, 'what': 'coffee'} key=b'a'  orders-0 offset 0  "
        "value_json.what='tea'",
        "  not expected       key   value",
        '  orders-0 offset 0  b\'a\'  b\'{"id": 1, "what": "tea"}\'',
        "  orders-1 offset 0  null  b'no json'",
    ]


@with_kafka
async def test_each_field_that_differs_is_named(kafka: Any) -> None:
    await kafka.topic("orders").produce_all(
        [{"value": "x" * 50 + "tea", "key": "k", "headers": {"a": "1"}, "partition": 0}]
    )
    for expected, differs in (
        ({"value": "x" * 50 + "coffee"}, "value=…xxxxxxxxtea'"),
        ({"value": None, "key": "k"}, "value="),
        ({"key": None}, "key=b'k'"),
        ({"key": "k", "partition": 1}, "partition=0"),
        ({"key": "k", "headers": {"a": "2"}}, "headers['a']=b'1'"),
        ({"key": "k", "headers": {"b": None}}, "no header 'b'"),
        ({"key": "k", "headers": [("a", "1"), ("a", "1")]}, "headers=[('a', b'1')]"),
        ({"key": "k", "value_json": 1}, "value is not JSON"),
    ):
        line = (await message(kafka, [expected]))[2]
        assert differs in line, line
        assert "orders-0 offset 0" in line


@with_kafka
async def test_a_value_that_is_nested_too_deeply_is_no_json(kafka: Any) -> None:
    await kafka.topic("orders").produce("[" * 100_000)
    line = (await message(kafka, [{"value_json": 1}]))[2]
    assert "value is not JSON" in line


@with_kafka
async def test_the_differences_of_json_are_paths(kafka: Any) -> None:
    await kafka.topic("orders").produce('{"id": 1, "paid": true, "items": [{"sku": 7}, 2]}')
    for expected, differs in (
        ({"id": 1, "paid": 1, "items": [{"sku": 7}, 2]}, "value_json.paid=True"),
        ({"id": 1, "paid": True, "items": [{"sku": 8}, 2]}, "value_json.items[0].sku=7"),
        ({"id": 1, "paid": True, "items": [{"sku": 7}]}, "value_json.items has 2 items, not 1"),
        ({"id": 1, "paid": True, "items": {}}, "value_json.items=[{'sku': 7}, 2]"),
        ({"id": 1, "items": [{"sku": 7}, 2]}, "value_json.paid is not expected"),
        (
            {"id": 1, "paid": True, "to": 1, "items": [{"sku": 7}, 2]},
            "value_json.to is missing",
        ),
    ):
        line = (await message(kafka, [{"value_json": expected}]))[2]
        assert line.endswith(differs), line


@with_kafka
async def test_a_record_expected_twice_is_missing_once(kafka: Any) -> None:
    await kafka.topic("orders").produce("tea", partition=0)
    assert await message(kafka, ["tea", "tea"], timeout_s=0.01) == [
        "topic 'orders' lacks 1 of 2 expected records after 0.01 s",
        "  missing           nearest            differs",
        "  [1] value=b'tea'  orders-0 offset 0  expected as [0]",
    ]
    assert (await message(kafka, ["coffee", "tea"], timeout_s=0.01))[2].endswith("value=b'tea'")


@with_kafka
async def test_an_empty_topic_has_no_nearest_record(kafka: Any) -> None:
    assert await message(kafka, ["tea"], timeout_s=0.01) == [
        "topic 'orders' lacks 1 of 1 expected records after 0.01 s",
        "  missing           nearest  differs",
        "  [0] value=b'tea'  none",
    ]
    assert await kafka.expect_records("orders", []) == []
    assert await kafka.expect_records("payments", [], timeout_s=1_000) == []
    assert await kafka.expect_records("payments", 0, timeout_s=1_000) == []
    with pytest.raises(ApiError, match="did you mean 'orders'"):
        await kafka.expect_records("order", ["tea"], timeout_s=0.01)


@with_kafka
async def test_others_may_be_allowed_and_are_waited_over(kafka: Any) -> None:
    """With a number as well: then it is the least."""
    orders = kafka.topic("orders")
    await orders.produce_all(["a", "b"])
    assert len(await orders.expect_records(1, allow_others=True)) == 2

    async def come_later() -> None:
        for value in ("c", "d", "e"):
            await orders.produce(value)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(come_later)
        [found] = await orders.expect_records(["e"], allow_others=True)
    assert found.value == b"e"
    [first, *_] = await message(kafka, ["f"], allow_others=True, timeout_s=0.01)
    assert first == "topic 'orders' lacks 1 of 1 expected records after 0.01 s"


@with_kafka
async def test_an_unexpected_record_fails_at_once(kafka: Any) -> None:
    """As many records as expected are there, so that not all of them can still come."""
    await kafka.topic("orders").produce("tea")
    await message(kafka, ["coffee"], timeout_s=1_000)


@with_kafka
async def test_a_long_list_is_cut(kafka: Any) -> None:
    await kafka.topic("orders").produce_all(str(number) for number in range(30))
    lines = await message(kafka, [f"tea {number}" for number in range(30)])
    assert lines[0] == (
        "topic 'orders' lacks 30 of 30 expected records and holds 30 records not expected after 0 s"
    )
    assert lines[22] == "  … and 10 more"
    assert lines[-1] == "  … and 10 more"


@with_kafka
async def test_wrong_expectations_are_told(kafka: Any) -> None:
    """Before anything is waited for."""
    for expected, text in (
        ([{"valeu": "x"}], r"expected\[0\]: unknown field .*did you mean 'value'"),
        ([{"value": "x", "value_json": 1}], r"expected\[0\]: value and value_json exclude"),
        (["a", {"key": 3}], r"expected\[1\]\.key: expected bytes \| str \| None, not int"),
        ([3], r"expected\[0\]: .*not int"),
        ("tea", "a list of records"),
        ([{"headers": "tea"}], r"expected\[0\]\.headers: "),
    ):
        with pytest.raises(TypeError, match=text):
            await kafka.expect_records("orders", expected)


@with_kafka
async def test_patterns_are_searched_for(kafka: Any) -> None:
    orders = kafka.topic("orders")
    await orders.produce("order 17 of today", headers={"trace": "ab12"}, partition=0)
    await orders.expect_records(
        [{"value": re.compile(r"\d+"), "headers": {"trace": re.compile(rb"^\w+$")}}]
    )
    await orders.expect_records([re.compile("today$")])
    assert (await message(kafka, [re.compile("^today")]))[2] == (
        "  [0] value=/^today/  orders-0 offset 0  value=b'order 17 of today'"
    )


def test_the_failure_on_the_page_is_ours() -> None:
    page = (DOCS / "howto" / "pytest.md").read_text(encoding="utf-8")
    shown = page.partition("```text\ntopic 'orders' lacks")[2].partition("\n```")[0]
    with Cluster(brokers=1, topics={"orders": 1}) as kafka:
        kafka.topic("orders").produce('{"id": 17, "what": "coffee"}', key="alice")
        kafka.topic("orders").produce("one tea")
        with pytest.raises(AssertionError) as raised:
            kafka.expect_records(
                "orders",
                [{"value_json": {"id": 18, "what": "coffee"}, "key": b"bob"}, "one tea"],
            )
    lines = str(raised.value).splitlines()
    assert lines[1:] == shown.splitlines()[1:]


def test_our_frames_are_hidden() -> None:
    """In a thread, where the call stack is a test's."""
    with Cluster(brokers=1, topics={"orders": 1}) as kafka:
        with pytest.raises(AssertionError) as raised:
            kafka.expect_records("orders", ["tea"], timeout_s=0.01)
        frames = [frame for frame, _ in traceback.walk_tb(raised.value.__traceback__)]
        ours = [each for each in frames if "mockbroker/api" in each.f_code.co_filename]
        assert len(ours) == 2
        assert all(each.f_locals.get("__tracebackhide__") for each in ours)


def test_many_records_are_matched_in_no_time() -> None:
    """Each is looked up by its value, not compared with all others."""
    with Cluster(brokers=1, topics={"orders": 4}) as kafka:
        values = [f"order {number}" for number in range(5_000)]
        kafka.topic("orders").produce_all(values)
        found = kafka.expect_records("orders", values[::-1])
        assert [each.value.decode() for each in found if each.value] == values[::-1]
