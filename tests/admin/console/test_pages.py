"""Serving the console."""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path

import pytest

from mockbroker import Cluster
from mockbroker.admin import ServerTarget, start_admin
from mockbroker.admin.console.pages import ASSETS, MEDIA, prefers_html
from tests.support.http import HttpClient

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
SECRET = "open sesame"
ASSETS_BYTES_MAX = 300_000
FILES = sorted(path for path in ASSETS.rglob("*") if path.is_file())


def names() -> list[str]:
    return [path.relative_to(ASSETS).as_posix() for path in FILES]


def test_browsers_get_the_page_and_programs_the_index(admin: HttpClient) -> None:
    page = admin.raw("GET", "/", headers={"Accept": BROWSER})
    assert (page.status, page.body) == (200, (ASSETS / "index.html").read_bytes())
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["vary"] == "accept"
    assert admin.get("/")["name"] == "mockbroker"


@pytest.mark.parametrize("name", names())
def test_each_asset_is_served_as_it_is(admin: HttpClient, name: str) -> None:
    answer = admin.raw("GET", f"/console/{name}")
    assert (answer.status, answer.body) == (200, (ASSETS / name).read_bytes())
    assert answer.headers["content-type"] == MEDIA[Path(name).suffix]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["referrer-policy"] == "no-referrer"
    head = admin.raw("HEAD", f"/console/{name}")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == answer.headers["content-length"]


def test_the_policy_allows_only_what_this_server_serves(admin: HttpClient) -> None:
    policy = admin.raw("GET", "/", headers={"Accept": BROWSER}).headers["content-security-policy"]
    assert policy == (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        "connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )


def test_a_browser_that_has_the_asset_gets_no_second_copy(admin: HttpClient) -> None:
    first = admin.raw("GET", "/console/js/app.js")
    tag = first.headers["etag"]
    for known in (tag, f'"other", W/{tag}'):
        again = admin.raw("GET", "/console/js/app.js", headers={"If-None-Match": known})
        assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
    changed = admin.raw("GET", "/console/js/app.js", headers={"If-None-Match": '"other"'})
    assert changed.body == first.body


@pytest.mark.parametrize(
    "path",
    [
        "",
        "nothing.js",
        "../pages.py",
        "..%2fpages.py",
        "%2e%2e/pages.py",
        "/etc/passwd",
        "js",
        "js/",
    ],
)
def test_only_assets_are_served(admin: HttpClient, path: str) -> None:
    assert admin.request("GET", f"/console/{path}").status == 404


def test_an_asset_cannot_be_changed(admin: HttpClient) -> None:
    answer = admin.request("PUT", "/console/js/app.js", {})
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


def test_the_assets_need_no_token_and_show_nothing_else(kafka: Cluster) -> None:
    view = kafka.call(lambda _: ServerTarget(kafka.server))
    server = start_admin(view, secret=SECRET)
    try:
        guarded = HttpClient(server.url)
        assert guarded.raw("GET", "/", headers={"Accept": BROWSER}).status == 200
        assert guarded.raw("GET", "/console/js/app.js").status == 200
        for path in ("/", "/v1/cluster", "/console", "/consolex", "/openapi.json"):
            assert guarded.request("GET", path).status == 401
        posted = guarded.request("POST", "/", {}, headers={"Accept": BROWSER})
        assert posted.status == 401
    finally:
        assert server.stop()


def test_the_page_is_refused_to_other_hosts_and_origins(admin: HttpClient) -> None:
    other = {"host": "evil.example", "Accept": BROWSER}
    assert admin.request("GET", "/", headers=other).status == 421
    assert (
        admin.request("GET", "/console/js/app.js", headers={"host": "evil.example"}).status == 421
    )
    foreign = {"origin": "http://evil.example"}
    assert admin.request("GET", "/console/js/app.js", headers=foreign).status == 403


def test_the_console_is_small() -> None:
    """In the wheel, which compresses its files as this does."""
    assert sum(len(zlib.compress(path.read_bytes())) for path in FILES) <= ASSETS_BYTES_MAX


def test_vendored_files_have_their_licences() -> None:
    vendored = json.loads((ASSETS / "vendor" / "vendored.json").read_text(encoding="utf-8"))
    known = {"vendored.json"}
    for library in vendored:
        known |= {*library["files"], f"{library['name']}.LICENSE.txt"}
    assert known == {path.name for path in (ASSETS / "vendor").iterdir()}


@pytest.mark.parametrize("path", [path for path in FILES if path.suffix == ".html"])
def test_pages_have_no_inline_code_or_style_which_the_policy_forbids(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=|javascript:", text)


def test_no_asset_names_another_host() -> None:
    own = [path for path in FILES if path.parent.name != "vendor"]
    found = [
        f"{path.name}: {url}"
        for path in own
        for url in re.findall(r"https?://[^\s\"'<>`]+", path.read_text(encoding="utf-8"))
        if not url.startswith("http://www.w3.org/")  # namespaces of XML
    ]
    assert found == []


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
