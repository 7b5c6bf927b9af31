"""The page of the audit: findings, with evidence that is on the timeline."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from mockbroker import Cluster
from tests.console import situations
from tests.console.conftest import OpenConsole
from tests.support.browser import violations

pytestmark = pytest.mark.browser


def test_a_lost_write_is_found_and_its_evidence_opens_on_the_timeline(
    orders: Cluster, console: OpenConsole
):
    situations.lost_write(orders)
    page = console(orders, "audit")
    page.get_by_role("main").get_by_role("button", name="Run the audit").first.click()
    finding = page.get_by_role("region", name="lost write")
    expect(finding).to_contain_text("payments-0 at offset 0")
    expect(finding).to_contain_text("explained")  # by the action that lost it
    assert violations(page) == []
    finding.get_by_role("link", name=re.compile("append")).first.click()
    expect(page.get_by_role("heading", name="Timeline")).to_be_visible()
    expect(page.get_by_role("region", name=re.compile("^append payments-0"))).to_be_visible()


def test_a_cluster_that_did_all_right_has_no_finding(orders: Cluster, console: OpenConsole):
    situations.produce(orders, "orders", 3)
    page = console(orders, "audit")
    page.get_by_role("main").get_by_role("button", name="Run the audit").first.click()
    expect(page.get_by_role("heading", name="Nothing was found")).to_be_visible()
