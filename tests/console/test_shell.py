"""The shell of the console: navigation, keys, themes, and a narrow window."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from mockbroker import Cluster
from tests.console import situations
from tests.console.conftest import OpenConsole, stat
from tests.support.browser import Holding, violations, wait_until_drawn

pytestmark = pytest.mark.browser

PAGES = ["Cluster", "Timeline", "Groups", "Transactions", "Topics", "Faults", "Audit"]


def test_each_page_is_reached_by_two_keys_and_listed_at_the_question_mark(
    orders: Cluster, console: OpenConsole
):
    page = console(orders)
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_have_text("Cluster")
    for keys, name in zip("tgrxofac", ["Timeline", None, *PAGES[2:], "Cluster"], strict=True):
        if name is None:
            continue  # "g" itself is no second key
        page.keyboard.press("g")
        page.keyboard.press(keys)
        expect(heading).to_have_text(name)
        expect(page).to_have_title(f"{name} – mockbroker")
    page.keyboard.press("?")
    listed = page.get_by_role("dialog", name="Keys")
    for name in PAGES:
        expect(listed.get_by_text(name, exact=True).first).to_be_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    expect(listed).to_have_count(0)


def test_keys_do_nothing_while_one_types(orders: Cluster, console: OpenConsole):
    page = console(orders, "topics")
    field = page.get_by_label("Topics with this in their name")
    expect(field).to_be_visible()
    page.keyboard.press("/")
    expect(field).to_be_focused()
    page.keyboard.type("gt?")
    expect(field).to_have_value("gt?")
    expect(page.get_by_role("heading", level=1)).to_have_text("Topics")
    page.keyboard.press("Escape")
    expect(field).not_to_be_focused()


def test_a_row_is_chosen_and_opened_by_keys(orders: Cluster, console: OpenConsole):
    orders.topic("archive").create()
    page = console(orders, "topics")
    rows = page.get_by_role("table", name="Topics").locator("tbody tr")
    expect(rows).to_have_count(2)
    rows.first.focus()
    page.keyboard.press("j")
    expect(rows.nth(1)).to_be_focused()
    page.keyboard.press("Home")
    expect(rows.first).to_be_focused()
    page.keyboard.press("End")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Topics / orders")


def test_the_theme_is_that_of_the_system_until_it_is_switched(
    orders: Cluster, console: OpenConsole
):
    page = console(orders, scheme="dark")
    root = page.locator("html")
    expect(root).to_have_attribute("data-theme", "dark")
    page.keyboard.press("t")
    expect(root).to_have_attribute("data-theme", "light")
    page.reload()
    expect(root).to_have_attribute("data-theme", "light")


def test_the_links_of_the_navigation_keep_the_moment(orders: Cluster, console: OpenConsole):
    situations.produce(orders, "orders", 1)
    page = console(orders, "cluster?at=3")
    link = page.get_by_role("navigation").get_by_role("link", name="Topics")
    expect(link).to_have_attribute("href", "#/topics?at=3")
    page.keyboard.press("l")
    expect(link).to_have_attribute("href", "#/topics")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_as_wide_as_a_narrow_window(orders: Cluster, console: OpenConsole, name: str):
    situations.produce(orders, "orders", 2)
    page = console(orders, name.lower(), width=400)
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_a_page_that_does_not_exist_leads_back(orders: Cluster, console: OpenConsole):
    page = console(orders, "nowhere")
    expect(page.get_by_role("heading", level=1)).to_have_text("There is no such page")
    assert violations(page) == []
    page.get_by_role("link", name="Go to the cluster").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Cluster")


# -- a page that changes while it is used ----------------------------------------------------------


def test_what_is_pressed_stays_until_it_is_released(orders: Cluster, console: OpenConsole):
    network = Holding()
    page = console(orders, "cluster", routes={"**/v1/network": network})
    button = page.get_by_role("button", name="Set a config")  # below the network, which grows
    loading = page.get_by_role("status", name="Loading the network")
    expect(page.get_by_role("row", name="orders-0")).to_be_visible()
    expect(loading).to_be_visible()
    page.get_by_label("Topics with this in their name").focus()  # it loses the focus by the press
    before = button.bounding_box()
    assert before is not None
    page.mouse.move(before["x"] + before["width"] / 2, before["y"] + before["height"] / 2)
    page.mouse.down()
    with page.expect_event("requestfinished", lambda request: "/v1/network" in request.url):
        network.let_go()
    wait_until_drawn(page)
    assert button.bounding_box() == before
    page.mouse.up()
    expect(page.get_by_role("dialog", name="Set a config")).to_be_visible()
    expect(loading).to_have_count(0)
    assert button.bounding_box() != before


def test_the_page_follows_a_slider_that_is_held(orders: Cluster, console: OpenConsole):
    orders.topic("later").create()
    page = console(orders, "cluster")
    topics = stat(page, "Topics")
    expect(topics).to_have_text("2")
    slider = page.get_by_label("Journal entry that is shown")
    expect(slider).to_be_enabled()
    box = slider.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    expect(page).to_have_url(re.compile(r"at=1$"))
    expect(topics).to_have_text("1")
    page.mouse.up()
