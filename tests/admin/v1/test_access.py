"""Who may use the admin API, and what a body may be."""

from __future__ import annotations

import pytest

from mockbroker import Cluster
from mockbroker.admin import ServerTarget, start_admin
from mockbroker.admin.v1.endpoint import BODY_BYTES_MAX
from tests.support.http import HttpClient
from tests.support.waiting import wait_until

SECRET = "open sesame"


@pytest.fixture(scope="module")
def guarded(kafka: Cluster):
    view = kafka.call(lambda _: ServerTarget(kafka.server))
    server = start_admin(view, secret=SECRET)
    yield HttpClient(server.url)
    assert server.stop()


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:9191", "", "127.0.0.1.evil.example"]
)
def test_another_host_is_refused(admin: HttpClient, host: str) -> None:
    assert admin.request("GET", "/v1/cluster", headers={"host": host}).status == 421


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:1", "[::1]:9191", "LOCALHOST:80"])
def test_loopback_has_several_names(admin: HttpClient, host: str) -> None:
    assert admin.request("GET", "/v1/cluster", headers={"host": host}).status == 200


def test_a_foreign_page_may_not_ask(admin: HttpClient) -> None:
    host = f"127.0.0.1:{admin.port}"
    own = {"host": host, "origin": f"http://{host}"}
    assert admin.request("GET", "/v1/cluster", headers=own).status == 200
    for origin in (
        "http://evil.example",
        "null",
        f"http://{host}.evil.example",
        "http://localhost",
    ):
        answer = admin.request("GET", "/v1/cluster", headers={"host": host, "origin": origin})
        assert answer.status == 403
        assert "access-control-allow-origin" not in answer.headers


def test_a_form_cannot_be_posted(admin: HttpClient) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        answer = admin.request(
            "POST", "/v1/clock", raw=b'{"freeze": true}', headers={"content-type": kind}
        )
        assert answer.status == 415
    assert admin.get("/v1/clock")["rate"] == 1


@pytest.mark.parametrize(
    ("raw", "status"),
    [(b"", 400), (b"{", 400), (b"[]", 400), (b"\xff", 400), (b" " * (BODY_BYTES_MAX + 1), 413)],
    ids=["nothing", "half", "a list", "no text", "too large"],
)
def test_a_body_that_is_no_object_is_refused(admin: HttpClient, raw: bytes, status: int) -> None:
    assert admin.request("POST", "/v1/clock", raw=raw).status == status


def test_nothing_is_changed_by_get(admin: HttpClient) -> None:
    for path in ("/v1/actions", "/v1/verify", "/v1/journal/wait"):
        assert admin.request("GET", path).status == 405


@pytest.mark.parametrize(
    "given", ["", f"Bearer {SECRET}x", f"Basic {SECRET}", "Bearer", f"bearer{SECRET}"]
)
def test_without_the_token_nothing_is_shown(guarded: HttpClient, given: str) -> None:
    answer = guarded.request("GET", "/v1/cluster", headers={"authorization": given})
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")


def test_with_the_token_any_host_will_do(guarded: HttpClient) -> None:
    headers = {"authorization": f"Bearer {SECRET}", "host": "kafka.test:9191"}
    assert guarded.request("GET", "/v1/cluster", headers=headers).status == 200


def test_probes_need_no_token(guarded: HttpClient) -> None:
    assert guarded.request("GET", "/healthz").status == 200


def test_a_stream_that_nobody_reads_does_not_hold_up_the_end(kafka: Cluster) -> None:
    view = kafka.call(lambda _: ServerTarget(kafka.server))
    server = start_admin(view)
    stream = HttpClient(server.url).stream("/v1/journal/stream")
    assert stream.readline() == b": mockbroker journal\n"
    wait_until(lambda: kafka.call(lambda cluster: bool(cluster.runtime.journal.followers)))
    assert server.stop()
    stream.close()
