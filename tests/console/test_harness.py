"""What the browser tests themselves notice."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from mockbroker import Cluster
from tests.support.browser import Visits, violations

pytestmark = pytest.mark.browser


def test_an_error_on_a_page_is_noticed(browser: Browser):
    visits = Visits(browser)
    page = visits("data:text/html,<title>a</title>")
    page.evaluate("console.error('one'); console.warn('two'); console.log('three')")
    page.evaluate("setTimeout(() => { throw new Error('four') })")
    page.wait_for_event("pageerror")
    one, two, four = visits.close()
    assert one.startswith("error: one")
    assert two.startswith("warning: two")
    assert "four" in four


def test_a_request_to_another_host_is_noticed_and_does_not_leave(browser: Browser):
    visits = Visits(browser)
    page = visits("data:text/html,<title>a</title>")
    failed = page.evaluate("fetch('http://example.com/').then(() => false, () => true)")
    assert failed
    assert "request to another host: http://example.com/" in visits.close()


def test_an_allowed_problem_is_none(browser: Browser):
    visits = Visits(browser)
    page = visits("data:text/html,<title>a</title>", allowed=["^error: on"])
    page.evaluate("console.error('one'); console.error('two')")
    (two,) = visits.close()
    assert two.startswith("error: two")


def test_a_violation_of_the_content_security_policy_is_noticed(browser: Browser):
    visits = Visits(browser)
    with Cluster(brokers=1) as kafka:
        page = visits(kafka.admin_url)
        page.evaluate(
            "const script = document.createElement('script');"
            "script.textContent = 'window.executed = true'; document.body.append(script)"
        )
        assert page.evaluate("window.executed") is None
    assert "Content Security Policy" in "\n".join(visits.close())


def test_axe_sees_what_nobody_can_read(browser: Browser):
    visits = Visits(browser)
    page = visits(
        "data:text/html,<html lang=en><title>a</title><main><h1>b</h1>"
        "<p style='color:%23ccc;background:%23fff'>pale</p></main>"
    )
    assert [each.partition(" ")[0] for each in violations(page)] == ["color-contrast"]
    assert visits.close() == []
