"""What is wrong is told in its place, nothing is executed, and nothing is lost."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer
from playwright.sync_api import Page, expect

from mockbroker import Cluster
from mockbroker.admin import ServerTarget, start_admin
from tests.console import situations
from tests.console.conftest import OpenConsole
from tests.support.browser import violations
from tests.support.members import settings

pytestmark = pytest.mark.browser

MARKUP = "<img src=x onerror=document.title='executed'><script>document.title='executed'</script>"
PAGES = ("cluster", "timeline", "timeline?as=table", "groups", "transactions", "topics", "faults")


def test_markup_in_names_keys_values_and_headers_is_text(orders: Cluster, console: OpenConsole):
    producer = Producer(settings(orders, client_id=MARKUP, transactional_id=MARKUP, linger_ms=0))
    producer.init_transactions(situations.TIMEOUT_S)
    producer.begin_transaction()
    producer.produce("orders", MARKUP, key=MARKUP, partition=0, headers={MARKUP: MARKUP})
    assert producer.flush(situations.TIMEOUT_S) == 0
    orders.faults.add(match={"api": "Produce", "client_id": MARKUP}, do={"observe": {}})
    with situations.reader(orders, MARKUP, "orders", client_id=MARKUP, isolation_level=None):
        page = console(orders, "cluster")
        for place in PAGES:
            page.goto(f"{orders.admin_url}/#/{place}")
            page.reload()
            expect(page.get_by_role("heading", level=1)).to_be_visible()
            assert page.locator("main img, main script").count() == 0
            assert "executed" not in page.title()
        expect(page.get_by_role("table", name="Rules")).to_contain_text(MARKUP)
        page.goto(f"{orders.admin_url}/#/transactions")
        expect(page.get_by_role("table", name="Transactional ids")).to_contain_text(MARKUP)
        page.goto(f"{orders.admin_url}/#/topics/orders")
        seq = orders.journal.events(kind="request", api="Produce")[0].seq
        page.goto(f"{orders.admin_url}/#/timeline?seq={seq}")
        expect(page.get_by_role("tree", name="Fields")).to_contain_text("<img src=x")
        assert page.locator("main img, main script").count() == 0


def gone(page: Page) -> None:
    expect(page.get_by_role("alert").filter(has_text="does not answer").first).to_be_visible()


@pytest.mark.parametrize("place", ["timeline", "transactions", "faults", "audit"])
def test_a_cluster_that_dies_is_told_in_place_and_what_was_seen_stays(
    console: OpenConsole, place: str
):
    kafka = Cluster(topics={"orders": 1}).start()
    try:
        situations.produce(kafka, "orders", 2)
        page = console(kafka, place, allowed=["Failed to load resource", "ERR_"])
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        if place == "timeline":
            expect(page.get_by_role("button", name="shop")).not_to_have_count(0)
    finally:
        kafka.stop()
    gone(page)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    if place == "timeline":
        expect(page.get_by_role("button", name="shop")).not_to_have_count(0)


def test_a_record_of_100_megabytes_is_told_and_not_sent(console: OpenConsole):
    size = 100 << 20
    limits = {"message.max.bytes": size + 1_000, "socket.request.max.bytes": 2 * size}
    with Cluster(brokers=1, configs=limits, journal_bytes=512 << 20, topics={"orders": 1}) as kafka:
        config = settings(kafka, client_id="shop", message_max_bytes=size + 1_000)
        producer = Producer(config)
        producer.produce("orders", b"x" * size, partition=0)
        assert producer.flush(situations.TIMEOUT_S) == 0
        seq = kafka.journal.events(kind="request", api="Produce")[0].seq
        page = console(kafka, f"timeline?seq={seq}")
        panel = page.get_by_role("region", name="Produce of shop")
        expect(panel).to_contain_text("104.9 MB")
        expect(panel).to_contain_text("without its bytes")
        heap = page.evaluate("performance.memory.usedJSHeapSize")
        assert heap < 100e6


# -- the token -------------------------------------------------------------------------------------


def test_a_wrong_token_is_told_and_the_right_one_opens_the_cluster(
    orders: Cluster, console: OpenConsole
):
    situations.produce(orders, "orders", 1)
    target = orders.call(lambda _: ServerTarget(orders._here.server))
    admin = start_admin(target, secret="open sesame")
    try:
        page = console(admin.url, "timeline?as=table", allowed=["status of 401"])
        expect(page.get_by_role("heading", name="This cluster wants a token")).to_be_visible()
        field = page.get_by_label("Admin token")
        field.fill("open barley")
        page.get_by_role("button", name="Open").click()
        expect(page.get_by_role("alert")).to_contain_text("This token is wrong.")
        field.fill("open sesame")
        page.get_by_role("button", name="Open").click()
        table = page.get_by_role("table", name="Requests")
        expect(table.get_by_role("row").filter(has_text="Produce")).to_have_count(1)
    finally:
        assert admin.stop()


# -- saved journals --------------------------------------------------------------------------------


# The console asks for the clock before it knows that there is none, and goes on asking when the
# test has ended.
SAVED = ("status of 409", "ERR_")


@contextmanager
def saved_console(path: Path) -> Iterator[str]:
    """The address of `mockbroker console FILE`."""
    command = [sys.executable, "-m", "mockbroker", "console", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip().removeprefix("console=").rstrip("/")
        finally:
            process.send_signal(signal.SIGTERM)


def test_a_saved_journal_opens_without_its_cluster(console: OpenConsole, tmp_path: Path):
    path = tmp_path / "journal.mbj"
    with Cluster(brokers=1, topics={"orders": 1}) as kafka:
        situations.produce(kafka, "orders", 2)
        kafka.journal.save_entries(path)
    with saved_console(path) as url:
        page = console(url, "timeline?as=table&api=Produce", allowed=SAVED)
        expect(page.get_by_text("saved journal")).to_be_visible()
        rows = page.get_by_role("table", name="Requests").get_by_role("row")
        expect(rows.filter(has_text="Produce")).to_have_count(2)
        rows.filter(has_text="Produce").first.click()
        expect(page.get_by_role("tree", name="Fields")).to_contain_text("orders")
        page.get_by_role("link", name="Audit").click()
        page.get_by_role("main").get_by_role("button", name="Run the audit").first.click()
        expect(page.get_by_role("heading", name="Nothing was found")).to_be_visible()
        page.get_by_role("link", name="Faults").click()
        heading = page.get_by_role("heading", level=1)
        expect(heading).to_have_text("This page needs a running cluster")
        assert violations(page) == []


def test_a_journal_that_breaks_off_says_where(console: OpenConsole, tmp_path: Path):
    path = tmp_path / "journal.mbj"
    with Cluster(brokers=1, topics={"orders": 1}) as kafka:
        situations.produce(kafka, "orders", 2)
        kafka.journal.save_entries(path)
    path.write_bytes(path.read_bytes()[:-40])
    with saved_console(path) as url:
        page = console(url, "timeline?as=table", allowed=SAVED)
        expect(page.get_by_role("table", name="Requests")).to_be_visible()
        expect(page.get_by_text("breaks off")).to_be_visible()
