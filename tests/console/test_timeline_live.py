"""The timeline while 2,000 requests a second arrive."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from playwright.sync_api import Page, expect

from mockbroker import Cluster
from tests.console.conftest import OpenConsole

pytestmark = pytest.mark.browser

RATE, SECONDS, CONNECTIONS = 2_000, 6, 20
HEAP_BYTES_MAX = 120e6
# A click is drawn in two frames; a busy machine has a few more.
CLICK_MS_MAX = 100

CLICK_MS = """async () => {
  const frame = () => new Promise(requestAnimationFrame);
  const buttons = [...document.querySelectorAll('button')];
  const button = buttons.find((each) => each.textContent === 'All');
  const times = [];
  for (let n = 0; n < 7; n += 1) {
    const begun = performance.now();
    button.click();
    await frame();
    times.push(performance.now() - begun);
    await new Promise((done) => setTimeout(done, 60));
  }
  return times.sort((a, b) => a - b)[3];
}"""


def shown(page: Page) -> int:
    """The requests that the page has, and those that it says it left out."""
    head = page.locator(".pagehead").inner_text()
    found = re.search(r"([\d,]+) requests? on", head)
    left_out = re.search(r"([\d,]+) left out", head)
    assert found is not None, head
    return sum(int(each[1].replace(",", "")) for each in (found, left_out) if each is not None)


def test_it_keeps_up_and_tells_what_it_leaves_out(console: OpenConsole):
    with Cluster(brokers=1) as kafka:
        page = console(kafka, "timeline")
        expect(page.get_by_text("No client has connected yet")).to_be_visible()
        command = [sys.executable, "-m", "tests.console.traffic", kafka.bootstrap_servers]
        arguments = map(str, (CONNECTIONS, RATE, SECONDS))
        with subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE) as traffic:
            expect(page.get_by_text(f"on {CONNECTIONS} connections")).to_be_visible()
            click_ms = page.evaluate(CLICK_MS)
            assert traffic.stdout is not None
            sent = int(traffic.stdout.read())
        # Behind by one poll at most: soon after the last request all are counted.
        expect(page.get_by_text("requests on")).to_be_visible()
        page.wait_for_function(
            "sent => { const said = document.querySelector('.pagehead').innerText;"
            " const n = (pattern) => Number((pattern.exec(said)?.[1] || '0').replaceAll(',', ''));"
            " return n(/([\\d,]+) requests? on/) + n(/([\\d,]+) left out/) >= sent; }",
            arg=sent,
            timeout=60_000,
        )
        assert shown(page) == sent
        assert click_ms < CLICK_MS_MAX
        assert page.evaluate("performance.memory.usedJSHeapSize") < HEAP_BYTES_MAX
        print(f"{sent} requests in {SECONDS} s, a click is drawn in {click_ms:.0f} ms")
