"""The page of transactions: what an open transaction holds back, and what ends it."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from mockbroker import Cluster
from tests.console import situations
from tests.console.conftest import OpenConsole
from tests.support.browser import violations

pytestmark = pytest.mark.browser


def ids(page: Page) -> Locator:
    return page.get_by_role("table", name="Transactional ids")


def test_an_open_transaction_says_what_it_holds_back_and_for_whom(
    orders: Cluster, console: OpenConsole
):
    with situations.hanging_transaction(orders) as billing:
        page = console(orders, "transactions")
        row = page.get_by_role("table", name="Open transactions by partition").get_by_role("row")
        held = row.filter(has_text="orders-0")
        expect(held).to_contain_text("nightly-import")
        expect(held.get_by_role("cell").nth(1)).to_have_text("3")  # the LSO
        expect(held.get_by_role("cell").nth(2)).to_have_text("7")  # records behind it
        expect(held.get_by_role("link", name="billing")).to_be_visible()
        held.get_by_role("button", name="Abort").click()
        expect(page.get_by_text("No transaction is open")).to_be_visible()
        billing.wait_for(9)


def test_the_state_of_a_transactional_id_is_lit_in_its_state_machine(
    orders: Cluster, console: OpenConsole
):
    with situations.hanging_transaction(orders):
        page = console(orders, "transactions")
        ids(page).get_by_role("cell", name="nightly-import").click()
        lit = page.locator(".diagram .state.lit")
        expect(lit).to_have_text("Ongoing")
        page.get_by_role("button", name="Time out", exact=True).click()
        expect(lit).to_have_text("CompleteAbort")
        moves = page.get_by_role("region", name="What happened").get_by_role("listitem")
        expect(moves.first).to_contain_text("PrepareAbort")
        expect(moves.first).to_contain_text("CompleteAbort")


def test_withheld_markers_are_sent_again(orders: Cluster, console: OpenConsole):
    with situations.hanging_transaction(orders):
        page = console(orders, "transactions/nightly-import")
        page.get_by_role("button", name="Withhold markers").click()
        orders.journal.wait(1, kind="action", change="hang_transaction")
        page.get_by_role("button", name="Abort", exact=True).first.click()
        lit = page.locator(".diagram .state.lit")
        expect(lit).to_have_text("PrepareAbort")
        page.get_by_role("button", name="Send markers").click()
        expect(lit).to_have_text("CompleteAbort")


def test_the_slider_shows_the_transactions_of_a_moment(orders: Cluster, console: OpenConsole):
    with situations.hanging_transaction(orders):
        opened = orders.journal.events(kind="transaction", state="Ongoing")[0].seq
        orders.transaction("nightly-import").abort()
        page = console(orders, f"transactions?at={opened}")
        row = ids(page).get_by_role("row")
        expect(row.filter(has_text="nightly-import")).to_contain_text("Ongoing")
        page.get_by_role("button", name="Live").click()
        expect(row.filter(has_text="nightly-import")).to_contain_text("CompleteAbort")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_in_the_way_of_anybody(orders: Cluster, console: OpenConsole, scheme: str):
    with situations.hanging_transaction(orders):
        page = console(orders, "transactions", scheme=scheme)
        expect(page.get_by_role("button", name="Abort")).to_be_visible()
        assert violations(page) == []
        ids(page).get_by_role("cell", name="nightly-import").click()
        expect(page.locator(".diagram .state.lit")).to_be_visible()
        assert violations(page) == []


def test_a_cluster_without_transactions_says_what_to_do(orders: Cluster, console: OpenConsole):
    page = console(orders, "transactions", width=400)
    expect(page.get_by_text("Set transactional.id on a producer")).to_be_visible()
    assert violations(page) == []
