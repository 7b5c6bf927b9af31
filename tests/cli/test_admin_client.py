"""The client of the admin API: wrong URLs, and servers that end in the middle of an answer."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner

from mockbroker.cli import main
from mockbroker.cli.admin_client import AdminClient

CUT_OFF = {
    "chunked": b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\ndata: 1\n",
    "short": b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n",
    "problem": b"HTTP/1.1 404 Not Found\r\ncontent-length: 100\r\n\r\n{",
    "status line": b"HT",
}


@pytest.fixture
def answering(request: pytest.FixtureRequest) -> Iterator[str]:
    """The URL of a server that sends these bytes to each client, and closes."""
    answer = CUT_OFF[request.param]
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            with client:
                client.recv(65536)
                client.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    thread.join(10)


@pytest.mark.parametrize("answering", CUT_OFF, indirect=True)
def test_an_answer_that_is_cut_off_ends_the_command_with_one_line(answering: str) -> None:
    client = AdminClient(answering)
    for call in (
        lambda: client.get("/v1/brokers"),
        lambda: client.read("/v1/export/faults"),
    ):
        with pytest.raises(click.ClickException, match=answering):
            call()


@pytest.mark.parametrize("answering", ["chunked"], indirect=True)
def test_a_stream_that_is_cut_off_ends_the_command_with_one_line(answering: str) -> None:
    lines = AdminClient(answering).lines("/v1/journal/stream", {})
    assert next(lines) == "data: 1"
    with pytest.raises(click.ClickException, match=answering):
        next(lines)


@pytest.mark.parametrize("url", ["127.0.0.1:none", "http://h:70000", "https://h:1", "http://h:1/x"])
def test_a_url_that_is_none_is_wrong_usage(url: str) -> None:
    result = CliRunner().invoke(main, ["show", "brokers", "--admin", url])
    assert result.exit_code == 2, result.output
    assert "is not http://HOST:PORT" in result.output


def test_a_token_file_that_is_not_text_ends_the_command_with_one_line(tmp_path) -> None:
    token = tmp_path / "admin.token"
    token.write_bytes(b"\xff\xfe")
    arguments = ["show", "brokers", "--admin", "http://127.0.0.1:1", "--admin-token-file", token]
    result = CliRunner().invoke(main, [str(each) for each in arguments])
    assert result.exit_code == 2, result.output
    assert "admin.token: byte 0 is not UTF-8" in result.output
