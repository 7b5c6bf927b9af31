"""The page of groups: who has what, what lags and why, and what a click does to a member."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Message, ShareConsumer
from playwright.sync_api import Locator, Page, expect

from mockbroker import Cluster
from mockbroker.admin import serve_saved
from mockbroker.pipeline.saved import open_journal
from tests.console import situations
from tests.console.conftest import OpenConsole
from tests.support.browser import violations
from tests.support.librdkafka import set_group_configs
from tests.support.librdkafka import settings as share_settings
from tests.support.waiting import wait_until

pytestmark = pytest.mark.browser


def lag_of(page: Page, partition: str) -> Locator:
    table = page.get_by_role("table", name="Lag by partition")
    return table.get_by_role("row").filter(has_text=partition)


def members(page: Page) -> Locator:
    return page.get_by_role("table", name="Members").locator("tbody tr")


def test_the_list_has_the_state_and_the_lag_of_each_group(orders: Cluster, console: OpenConsole):
    with situations.hanging_transaction(orders):
        orders.group("archive").set_offsets({("orders", 0): 1})
        page = console(orders, "groups")
        rows = page.get_by_role("table", name="Groups").get_by_role("row")
        expect(rows.filter(has_text="archive")).to_contain_text("Empty")
        expect(rows.filter(has_text="billing")).to_contain_text("Stable")
        expect(rows.filter(has_text="billing").locator("td").last).to_contain_text("7")
        page.get_by_label("Groups with this in their name").fill("arch")
        expect(rows).to_have_count(2)  # with the heading
        page.keyboard.press("Escape")
        page.keyboard.press("Tab")
        rows.filter(has_text="archive").get_by_role("link").click()
        expect(page.get_by_text("The group has no members")).to_be_visible()


def test_the_state_is_lit_and_the_assignments_are_drawn(orders: Cluster, console: OpenConsole):
    with situations.rebalanced(orders):
        page = console(orders, "groups/kitchen")
        expect(page.locator(".diagram .state.lit")).to_have_text("Stable")
        expect(members(page)).to_have_count(1)
        expect(members(page)).to_contain_text("cook-2")
        bars = page.locator(".gantt a")
        # Two partitions: of the first member alone, of both, of the second member alone.
        expect(bars.filter(has=page.locator(".past")).first).to_be_visible()
        told = [each.get_attribute("aria-label") or "" for each in bars.all()]
        assert any(each.startswith("orders-0: cook-1") for each in told)
        assert any("cook-2" in each and each.endswith("until now") for each in told)
        commits = page.get_by_role("table", name="Commits")
        expect(commits.locator("tbody tr").first).to_contain_text("orders-0")
        assert violations(page) == []
        [commit] = orders.journal.events(kind="commit", group="kitchen", offset=5)
        commits.get_by_role("link", name=f"#{commit.seq}").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Timeline")
        expect(
            page.get_by_role("region").filter(has_text=f"entry {commit.seq}").first
        ).to_be_visible()


def test_a_lag_that_an_open_transaction_causes_leads_to_it(orders: Cluster, console: OpenConsole):
    with situations.hanging_transaction(orders):
        page = console(orders, "groups/billing")
        lag_of(page, "orders-0").get_by_role("link", name="an open transaction holds it").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Transactions")


def test_a_member_that_reads_nothing_is_seen_and_kicked(orders: Cluster, console: OpenConsole):
    orders.topic("jobs").create(partitions=1, replication_factor=3)
    with situations.hogging_member(orders) as found:
        page = console(orders, "groups/billing")
        row = lag_of(page, "jobs-0")
        expect(row).to_contain_text("abandoned-worker")
        expect(row).to_contain_text("its member has committed nothing")
        expect(row).to_contain_text("up to 5")
        hog = members(page).filter(has_text="abandoned-worker")
        hog.get_by_role("button", name="Kick abandoned-worker").click()
        found.wait_for(5)


def test_offsets_of_a_group_without_members_are_reset(orders: Cluster, console: OpenConsole):
    situations.produce(orders, "orders", 8)
    orders.group("archive").set_offsets({("orders", 0): 5})
    page = console(orders, "groups/archive")
    expect(lag_of(page, "orders-0")).to_contain_text("no member has it")
    page.get_by_role("button", name="Reset offsets").click()
    page.get_by_label("topic *").fill("orders")
    page.get_by_label("to", exact=True).fill("2")
    page.get_by_role("dialog").get_by_role("button", name="Reset").click()
    wait_until(lambda: orders.group("archive").offsets[("orders", 0)] == 2)
    expect(lag_of(page, "orders-0")).to_contain_text("6")
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("There are no groups yet")).to_be_visible()


def test_a_group_is_shown_as_it_was_at_a_moment(orders: Cluster, console: OpenConsole):
    with situations.rebalanced(orders):
        both = [
            event.seq
            for event in orders.journal.events(kind="group", group="kitchen")
            if event.state == "Stable"
        ][-2]
        page = console(orders, f"groups/kitchen?at={both + 1}")
        expect(page.get_by_text(f"entry {both + 1} of")).to_be_visible()
        expect(members(page)).to_have_count(2)
        expect(page.locator(".diagram .state.lit")).to_have_text("Stable")
        expect(page.locator(".gantt a").first).to_be_visible()
        expect(page.get_by_role("button", name="Rebalance")).to_have_count(0)
        page.keyboard.press("l")
        expect(members(page)).to_have_count(1)


def test_a_saved_journal_shows_the_cluster_at_its_end_and_before(
    orders: Cluster, console: OpenConsole, tmp_path: Path
):
    with situations.rebalanced(orders):
        orders.journal.save_entries(tmp_path / "run.mbj")
    server = serve_saved(open_journal(tmp_path / "run.mbj"))
    try:
        page = console(server.url, "groups/kitchen")
        expect(members(page)).to_have_count(1)
        expect(page.get_by_role("button", name="Rebalance")).to_have_count(0)
        expect(page.locator(".gantt a").first).to_be_visible()
        expect(page.get_by_role("button", name="End")).to_have_attribute("aria-pressed", "true")
        page.get_by_role("slider").press("Home")
        expect(page.get_by_text("There is no group of this name")).to_be_visible()
        page.keyboard.press("l")
        expect(members(page)).to_have_count(1)
        page.get_by_role("navigation").get_by_role("link", name="Cluster").click()
        expect(page.get_by_role("table", name="Partitions")).to_contain_text("orders-1")
        page.get_by_role("navigation").get_by_role("link", name="Topics").click()
        page.get_by_role("link", name="orders", exact=True).click()
        expect(page.get_by_text("Records are shown live")).to_be_visible()
    finally:
        server.stop()


def test_a_group_that_is_unknown_is_told(orders: Cluster, console: OpenConsole):
    page = console(orders, "groups/nobody", allowed=["status of 404"])
    expect(page.get_by_text("There is no group of this name")).to_be_visible()


def test_records_of_a_share_group_are_seen_in_flight_and_given_back(
    orders: Cluster, console: OpenConsole
):
    set_group_configs(orders.bootstrap_servers, "queue", share_auto_offset_reset="earliest")
    situations.produce(orders, "orders", 3)
    worker = ShareConsumer(
        share_settings(
            orders.bootstrap_servers,
            group_id="queue",
            client_id="worker",
            share_acknowledgement_mode="explicit",
        )
    )
    try:
        worker.subscribe(["orders"])
        got: list[Message] = []
        wait_until(lambda: bool(got.extend(worker.poll(0.2)) or len(got) == 3))
        page = console(orders, "groups/queue")
        table = page.get_by_role("table", name="Share partitions")
        row = table.get_by_role("row").filter(has_text="orders-0")
        expect(row).to_contain_text("Active")
        row.click()
        flight = page.get_by_role("table", name="Records in flight").locator("tbody tr")
        expect(flight).to_have_count(1)
        expect(flight).to_contain_text("Acquired")
        expect(flight).to_contain_text("worker")
        assert violations(page) == []
        page.get_by_role("button", name="Expire locks").click()
        expect(flight).to_contain_text("Available")
    finally:
        worker.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1_400, 400])
def test_nothing_is_in_the_way_of_anybody(
    orders: Cluster, console: OpenConsole, scheme: str, width: int
):
    with situations.hanging_transaction(orders):
        page = console(orders, "groups", scheme=scheme, width=width)
        page.get_by_role("link", name="billing").click()
        expect(page.locator(".diagram .state.lit")).to_have_text("Stable")
        expect(lag_of(page, "orders-0")).to_be_visible()
        expect(page.locator(".gantt a").first).to_be_visible()
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
