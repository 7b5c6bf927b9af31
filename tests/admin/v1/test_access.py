"""Access to the admin API, and valid bodies."""

from __future__ import annotations

import hmac

import pytest

from mockbroker import Cluster
from mockbroker.admin import ServerTarget, start_admin
from tests.support.http import HttpClient
from tests.support.waiting import wait_until

SECRET = "open sesame"
TOO_LARGE = b" " * ((1 << 20) + 1)  # mockbroker.admin.body.bytes.max


@pytest.fixture(scope="module")
def guarded(kafka: Cluster):
    view = kafka.call(lambda _: ServerTarget(kafka.server))
    server = start_admin(view, secret=SECRET)
    yield HttpClient(server.url)
    assert server.stop()


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:9191",
        "",
        "127.0.0.1.evil.example",
        "evil@127.0.0.1",
        "evil.example:80@localhost:1",
        "127.0.0.1/evil",
        "127.0.0.1#evil",
        "127.0.0.1:",
    ],
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
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"\xff", 400),
        (TOO_LARGE, 413),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, 400),
    ],
    ids=["nothing", "half", "a list", "no text", "too large", "deep"],
)
def test_a_body_that_is_no_object_is_refused(admin: HttpClient, raw: bytes, status: int) -> None:
    assert admin.request("POST", "/v1/clock", raw=raw).status == status


def test_refusals_are_counted_in_the_metrics(kafka: Cluster) -> None:
    """By status, whoever refuses: the access control, the server or an endpoint."""
    server = start_admin(kafka.call(lambda _: ServerTarget(kafka.server)))
    client = HttpClient(server.url)
    host = f"127.0.0.1:{client.port}"
    foreign = {"host": host, "origin": "http://evil.example"}
    client.request("GET", "/v1/cluster", headers=foreign)
    client.request("GET", "/v1/cluster", headers={"host": "evil.example"})
    client.request("GET", "/nope")
    client.request("GET", "/nope")
    client.request("POST", "/v1/clock", raw=TOO_LARGE)
    lines = client.raw("GET", "/metrics").body.decode().splitlines()
    assert [each for each in lines if "admin_responses_total{" in each] == [
        'mockbroker_admin_responses_total{status="403"} 1',
        'mockbroker_admin_responses_total{status="404"} 2',
        'mockbroker_admin_responses_total{status="413"} 1',
        'mockbroker_admin_responses_total{status="421"} 1',
    ]
    lines = client.raw("GET", "/metrics").body.decode().splitlines()
    assert 'mockbroker_admin_responses_total{status="200"} 1' in lines
    assert server.stop()


def test_nothing_is_changed_by_get(admin: HttpClient) -> None:
    for path in ("/v1/actions", "/v1/verify", "/v1/journal/wait"):
        assert admin.request("GET", path).status == 405


@pytest.mark.parametrize(
    "given", ["", f"Bearer {SECRET}x", f"Basic {SECRET}", "Bearer", f"bearer{SECRET}"]
)
def test_without_the_token_nothing_is_shown(guarded: HttpClient, given: str) -> None:
    answer = guarded.request("GET", "/v1/cluster", headers={"authorization": given})
    assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")


def test_the_token_is_compared_in_constant_time(
    guarded: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the function of the standard library that promises it, whatever was sent."""
    compared: list[tuple[bytes, bytes]] = []

    def same(given: bytes, wanted: bytes) -> bool:
        compared.append((given, wanted))
        return False

    monkeypatch.setattr(hmac, "compare_digest", same)
    for given in (SECRET, "o", "", "x" * 1000):
        headers = {"authorization": f"Bearer {given}"}
        assert guarded.request("GET", "/v1/cluster", headers=headers).status == 401
    assert compared == [(each.encode(), SECRET.encode()) for each in (SECRET, "o", "", "x" * 1000)]


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
