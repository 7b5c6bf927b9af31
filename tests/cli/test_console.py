"""`mockbroker console` and `mockbroker journal save`."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from mockbroker import Cluster
from mockbroker.cli import main
from tests.support.http import HttpClient


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    with Cluster(brokers=1, topics={"orders": 1}) as kafka:
        kafka.topic("orders").produce("coffee")
        path = tmp_path / "journal.mbj"
        done = CliRunner().invoke(main, ["journal", "save", str(path), "--admin", kafka.admin_url])
        assert done.exit_code == 0, done.output
        assert kafka.journal.save_entries(tmp_path / "again.mbj") >= path.stat().st_size
    return path


def test_a_saved_journal_is_looked_at_without_its_cluster(saved: Path) -> None:
    command = [sys.executable, "-m", "mockbroker", "console", str(saved)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            found = re.fullmatch(r"console=(http://127\.0\.0\.1:\d+)/\n", process.stdout.readline())
            assert found is not None
            look(HttpClient(found[1]))
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


def look(client: HttpClient) -> None:
    about = client.get("/v1/about")
    assert (about["source"], about["title"]) == ("journal", "journal.mbj")
    page = client.raw("GET", "/", headers={"Accept": "text/html"})
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    [append] = client.get("/v1/journal", kind="append")["events"]
    assert (append["topic"], append["first_offset"]) == ("orders", 0)
    assert client.get(f"/v1/journal/entries/{append['seq']}/links")["causes"] is not None
    assert client.get("/v1/journal/timeline")["last_seq"] == about["journal"]["last_seq"]
    assert client.post("/v1/audit", {})["whole"]
    assert client.get("/v1/state-machines")
    for method, path, body in (
        ("GET", "/v1/cluster", None),
        ("GET", "/v1/clock", None),
        ("DELETE", "/v1/journal", None),
        ("POST", "/v1/actions", {"stop_broker": {"node": 1}}),
        ("POST", "/v1/faults", {"do": {"delay": "1s"}}),
    ):
        refused = client.request(method, path, body)
        assert (refused.status, refused.body["title"]) == (409, "no cluster"), path
    assert client.request("GET", "/v1/coordinator").status == 400  # it is wrong anywhere


def test_without_a_file_the_address_is_that_of_the_cluster() -> None:
    with Cluster(brokers=1) as kafka:
        done = CliRunner().invoke(main, ["console", "--admin", kafka.admin_url])
        assert done.output == f"console={kafka.admin_url}/\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [(None, "cannot read"), (b"nonsense and more", "is no journal of mockbroker")],
)
def test_what_is_no_journal_is_one_line(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    done = CliRunner().invoke(main, ["console", str(path)])
    assert done.exit_code != 0
    assert message in str(done.exception or done.output) + done.output


def test_people_at_a_terminal_are_told_where_the_console_is() -> None:
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "mockbroker", "serve", "--port", "0", "--admin-port", "0"]
    with subprocess.Popen(command, stdout=theirs) as process, os.fdopen(ours, "rb") as shown:
        os.close(theirs)
        try:
            admin = re.search(rb"admin=(\S+)", shown.readline())
            assert admin is not None
            assert shown.readline().strip() == b"console: " + admin[1] + b"/"
        finally:
            process.send_signal(signal.SIGTERM)
