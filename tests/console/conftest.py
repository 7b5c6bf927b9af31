"""One Chromium for each module, and consoles of running clusters in it.

A module and not the session has the browser: playwright's event loop runs in the worker's thread as
long as the browser does, and tests of other modules have event loops of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page

from mockbroker import Cluster, TopicSpec
from tests.support.browser import Visits, chromium

OpenConsole = Callable[..., Page]

# A test's cluster may end before its page does.
GONE = "net::ERR_(CONNECTION|EMPTY|INCOMPLETE)"


def stat(page: Page, label: str) -> Locator:
    """A number at the top of the page of the cluster."""
    return page.locator(".stat").filter(has_text=label).locator(".stat-value")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture
def orders() -> Iterator[Cluster]:
    """A cluster of three brokers with the topic `orders`, of two partitions on each."""
    with Cluster(topics=[TopicSpec("orders", 2, replication_factor=3)], seed=1) as kafka:
        yield kafka


@pytest.fixture
def console(browser: Browser) -> Iterator[OpenConsole]:
    """`console(kafka, "timeline")` opens that page of a cluster, or of an address; see `Visits`.

    The test fails if any page had a problem.
    """
    visits = Visits(browser)

    def open_(where: Cluster | str, place: str = "", **options: Any) -> Page:
        url = where if isinstance(where, str) else where.admin_url
        allowed = (*options.pop("allowed", ()), GONE)
        return visits(f"{url}/#/{place}", allowed=allowed, **options)

    try:
        yield open_
    finally:
        problems = visits.close()
    assert problems == []
