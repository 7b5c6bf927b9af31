"""The timeline: lanes and bars of real clients, opened down to their bytes."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from mockbroker import Cluster
from tests.console import situations
from tests.console.conftest import OpenConsole
from tests.support.browser import violations

pytestmark = pytest.mark.browser


def requests(page: Page) -> Locator:
    return page.get_by_role("table", name="Requests").get_by_role("row")


def fields(page: Page) -> Locator:
    return page.get_by_role("tree", name="Fields")


def test_a_request_appears_while_one_looks_and_opens_down_to_its_bytes(
    orders: Cluster, console: OpenConsole
):
    page = console(orders, "timeline?as=table")
    expect(page.get_by_text("No client has connected yet")).to_be_visible()
    situations.produce(orders, "orders", 1)
    requests(page).filter(has_text="Produce").click()
    topic = fields(page).get_by_role("button").filter(has_text="orders")
    topic.first.hover()
    marked = page.get_by_role("region", name="Bytes").locator("mark")
    expect(marked.filter(has_text="6f 72 64 65 72 73")).to_be_visible()
    expect(marked.filter(has_text="orders")).to_be_visible()
    page.get_by_role("tab", name="Answer").click()
    expect(fields(page)).to_contain_text("base_offset")


def test_cause_and_effect_are_links(orders: Cluster, console: OpenConsole):
    situations.produce(orders, "orders", 1)
    page = console(orders, "timeline?as=table&api=Produce")
    requests(page).filter(has_text="Produce").click()
    page.get_by_role("link", name=re.compile("^append")).click()
    expect(page.get_by_role("region", name=re.compile("^append orders-0"))).to_be_visible()
    page.get_by_role("link", name=re.compile("request Produce")).click()
    expect(page.get_by_role("region", name="Produce of shop")).to_be_visible()


def test_a_rule_that_fired_and_one_that_did_not_say_why(orders: Cluster, console: OpenConsole):
    orders.faults.add(name="late", match={"api": "Produce"}, do={"delay": "20ms"})
    orders.faults.add(name="other", match={"api": "Fetch"}, do={"delay": "20ms"})
    situations.produce(orders, "orders", 1)
    page = console(orders, "timeline?as=table&rules_only=1")
    expect(requests(page)).to_have_count(2)  # with the heading
    requests(page).filter(has_text="Produce").click()
    told = page.get_by_role("listitem")
    expect(told.filter(has_text="late").filter(has_text="fired: ")).to_be_visible()
    expect(told.filter(has_text="other").filter(has_text="did not fire: ")).to_contain_text("Fetch")


def test_only_requests_with_errors_are_shown(orders: Cluster, console: OpenConsole):
    orders.faults.add(
        match={"api": "Produce"}, when={"times": 1}, do={"error": "NOT_LEADER_OR_FOLLOWER"}
    )
    situations.produce(orders, "orders", 2)
    page = console(orders, "timeline?as=table")
    expect(requests(page).filter(has_text="Produce")).to_have_count(3)
    page.get_by_role("checkbox", name="errors").check()
    expect(requests(page).filter(has_text="NOT_LEADER_OR_FOLLOWER")).to_have_count(1)
    expect(requests(page)).to_have_count(2)
    page.get_by_role("combobox", name="API").fill("Fetch")
    page.get_by_role("combobox", name="API").press("Enter")
    expect(page.get_by_text("No request matches these conditions")).to_be_visible()
    page.get_by_role("button", name="Show all requests").click()
    expect(requests(page).filter(has_text="Produce")).to_have_count(3)


def test_new_requests_do_not_disturb_who_types_a_condition(orders: Cluster, console: OpenConsole):
    page = console(orders, "timeline?as=table")
    field = page.get_by_role("combobox", name="API")
    field.press_sequentially("Pro")
    situations.produce(orders, "orders", 2)
    expect(requests(page).filter(has_text="Metadata")).not_to_have_count(0)
    field.press_sequentially("duce")
    expect(field).to_have_value("Produce")
    field.press("Enter")
    expect(requests(page)).to_have_count(3)  # with the heading


def test_a_held_request_is_a_bar_that_grows_and_opens_with_a_click(
    orders: Cluster, console: OpenConsole
):
    with situations.held_produce(orders):
        page = console(orders, "timeline?api=Produce")
        lane = page.get_by_role("button", name="shop")
        expect(lane).to_have_count(1)
        name, canvas = lane.bounding_box(), page.locator("canvas").bounding_box()
        assert name is not None
        assert canvas is not None
        # The newest moment is near the right edge, and a held request reaches it.
        page.mouse.click(canvas["x"] + canvas["width"] - 24, name["y"] + name["height"] / 2)
        panel = page.get_by_role("region", name="Produce of shop")
        expect(panel.get_by_text("not answered yet")).to_be_visible()
        rules = panel.get_by_role("listitem").filter(has_text="it fired for this request")
        expect(rules).to_contain_text("breakpoint")
        orders.faults.held()[0].release()
        expect(panel.get_by_text("answered in")).to_be_visible()


def test_arrow_keys_go_from_request_to_request(orders: Cluster, console: OpenConsole):
    situations.produce(orders, "orders", 3)
    page = console(orders, "timeline?api=Produce")
    canvas = page.get_by_role("application")
    expect(page.get_by_role("button", name="shop")).to_have_count(1)
    canvas.press("ArrowRight")
    entry = page.get_by_role("region", name="Produce of shop")
    expect(entry).to_be_visible()
    last = page.url
    canvas.press("ArrowLeft")
    expect(page).not_to_have_url(last)
    expect(page.locator("#timeline-said")).to_contain_text("Produce")
    page.keyboard.press("x")
    expect(entry).to_be_hidden()


def test_at_a_moment_later_requests_are_not_there(orders: Cluster, console: OpenConsole):
    situations.produce(orders, "orders", 2)
    first, second = [each.seq for each in orders.journal.events(kind="request", api="Produce")]
    page = console(orders, f"timeline?as=table&at={second - 1}")
    expect(requests(page).filter(has_text="Produce")).to_have_count(1)
    requests(page).filter(has_text="Produce").click()
    expect(page.get_by_text(f"entry {first}", exact=True)).to_be_visible()
    page.get_by_role("button", name="Live").click()
    expect(requests(page).filter(has_text="Produce")).to_have_count(2)


def test_a_frozen_clock_does_not_stop_the_timeline(orders: Cluster, console: OpenConsole):
    orders.clock.freeze()
    page = console(orders, "timeline?as=table&api=Produce")
    situations.produce(orders, "orders", 2)
    expect(requests(page).filter(has_text="Produce")).to_have_count(2)
    expect(page.get_by_text("frozen")).to_be_visible()


def test_what_a_rebalance_did_is_on_the_timeline(orders: Cluster, console: OpenConsole):
    with situations.rebalanced(orders):
        page = console(orders, "timeline?as=table")
        events = page.get_by_role("region", name="Events of the cluster").get_by_role("link")
        expect(events.filter(has_text="kitchen").first).to_be_visible()
        events.filter(has_text="kitchen").first.click()
        expect(page.get_by_role("region", name=re.compile("^group kitchen"))).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("shape", ["lanes", "table"])
def test_nothing_is_in_the_way_of_anybody(
    orders: Cluster, console: OpenConsole, scheme: str, shape: str
):
    situations.produce(orders, "orders", 2)
    seq = orders.journal.events(kind="request", api="Produce")[0].seq
    page = console(orders, f"timeline?as={shape}&seq={seq}", scheme=scheme)
    expect(fields(page)).to_contain_text("orders")
    assert violations(page) == []


def test_it_fits_on_a_telephone(orders: Cluster, console: OpenConsole):
    situations.produce(orders, "orders", 2)
    seq = orders.journal.events(kind="request", api="Produce")[0].seq
    page = console(orders, f"timeline?seq={seq}", width=400)
    expect(fields(page)).to_contain_text("orders")
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 400
    assert violations(page) == []
