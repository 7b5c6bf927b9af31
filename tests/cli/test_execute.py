"""`mockbroker exec`: the cluster runs as long as the command."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.waiting import wait_until

RUN = [sys.executable, "-m", "mockbroker", "exec"]
TIMEOUT_S = 60.0


def execute(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RUN, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
        env={**os.environ, **environment},
    )


PRODUCES = """
import json, os, urllib.request
from confluent_kafka import Producer
producer = Producer({"bootstrap.servers": os.environ["MOCKBROKER_BOOTSTRAP"], "log_level": 0})
producer.produce("orders", "coffee")
assert producer.flush(30) == 0
with urllib.request.urlopen(os.environ["MOCKBROKER_ADMIN"] + "/healthz") as answer:
    print(answer.status, "MOCKBROKER_ADMIN_TOKEN" in os.environ)
"""


def test_a_command_finds_the_cluster_and_its_admin_api():
    done = execute("--topic", "orders:2", "--", sys.executable, "-c", PRODUCES)
    assert (done.returncode, done.stdout, done.stderr) == (0, "200 False\n", "")


def test_the_exit_code_is_the_commands():
    assert execute("--no-admin", "--", "sh", "-c", "exit 7").returncode == 7
    assert execute("--no-admin", "--", "sh", "-c", "kill -9 $$").returncode == 128 + 9


def test_a_command_that_cannot_start_has_the_shells_exit_code(tmp_path: Path):
    missing = execute("--no-admin", "--", "no-such-program-anywhere")
    assert missing.returncode == 127
    assert missing.stderr == (
        "mockbroker exec: no-such-program-anywhere: No such file or directory\n"
    )
    text = tmp_path / "text"
    text.write_text("no program")
    assert execute("--no-admin", "--", str(text)).returncode == 126


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Missing argument"),
        (("--topic", "a:b", "--", "true"), "--topic a:b"),
        (("--host", "0.0.0.0", "--", "true"), "meta-address 0.0.0.0"),
    ],
)
def test_wrong_usage_is_one_line_and_runs_nothing(arguments: tuple[str, ...], words: str):
    done = execute(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr
    assert done.stderr.startswith("mockbroker exec: ")
    assert len(done.stderr.splitlines()) == 1


def test_a_token_is_handed_to_the_command():
    code = "import os; print(os.environ['MOCKBROKER_ADMIN_TOKEN'])"
    done = execute("--", sys.executable, "-c", code, MOCKBROKER_ADMIN_TOKEN="secret-7")
    assert done.stdout == "secret-7\n"


def test_signals_reach_the_command():
    """A first SIGTERM is the command's; its exit code is ours."""
    code = "import signal, sys\nsignal.signal(15, lambda *_: sys.exit(5))\n"
    code += "print('up', flush=True)\nsignal.pause()"
    process = subprocess.Popen(
        [*RUN, "--no-admin", "--", sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == 5


def ended(pid: int) -> bool:
    """Whether a process is gone, or a zombie that nobody has collected."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state == "Z"


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
@pytest.mark.parametrize("command", ["exec", "serve"])
def test_a_killed_parent_leaves_nothing_behind(command: str, tmp_path: Path):
    """The parent of the cluster is killed with SIGKILL: cluster and command end by themselves."""
    pids = tmp_path / "pids"
    ready = f"{pids}.json"
    ours = {
        "exec": ["--no-admin", "--", "sh", "-c", f"echo $PPID $$ >{pids}; exec sleep 1000"],
        "serve": ["--no-admin", "--port", "0", "--with-parent", "--ready-file", ready],
    }[command]
    whole = [sys.executable, "-m", "mockbroker", command, *ours]
    code = f"import subprocess; subprocess.run({whole!r})"
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL)
    found: list[int] = []

    def started() -> bool:
        if command == "serve" and Path(ready).exists():
            found[:] = [json.loads(Path(ready).read_text())["pid"]]
        elif pids.exists():
            found[:] = [int(word) for word in pids.read_text().split()]
        return bool(found)

    try:
        wait_until(started)
    finally:
        parent.kill()
        parent.wait()
    wait_until(lambda: all(ended(pid) for pid in found))
