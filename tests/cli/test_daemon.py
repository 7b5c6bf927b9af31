"""`mockbroker serve --daemon` and `mockbroker stop`: a cluster in the background."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mockbroker import Cluster
from mockbroker.cli.daemon import running
from tests.support.librdkafka import produce, read_all, values
from tests.support.waiting import wait_until

_RUN = [sys.executable, "-c", "from mockbroker.cli import main; main()"]
FREE = ("--port", "0", "--no-admin")


def mockbroker(*arguments: object, where: Path) -> subprocess.CompletedProcess[str]:
    """Run it to its end, with `where` as the current directory."""
    return subprocess.run(
        [*_RUN, *map(str, arguments)],
        cwd=where,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def fields(line: str) -> dict[str, str]:
    """The `name=value`s of a ready line."""
    return dict(word.split("=", 1) for word in line.split()[1:])


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Path]:
    """A directory of the test's own; what it left running in the background is killed."""
    yield tmp_path
    for path in tmp_path.glob("*.pid"):
        pid = running(path)
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.covers("S297")
def test_a_cluster_in_the_background_is_there_until_it_is_stopped(here: Path) -> None:
    """The command ends when clients can connect, and says where, and which process they speak to.
    Once `stop` is back the process has ended, and its ports and pid file are gone.
    """
    started = mockbroker("serve", "--brokers", 3, "--daemon", "--topic", "t", *FREE, where=here)
    assert (started.returncode, started.stderr) == (0, "")
    said = fields(started.stdout)
    assert started.stdout.startswith("ready bootstrap=")
    pid_file = here / "mockbroker.pid"
    assert said["pid-file"] == str(pid_file)
    assert said["pid"] == pid_file.read_text().strip()
    assert running(pid_file) == int(said["pid"])

    bootstrap = said["bootstrap"]
    assert len(bootstrap.split(",")) == 3
    produce(bootstrap, "t", ["a", "b"])
    assert values(read_all(bootstrap, "t", 2)) == ["a", "b"]

    stopped = mockbroker("stop", where=here)
    assert (stopped.returncode, stopped.stdout, stopped.stderr) == (0, "", "")
    assert list(here.iterdir()) == []
    for address in bootstrap.split(","):
        host, port = address.split(":")
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((host, int(port)), timeout=10)


@pytest.mark.covers("S297")
def test_the_fixture_gives_the_same_within_the_test(mock_kafka: Cluster) -> None:
    mock_kafka.topic("t").create()
    assert len(mock_kafka.bootstrap_servers.split(",")) == 3
    produce(mock_kafka.bootstrap_servers, "t", ["a"])
    assert values(read_all(mock_kafka.bootstrap_servers, "t", 1)) == ["a"]


def test_one_pid_file_is_for_one_cluster(here: Path) -> None:
    """The second one is refused, and the first one goes on. With another file there may be two."""
    first = mockbroker("serve", "--daemon", *FREE, where=here)
    second = mockbroker("serve", "--daemon", *FREE, where=here)
    assert second.returncode == 2
    assert fields(first.stdout)["pid"] in second.stderr
    assert running(here / "mockbroker.pid") is not None
    other = mockbroker("serve", "--daemon", "--pid-file", "other.pid", *FREE, where=here)
    assert other.returncode == 0
    for pid_file in ("other.pid", "mockbroker.pid"):
        assert mockbroker("stop", "--pid-file", pid_file, where=here).returncode == 0
    assert mockbroker("stop", where=here).returncode == 1


def test_the_pid_file_of_a_killed_cluster_is_taken_for_what_it_is(here: Path) -> None:
    """Nothing is stopped by it, and the next cluster takes it over."""
    first = mockbroker("serve", "--daemon", *FREE, where=here)
    os.kill(int(fields(first.stdout)["pid"]), signal.SIGKILL)
    pid_file = here / "mockbroker.pid"
    wait_until(lambda: running(pid_file) is None)
    assert pid_file.exists()
    refused = mockbroker("stop", where=here)
    assert refused.returncode == 1
    assert "no cluster runs" in refused.stderr
    assert mockbroker("serve", "--daemon", *FREE, where=here).returncode == 0
    assert mockbroker("stop", where=here).returncode == 0


def test_what_it_prints_goes_to_the_log_file(here: Path) -> None:
    started = mockbroker(
        "serve", "--daemon", "--trace", "--log-file", "log", "--topic", "t", *FREE, where=here
    )
    produce(fields(started.stdout)["bootstrap"], "t", ["a"])
    log = here / "log"
    wait_until(lambda: "PRODUCE" in log.read_text(), what="the line of the Produce")
    assert mockbroker("stop", where=here).returncode == 0


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--daemon", "--topic", "t:1:9"], "replication factor of 9"),
        (["--daemon", "--topic", "t:x"], "t:x"),
        (["--daemon", "--pid-file", "no/such/directory"], "no/such/directory"),
        (["--daemon", "--log-file", "no/such/directory"], "no/such/directory"),
        (["--pid-file", "x.pid"], "--daemon"),
    ],
    ids=lambda each: each if isinstance(each, str) else None,
)
def test_what_cannot_be_started_says_so_and_leaves_nothing(
    here: Path, flags: list[str], named: str
) -> None:
    """As without --daemon: one line on stderr, and status 2."""
    refused = mockbroker("serve", *flags, *FREE, where=here)
    assert (refused.returncode, refused.stdout) == (2, "")
    (line,) = refused.stderr.splitlines()
    assert named in line
    assert list(here.iterdir()) == []
