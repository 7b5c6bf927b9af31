"""Chromium, and pages in it that nothing goes wrong in unnoticed.

A *visit* is a page of a browser with a context of its own: no cookies, no storage of others. It
notes the *problems* of the page: errors and warnings of its console (a violation of the
Content-Security-Policy is one), uncaught exceptions, and requests to other hosts. No name resolves
in this browser, so what needs the network does not work.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Error,
    Page,
    Request,
    Route,
    expect,
    sync_playwright,
)

# Two busy cores: what takes a second may take many.
TIMEOUT_MS = 30_000
CHROMIUM = (
    "--no-sandbox",  # root has none; the pages are our own
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)
AXE_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless Chromium.

    Inside, this thread has a running event loop of asyncio, as playwright works: no other one can
    run in it.
    """
    expect.set_options(timeout=TIMEOUT_MS)
    with sync_playwright() as playwright:
        found = shutil.which("chromium")
        with playwright.chromium.launch(executable_path=found, args=CHROMIUM) as browser:
            yield browser


class Visits:
    """The visits of a test."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.pages: list[Page] = []
        self.problems: list[str] = []

    def __call__(
        self,
        url: str,
        *,
        width: int = 1_400,
        height: int = 900,
        scheme: str = "light",
        allowed: Sequence[str] = (),
        routes: Mapping[str, Callable[[Route], object]] | None = None,
    ) -> Page:
        """Open a page. `allowed` are regular expressions of problems that are no problems.

        `routes` handle requests of the page from the first on: a glob of addresses each.
        """
        context = self.browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            reduced_motion="reduce",
            accept_downloads=True,
            permissions=["clipboard-read", "clipboard-write"],
        )
        context.set_default_timeout(TIMEOUT_MS)
        page = context.new_page()
        for pattern, handle in (routes or {}).items():
            page.route(pattern, handle)
        own = urlsplit(url).netloc

        def note(problem: str) -> None:
            if not any(re.search(each, problem) for each in allowed):
                self.problems.append(problem)

        def said(message: ConsoleMessage) -> None:
            if message.type in ("error", "warning"):
                note(f"{message.type}: {message.text} ({message.location.get('url')})")

        def thrown(error: Error) -> None:
            note(f"uncaught: {error.message}\n{error.stack}")

        def asked(request: Request) -> None:
            parts = urlsplit(request.url)
            if parts.scheme not in ("data", "blob") and parts.netloc != own:
                note(f"request to another host: {request.url}")

        page.on("console", said)
        page.on("pageerror", thrown)
        page.on("request", asked)
        self.pages.append(page)
        page.goto(url)
        return page

    def close(self) -> list[str]:
        """Close all pages; return their problems."""
        for page in self.pages:
            page.context.close()
        return self.problems


class Holding:
    """Requests of a page that nothing answers before they are let go; later ones go at once."""

    def __init__(self) -> None:
        self.held: list[Route] = []
        self.open = False

    def __call__(self, route: Route) -> None:
        if self.open:
            route.continue_()
        else:
            self.held.append(route)

    def let_go(self) -> None:
        assert self.held
        self.open = True
        for route in self.held:
            route.continue_()


def wait_until_drawn(page: Page) -> None:
    """Wait until the browser has drawn two frames."""
    page.evaluate(
        "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"
    )


def violations(page: Page, within: str | None = None) -> list[str]:
    """What axe-core objects to on a page, or within a CSS selector: rule, impact and the elements,
    one line for each.
    """
    options = {"runOnly": AXE_TAGS, "resultTypes": ["violations"]}
    found = Axe().run(page, within, options).response["violations"]
    return [
        f"{each['id']} ({each['impact']}): {node['html'][:200]}: {node['failureSummary']}"
        for each in found
        for node in each["nodes"]
    ]
