"""The page of the cluster: brokers, network, partitions, changes, and what a click does to them."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, expect

from mockbroker import Cluster
from tests.console import situations
from tests.console.conftest import OpenConsole, stat
from tests.support.browser import violations
from tests.support.waiting import wait_until

pytestmark = pytest.mark.browser


def broker(page: Page, node_id: int) -> Locator:
    rows = page.get_by_role("table", name="Brokers").get_by_role("row")
    return rows.filter(has=page.get_by_role("cell", name=str(node_id), exact=True).first)


def row_of(page: Page, partition: str) -> Locator:
    table = page.get_by_role("table", name="Partitions")
    return table.get_by_role("row").filter(has_text=partition)


# -- brokers ---------------------------------------------------------------------------------------


def test_a_killed_leader_is_replaced_before_ones_eyes(orders: Cluster, console: OpenConsole):
    leader = orders.partitions("orders")[0].leader_id
    page = console(orders, "cluster")
    expect(row_of(page, "orders-0")).to_contain_text("in sync")
    broker(page, leader).get_by_role("button", name=f"Kill broker {leader}").click()
    expect(broker(page, leader)).to_contain_text("stopped")
    expect(row_of(page, "orders-0")).to_contain_text("under-replicated")
    expect(stat(page, "Under-replicated")).not_to_have_text("0")
    changes = page.get_by_role("table", name="Changes of the last minute")
    expect(changes.get_by_text(f"Broker {leader} is stopped")).to_be_visible()
    broker(page, leader).get_by_role("button", name=f"Start broker {leader}").click()
    expect(stat(page, "Under-replicated")).to_have_text("0")


def test_a_paused_broker_goes_on_with_one_click(orders: Cluster, console: OpenConsole):
    page = console(orders, "cluster")
    broker(page, 2).get_by_role("button", name="Pause broker 2").click()
    expect(broker(page, 2)).to_contain_text("paused")
    assert orders.broker(2).view().state == "paused"
    broker(page, 2).get_by_role("button", name="Resume broker 2").click()
    expect(broker(page, 2)).to_contain_text("running")


def test_a_broker_is_added_with_its_rack(orders: Cluster, console: OpenConsole):
    page = console(orders, "cluster")
    page.get_by_role("button", name="Add broker").click()
    page.get_by_label("rack").fill("attic")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(broker(page, 4)).to_contain_text("attic")
    assert orders.broker(4).view().rack == "attic"


def test_an_action_that_fails_says_so_in_a_sentence(orders: Cluster, console: OpenConsole):
    page = console(orders, "cluster", allowed=["status of 409"])
    page.get_by_role("button", name="Add broker").click()
    page.get_by_label("node").fill("1")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("1")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_changed_config_is_told_with_both_values(orders: Cluster, console: OpenConsole):
    page = console(orders, "cluster")
    changes = page.get_by_role("table", name="Changes of the last minute")
    orders.topic("orders").alter(configs={"retention.ms": "5"})
    expect(changes.get_by_text("topic orders: retention.ms default → 5")).to_be_visible()
    orders.act("alter_configs", kind="broker", name="", configs={"log.retention.ms": "9"})
    expect(changes.get_by_text("all brokers: log.retention.ms default → 9")).to_be_visible()
    orders.topic("orders").alter(configs={"retention.ms": None})
    expect(changes.get_by_text("topic orders: retention.ms 5 → default")).to_be_visible()


def test_a_config_of_a_broker_is_set_seen_at_its_moment_and_reset(
    orders: Cluster, console: OpenConsole
):
    page = console(orders, "cluster")
    panel = page.get_by_role("region", name="Configs of brokers and groups")
    panel.get_by_role("button", name="Set a config").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("name").fill("2")
    dialog.get_by_label("config").fill("log.cleaner.backoff.ms")
    dialog.get_by_label("value").fill("7")
    dialog.get_by_role("button", name="Set").click()
    row = panel.get_by_role("row").filter(has_text="broker 2")
    expect(row).to_contain_text("log.cleaner.backoff.ms")
    expect(row).to_contain_text("7")
    [change] = orders.journal.events(kind="configs", broker=2)
    row.get_by_role("button", name="Reset log.cleaner.backoff.ms of broker 2").click()
    expect(row).to_have_count(0)
    page.goto(page.url.split("#")[0] + f"#/cluster?at={change.seq}")
    expect(row).to_contain_text("log.cleaner.backoff.ms")
    expect(panel.get_by_role("button", name="Set a config")).to_have_count(0)
    assert violations(page, "[aria-label='Configs of brokers and groups']") == []


# -- the network -----------------------------------------------------------------------------------


def test_a_link_is_cut_delayed_and_healed_by_its_line(orders: Cluster, console: OpenConsole):
    page = console(orders, "cluster")
    network = page.get_by_role("region", name="Network")
    network.get_by_role("button", name="Link of brokers 2 and 3: up").focus()
    page.keyboard.press("Enter")
    network.get_by_role("button", name="Cut", exact=True).click()
    expect(network.get_by_role("button", name="Link of brokers 2 and 3: cut")).to_be_visible()
    network.get_by_role("button", name="Heal", exact=True).first.click()
    expect(network.get_by_role("button", name="Link of brokers 2 and 3: up")).to_be_visible()
    network.get_by_role("button", name="Delay", exact=True).click()
    expect(network.get_by_text("delayed by 50 ms")).to_be_visible()
    page.get_by_role("button", name="Heal all").click()
    expect(network.get_by_role("button", name="Link of brokers 2 and 3: up")).to_be_visible()


def test_a_broker_that_is_cut_off_is_fenced(orders: Cluster, console: OpenConsole):
    page = console(orders, "cluster")
    expect(stat(page, "Controller")).to_have_text("1")
    broker(page, 3).get_by_role("button", name="Cut off broker 3").click()
    expect(broker(page, 3)).to_contain_text("fenced")
    network = page.get_by_role("region", name="Network")
    expect(network.get_by_role("button", name="Link of brokers 1 and 3: cut")).to_be_visible()


# -- partitions ------------------------------------------------------------------------------------


def test_a_lagging_follower_is_drawn_to_scale(orders: Cluster, console: OpenConsole):
    partition = orders.partition("orders", 0)
    follower = partition.view().replicas[1].node_id
    partition.lag_follower(follower)
    situations.produce(orders, "orders", 4, acks=1)
    page = console(orders, "cluster/partitions/orders/0")
    drawing = page.get_by_role("img", name="Replicas of orders-0")
    expect(drawing).to_have_attribute("aria-label", f"{_told(orders)}")
    panel = page.get_by_role("region", name="orders-0")
    panel.get_by_role("combobox").select_option(str(follower))
    panel.get_by_role("button", name="End its lag").click()
    wait_until(lambda: _ends(orders) == {4})
    expect(drawing).to_have_attribute("aria-label", f"{_told(orders)}")


def _told(kafka: Cluster) -> str:
    view = kafka.partition("orders", 0).view()
    return "Replicas of orders-0: " + "; ".join(
        f"broker {each.node_id} from {each.log_start_offset} to {each.log_end_offset}, "
        f"high watermark {each.high_watermark}"
        for each in view.replicas
    )


def _ends(kafka: Cluster) -> set[int]:
    return {each.log_end_offset for each in kafka.partition("orders", 0).view().replicas}


def test_a_leader_moves_with_one_click(orders: Cluster, console: OpenConsole):
    before = orders.partition("orders", 1).leader
    page = console(orders, "cluster")
    row_of(page, "orders-1").click()
    panel = page.get_by_role("region", name="orders-1")
    panel.get_by_role("button", name="Move leader to it").click()
    wait_until(lambda: orders.partition("orders", 1).leader != before)
    after = orders.partition("orders", 1).leader
    expect(page.get_by_role("table", name="Changes of the last minute")).to_contain_text(
        f"orders-1: {after} leads after {before}"
    )


def test_partitions_are_found_by_topic_and_by_trouble(orders: Cluster, console: OpenConsole):
    page = console(orders, "cluster")
    page.get_by_label("Topics with this in their name").fill("ORD")
    rows = page.get_by_role("table", name="Partitions").locator("tbody tr")
    expect(rows).to_have_count(2)
    page.get_by_role("button", name="Offline").click()
    expect(page.get_by_text("No partition is like that")).to_be_visible()
    orders.partition("orders", 0).drop_leader()
    expect(rows).to_have_count(1)
    expect(row_of(page, "orders-0")).to_contain_text("offline")


def test_a_link_leads_to_what_was_looked_at(orders: Cluster, console: OpenConsole):
    page = console(orders, "cluster?only=not_preferred&topic=ord")
    expect(page.get_by_role("button", name="Not preferred leader")).to_have_attribute(
        "aria-pressed", "true"
    )
    expect(page.get_by_label("Topics with this in their name")).to_have_value("ord")


def test_the_cluster_is_shown_as_it_was_at_a_moment(orders: Cluster, console: OpenConsole):
    leader = orders.partition("orders", 0).leader
    before = orders.journal.last_seq
    orders.broker(leader).stop(how="unclean")
    page = console(orders, f"cluster?at={before}")
    expect(broker(page, leader)).to_contain_text("running")
    expect(row_of(page, "orders-0").get_by_role("cell").nth(2)).to_have_text(str(leader))
    expect(page.get_by_role("button", name=f"Kill broker {leader}")).to_have_count(0)
    page.keyboard.press("l")
    expect(broker(page, leader)).to_contain_text("stopped")
    expect(row_of(page, "orders-0").get_by_role("cell").nth(2)).not_to_have_text(str(leader))


def test_an_action_is_copied_as_python_that_does_it(orders: Cluster, console: OpenConsole):
    page = console(orders, "cluster/partitions/orders/0")
    panel = page.get_by_role("region", name="orders-0")
    panel.get_by_role("button", name="Copy the move as").click()
    page.get_by_role("menuitem", name="Python").click()
    text = page.evaluate("navigator.clipboard.readText()")
    former = orders.partition("orders", 0).leader
    eval(text, {"kafka": orders})
    wait_until(lambda: orders.partition("orders", 0).leader != former)


# -- for everybody ---------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1_400, 400])
def test_nothing_is_in_the_way_of_anybody(
    orders: Cluster, console: OpenConsole, scheme: str, width: int
):
    orders.broker(3).stop(how="unclean")
    orders.partition("orders", 0).shrink_isr([3])
    page = console(orders, "cluster/partitions/orders/0", scheme=scheme, width=width)
    expect(row_of(page, "orders-0")).to_contain_text("under-replicated")
    expect(page.get_by_role("img", name="Replicas of orders-0")).to_be_visible()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
