"""Clients of the admin API that mean harm: each is refused, and others are served meanwhile."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from mockbroker import Cluster
from mockbroker.client import Client
from tests.support.http import TIMEOUT_S, HttpClient
from tests.support.waiting import wait_until

HEAD = b"POST /v1/clock HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
HEADERS_BYTES = 1 << 20
BODY_BYTES_MAX = 1 << 20  # mockbroker.admin.body.bytes.max
STREAMS_MAX = 32  # mockbroker.admin.streams.max


@contextmanager
def connection(admin: HttpClient) -> Iterator[socket.socket]:
    with socket.create_connection((admin.host, admin.port), timeout=TIMEOUT_S) as sock:
        yield sock


def status_of(answer: bytes) -> int:
    assert answer.startswith(b"HTTP/1.1 "), answer
    return int(answer.split()[1])


def send_until_refused(sock: socket.socket, piece: bytes, pieces: int) -> bytes:
    """Send a piece again and again until an answer is there; returns its first bytes."""
    sock.setblocking(True)
    for _ in range(pieces):
        try:
            sock.sendall(piece)
        except OSError:  # closed by the other side, after its answer
            break
    return sock.recv(1 << 16)


def test_a_body_without_an_end_is_refused_at_its_limit(admin: HttpClient) -> None:
    size = 1 << 16
    chunk = b"%x\r\n%s\r\n" % (size, b" " * size)
    with connection(admin) as sock:
        sock.sendall(HEAD + b"transfer-encoding: chunked\r\n\r\n")
        answer = send_until_refused(sock, chunk, BODY_BYTES_MAX // size + 1)
    assert status_of(answer) == 413


def test_headers_without_an_end_are_refused(admin: HttpClient) -> None:
    line = b"x: " + b"y" * 1021 + b"\r\n"
    with connection(admin) as sock:
        sock.sendall(HEAD)
        answer = send_until_refused(sock, line, HEADERS_BYTES // len(line))
    assert answer == b"" or status_of(answer) in (400, 431)


def test_a_name_that_no_message_can_carry_is_refused() -> None:
    with Cluster(brokers=1, topics={"t": 1}) as kafka, Client(kafka.bootstrap_servers) as client:
        client.coordinator("g")  # its topic is there now
        answer = HttpClient(kafka.admin_url).request("DELETE", f"/v1/groups/{'x' * 40_000}")
    assert (answer.status, answer.body["field"]) == (400, "groups_names[0]")
    assert answer.body["detail"] == "groups_names[0]: string of 40000 bytes, at most 32767"


def test_requests_that_never_end_hold_up_nobody(admin: HttpClient) -> None:
    with ExitStack() as stack:
        for sent in (b"", b"G", HEAD, HEAD + b"content-length: 1000\r\n\r\n{"):
            for _ in range(10):
                stack.enter_context(connection(admin)).sendall(sent)
        assert admin.get("/v1/clock")["rate"] == 1


@pytest.mark.mock_kafka(brokers=1)
def test_streams_above_the_limit_are_refused_until_one_ends(mock_kafka: Cluster) -> None:
    admin = HttpClient(mock_kafka.admin_url)
    with ExitStack() as stack:
        streams = [admin.stream("/v1/journal/stream") for _ in range(STREAMS_MAX)]
        for stream in streams[1:]:
            stack.callback(stream.close)
        for stream in streams:
            assert stream.readline() == b": mockbroker journal\n"
        refused = admin.request("GET", "/v1/journal/stream")
        assert (refused.status, refused.body["title"]) == (429, "too many streams")
        streams[0].close()

        def is_served() -> bool:
            stream = admin.stream("/v1/journal/stream")
            stack.callback(stream.close)
            return stream.status == 200

        wait_until(is_served, what="a stream in the place of the one that ended")


@pytest.mark.mock_kafka(brokers=1)
def test_of_streams_that_begin_together_none_is_silent(mock_kafka: Cluster) -> None:
    admin = HttpClient(mock_kafka.admin_url)
    request = b"GET /v1/journal/stream HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with ExitStack() as stack:
        socks = [stack.enter_context(connection(admin)) for _ in range(STREAMS_MAX + 8)]
        for sock in socks:
            sock.sendall(request)
        served = 0
        for sock in socks:
            answer = sock.recv(1 << 16)
            while status_of(answer) == 200 and b"\n: " not in answer:
                answer += sock.recv(1 << 16)
            served += b": mockbroker journal\n" in answer
    assert served == STREAMS_MAX


@pytest.mark.parametrize(
    "name", ["..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd", "..", "a%00b", "%ff", "x" * 5000]
)
def test_a_name_is_no_path(admin: HttpClient, name: str) -> None:
    """Snapshots, topics and groups have names; no name leads to a file."""
    for path in (f"/v1/snapshots/{name}", f"/v1/topics/{name}", f"/v1/groups/{name}"):
        for method in ("GET", "DELETE"):
            answer = admin.request(method, path)
            assert answer.status in (400, 404, 405), (method, path)
            assert b"root:" not in str(answer.body).encode()
