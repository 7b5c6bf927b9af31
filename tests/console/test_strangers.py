"""A stranger, with the mouse alone, finds out why a consumer stands still, and ends it.

Nobody tells the stranger where to look: each begins on the page that the address opens.
"""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from mockbroker import Cluster, TopicSpec
from tests.console import situations
from tests.console.conftest import OpenConsole
from tests.support.browser import violations
from tests.support.members import Members

pytestmark = pytest.mark.browser

# More than STILL_MS of the page.
STILL = "11s"


def attention(page: Page) -> Locator:
    return page.get_by_role("region", name="What needs attention")


def test_a_transaction_that_hangs(orders: Cluster, console: OpenConsole):
    with situations.hanging_transaction(orders) as billing:
        page = console(orders)
        case = attention(page).get_by_role("listitem").filter(has_text="nightly-import")
        expect(case).to_contain_text("nightly-import holds back orders-0")
        expect(case).to_contain_text("7 records wait")
        expect(case).to_contain_text("Waiting: billing")
        # What is this transaction?
        case.get_by_role("link", name="The transaction").click()
        expect(page.locator(".diagram .state.lit")).to_have_text("Ongoing")
        page.get_by_role("link", name="Cluster", exact=True).click()
        case.get_by_role("button", name="Abort the transaction").click()
        billing.wait_for(9)
        expect(case).to_have_count(0)


def test_a_paused_broker(orders: Cluster, console: OpenConsole):
    leader = orders.partitions("orders")[0].leader_id
    with situations.paused_broker(orders) as billing:
        page = console(orders)
        case = attention(page).get_by_role("listitem").filter(has_text=f"Broker {leader}")
        expect(case).to_contain_text(f"Broker {leader} is paused")
        expect(case).to_contain_text("orders-0")
        expect(case).to_contain_text("billing")
        case.get_by_role("button", name=f"Resume broker {leader}").click()
        situations.produce(orders, "orders", 2)
        billing.wait_for(5)
        expect(case).to_have_count(0)


def test_a_member_that_hogs_a_partition(console: OpenConsole):
    jobs = TopicSpec("jobs", 1, replication_factor=3)
    with Cluster(topics=[jobs], seed=1) as kafka, situations.hogging_member(kafka) as found:
        kafka.clock.advance(STILL)
        page = console(kafka)
        case = attention(page).get_by_role("listitem").filter(has_text="abandoned-worker")
        expect(case).to_contain_text("abandoned-worker does not go on in jobs-0")
        expect(case).to_contain_text("5 records wait")
        expect(case).to_contain_text("billing-worker could read them, and has no partition")
        case.get_by_role("button", name="Kick abandoned-worker").click()
        found.wait_for(5)


def test_a_fresh_page_says_of_a_member_what_one_says_that_has_been_open(console: OpenConsole):
    """Both ask the journal; before the time is over, neither blames the member."""
    jobs = TopicSpec("jobs", 1, replication_factor=3)
    with Cluster(topics=[jobs], seed=1) as kafka, situations.hogging_member(kafka):
        kafka.clock.freeze()
        page = console(kafka)
        expect(attention(page).get_by_role("listitem")).to_have_count(1)  # the frozen clock
        expect(attention(page)).to_contain_text("The clock is frozen")
        kafka.clock.advance(STILL)
        for each in (page, console(kafka)):
            case = attention(each).get_by_role("listitem").filter(has_text="abandoned-worker")
            expect(case).to_contain_text("it has never committed there: 5 records wait")
        page.goto(page.url.split("#")[0] + "#/groups/billing")
        lag = page.get_by_role("table", name="Lag by partition").get_by_role("row")
        expect(lag.filter(has_text="jobs-0")).to_contain_text("abandoned-worker")


def test_a_member_that_stops_is_named_with_the_time_and_not_once_it_goes_on(
    orders: Cluster, console: OpenConsole
):
    with Members(orders) as members:
        worker = members("billing", "orders", client_id="worker")
        members.settle(worker, partitions=len(orders.partitions("orders")))
        situations.produce(orders, "orders", 5)
        members.collect(5)
        worker.commit(("orders", 0, 2))
        orders.clock.freeze()
        orders.clock.advance(STILL)
        page = console(orders)
        case = attention(page).get_by_role("listitem").filter(has_text="worker does not go on")
        expect(case).to_contain_text("its committed offset has not moved for 1")
        expect(case).to_contain_text("3 records wait")
        page.goto(page.url.split("#")[0] + "#/groups/billing")
        lag = page.get_by_role("table", name="Lag by partition").get_by_role("row")
        expect(lag.filter(has_text="orders-0")).to_contain_text("does not go on for 1")
        page.goto(page.url.split("#")[0] + "#/cluster")
        expect(case).to_be_visible()
        worker.commit(("orders", 0, 3))
        expect(case).to_have_count(0)


def test_a_cluster_where_all_goes_well_says_so(orders: Cluster, console: OpenConsole):
    situations.produce(orders, "orders", 3)
    with situations.reader(orders, "billing", "orders") as billing:
        billing.wait_for(3)
        page = console(orders)
        expect(attention(page)).to_contain_text("every group goes on")


def test_what_somebody_left_behind_is_named(orders: Cluster, console: OpenConsole):
    orders.clock.freeze()
    with situations.held_produce(orders):
        page = console(orders)
        cases = attention(page).get_by_role("listitem")
        expect(cases.filter(has_text="A Produce of shop is held")).to_be_visible()
        expect(cases.filter(has_text="The clock is frozen")).to_be_visible()
        expect(cases.filter(has_text="1 rule changed 1 request")).to_be_visible()
        assert violations(page, "[aria-label='What needs attention']") == []
        cases.get_by_role("button", name="Let it run").click()
        cases.get_by_role("button", name="Release it").click()
        expect(cases.filter(has_text="held")).to_have_count(0)


def test_a_killed_leader_is_named_and_started_again(orders: Cluster, console: OpenConsole):
    leader = situations.killed_broker(orders)
    page = console(orders, width=400)
    case = attention(page).get_by_role("listitem").filter(has_text=f"Broker {leader}")
    expect(case).to_contain_text(f"Broker {leader} is stopped")
    case.get_by_role("button", name=f"Start broker {leader}").click()
    expect(case).to_have_count(0)
