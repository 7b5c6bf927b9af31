"""The index: JSON for programs, a page for people."""

from __future__ import annotations

import pytest

from mockbroker.admin.v1.service import prefers_html
from tests.support.http import HttpClient

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"


def test_programs_get_the_endpoints_as_json(admin: HttpClient) -> None:
    index = admin.get("/")
    assert (index["name"], index["openapi"]) == ("mockbroker", "/openapi.json")
    topics = [(each["method"], each["path"]) for each in index["endpoints"]["topics"]]
    assert ("POST", "/v1/topics/{topic}/records") in topics
    service = [each["path"] for each in index["endpoints"]["service"]]
    assert set(service) == {"/", "/openapi.json", "/healthz", "/metrics"}


def test_people_get_a_page_with_links(admin: HttpClient) -> None:
    answer = admin.raw("GET", "/", headers={"Accept": BROWSER})
    text = answer.body.decode()
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert '<a href="/v1/topics">' in text
    assert "/v1/groups/{group}/offsets" in text
    assert 'href="/v1/journal/stream"' not in text  # it would never end


@pytest.mark.parametrize(
    ("accept", "html"),
    [
        ("", False),
        ("*/*", False),
        ("application/json", False),
        ("application/json, text/html", False),
        ("text/html", True),
        (BROWSER, True),
    ],
)
def test_html_is_for_those_who_name_it_first(accept: str, html: bool) -> None:
    assert prefers_html(accept) is html
