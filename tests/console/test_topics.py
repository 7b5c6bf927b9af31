"""The page of topics: records as they lie in the log, what is in them, and configs."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Producer
from playwright.sync_api import Locator, Page, expect

from mockbroker import Cluster
from tests.console import situations
from tests.console.conftest import OpenConsole
from tests.support.browser import violations
from tests.support.members import settings
from tests.support.waiting import wait_until

pytestmark = pytest.mark.browser

MARKUP = "<img src=x onerror='window.executed = true'><script>window.executed = true</script>"
ORDER = {"type": "record", "name": "Order", "fields": []}


def records(page: Page) -> Locator:
    return page.get_by_role("table", name="Records").locator("tbody tr[tabindex]")


def shown_as(page: Page, form: str) -> None:
    page.get_by_role("group", name="Shown as").first.get_by_role("button", name=form).click()


# -- reading ---------------------------------------------------------------------------------------


def test_the_newest_records_come_first_and_new_ones_on_top(orders: Cluster, console: OpenConsole):
    situations.produce(orders, "orders", 3)
    page = console(orders, "topics/orders")
    expect(records(page)).to_have_count(3)
    expect(records(page).first).to_contain_text("coffee 2")
    orders.partition("orders", 0).produce("late")
    expect(records(page).first).to_contain_text("late")


def test_batches_and_control_records_are_seen(orders: Cluster, console: OpenConsole):
    till = Producer(settings(orders, transactional_id="till", linger_ms=500))
    till.init_transactions(situations.TIMEOUT_S)
    till.begin_transaction()
    for number in range(3):
        till.produce("orders", str(number), partition=0)
    till.abort_transaction(situations.TIMEOUT_S)
    till.begin_transaction()
    till.produce("orders", "kept", partition=0)
    assert till.flush(situations.TIMEOUT_S) == 0
    page = console(orders, "topics/orders?partition=0&offset=0")
    table = page.get_by_role("table", name="Records")
    end = orders.partition("orders", 0).view().log_end_offset
    expect(records(page)).to_have_count(end)
    expect(table.get_by_text("not stable").first).to_be_visible()
    till.commit_transaction(situations.TIMEOUT_S)
    page.get_by_role("button", name="Newest").click()
    expect(table.get_by_text("commit marker")).to_be_visible()
    expect(table.get_by_text("not stable")).to_have_count(0)


def test_a_record_is_read_as_json_hex_base64_and_by_a_schema(orders: Cluster, console: OpenConsole):
    partition = orders.partition("orders", 0)
    partition.produce('{"a": [1, 2]}', key=b"\xff\x00")
    # Avro by schema 7: the string "tea", the long 21, and the second branch of a union: null.
    partition.produce(b"\x00\x00\x00\x00\x07" + b"\x06tea" + b"\x2a" + b"\x02")
    page = console(orders, "topics/orders?offset=0&partition=0")
    expect(records(page).first).to_contain_text('{"a": [1, 2]}')
    expect(records(page).first).to_contain_text("ff 00")
    shown_as(page, "Base64")
    expect(records(page).first).to_contain_text("eyJhIjogWzEsIDJdfQ==")
    shown_as(page, "Auto")
    expect(records(page).nth(1)).to_contain_text("schema 7 ?")
    page.get_by_role("button", name="Schemas").click()
    page.get_by_label("Id *").fill("7")
    fields = [
        {"name": "drink", "type": "string"},
        {"name": "count", "type": "long"},
        {"name": "note", "type": ["string", "null"]},
    ]
    page.get_by_label("Schema *").fill(json.dumps(ORDER | {"fields": fields}))
    page.get_by_role("button", name="Keep").click()
    page.keyboard.press("Escape")
    expect(records(page).nth(1)).to_contain_text('{"drink":"tea","count":21,"note":null}')
    records(page).nth(1).focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("schema 7, Avro")
    dialog.get_by_role("button", name="Hex").click()
    expect(dialog.locator(".payload").last).to_contain_text("000000  00 00 00 00 07 06 74 65 61")


def test_records_are_found_by_text_offset_and_time(orders: Cluster, console: OpenConsole):
    for number in range(120):
        orders.partition("orders", 0).produce(f"cup {number}", timestamp_ms=1_000 * number)
    page = console(orders, "topics/orders?partition=0")
    expect(records(page)).to_have_count(50)
    search = page.get_by_label("Records with this in their key, value or headers")
    search.fill("CUP 77")
    search.press("Enter")
    expect(records(page)).to_have_count(1)
    expect(records(page)).to_contain_text("cup 77")
    search.fill("soup")
    search.press("Enter")
    expect(page.get_by_text("No record has this text")).to_be_visible()
    search.fill("")
    search.press("Enter")
    jump = page.get_by_label("Offset or time")
    jump.fill("30")
    jump.press("Enter")
    expect(records(page).first).to_contain_text("cup 30")
    page.get_by_role("button", name="Newer").click()
    expect(records(page).first).to_contain_text("cup 80")
    page.get_by_role("button", name="Older").click()
    expect(records(page).first).to_contain_text("cup 30")
    jump.fill("1970-01-01 00:01:40")
    jump.press("Enter")
    expect(records(page).first).to_contain_text("cup 100")


def test_a_large_record_is_told_and_not_drawn(orders: Cluster, console: OpenConsole):
    orders.topic("orders").alter(configs={"max.message.bytes": 10_000_000})
    orders.partition("orders", 0).produce(b"x" * 5_000_000)
    page = console(orders, "topics/orders?partition=0")
    expect(records(page).first).to_contain_text("5.0 MB")
    records(page).first.click()
    expect(page.get_by_text("The first 1.0 MB of 5.0 MB are shown.")).to_be_visible()


def test_markup_is_text_everywhere(orders: Cluster, console: OpenConsole):
    orders.partition("orders", 0).produce(MARKUP, key=MARKUP, headers={MARKUP: MARKUP})
    page = console(orders, "topics/orders?partition=0")
    expect(records(page).first).to_contain_text(MARKUP[:30])
    records(page).first.click()
    expect(page.get_by_role("dialog").get_by_text(MARKUP).first).to_be_visible()
    assert page.evaluate("window.executed") is None


# -- changing --------------------------------------------------------------------------------------


def test_a_topic_is_made_filled_and_deleted_by_hand(orders: Cluster, console: OpenConsole):
    page = console(orders, "topics")
    page.get_by_role("button", name="New topic").click()
    page.get_by_label("name *").fill("drinks")
    page.get_by_label("partitions").fill("3")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Topics / drinks")
    page.get_by_role("button", name="Produce").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("key").fill("k")
    dialog.get_by_label("value").fill("a cup of tea")
    dialog.get_by_label("headers").fill('{"trace": "1"}')
    dialog.get_by_label("partition", exact=True).fill("2")
    dialog.get_by_role("button", name="Produce").click()
    expect(page.get_by_text("Appended at offset 0 of partition 2.")).to_be_visible()
    [record] = orders.records("drinks")
    assert (record.key, record.value, record.headers) == (
        b"k",
        b"a cup of tea",
        (("trace", b"1"),),
    )
    expect(records(page).first).to_contain_text("a cup of tea")
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    wait_until(lambda: "drinks" not in [each.name for each in orders.topics()])
    expect(page.get_by_role("heading", level=1)).to_have_text("Topics")


def test_a_wrong_field_is_told_at_its_place(orders: Cluster, console: OpenConsole):
    page = console(orders, "topics", allowed=["status of 400"])
    page.get_by_role("button", name="New topic").click()
    page.get_by_label("name *").fill("drinks")
    page.get_by_label("partitions").fill("many")
    page.get_by_role("button", name="Create").click()
    field = page.get_by_label("partitions")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field.locator("xpath=..")).to_contain_text("partitions")


def test_a_config_is_set_and_set_back(orders: Cluster, console: OpenConsole):
    page = console(orders, "topics/orders?tab=configs")
    row = (
        page.get_by_role("table", name="Configs")
        .get_by_role("row")
        .filter(has_text="cleanup.policy")
    )
    expect(row).to_contain_text("default")
    row.get_by_role("button", name="Set cleanup.policy").click()
    page.get_by_role("dialog").get_by_label("value").fill("compact")
    page.get_by_role("dialog").get_by_role("button", name="Set").click()
    expect(row).to_contain_text("this topic")
    assert orders.topic("orders").configs == {"cleanup.policy": "compact"}
    [change] = orders.journal.events(kind="configs", topic="orders")
    row.get_by_role("button", name="Reset cleanup.policy").click()
    expect(row).to_contain_text("default")
    assert orders.topic("orders").configs == {}
    page.goto(page.url.split("#")[0] + f"#/topics/orders?tab=configs&at={change.seq}")
    expect(row).to_contain_text("compact")


# -- for everybody ---------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1_400, 400])
def test_nothing_is_in_the_way_of_anybody(
    orders: Cluster, console: OpenConsole, scheme: str, width: int
):
    situations.produce(orders, "orders", 2)
    page = console(orders, "topics?internal=1", scheme=scheme, width=width)
    expect(page.get_by_role("link", name="orders", exact=True)).to_be_visible()
    assert violations(page) == []
    page.get_by_role("link", name="orders", exact=True).click()
    expect(records(page)).to_have_count(2)
    assert violations(page) == []
    records(page).first.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.get_by_role("tab", name="Configs").click()
    expect(page.get_by_role("table", name="Configs")).to_be_visible()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_an_empty_topic_and_one_that_is_gone_say_what_to_do(orders: Cluster, console: OpenConsole):
    page = console(orders, "topics/orders")
    expect(page.get_by_text("This partition is empty")).to_be_visible()
    orders.topic("orders").delete()
    expect(page.get_by_text("There is no topic of this name")).to_be_visible()
