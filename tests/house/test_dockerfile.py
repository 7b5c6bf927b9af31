"""The Dockerfile, as far as it can be checked without an engine that builds it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from mockbroker.cli.admin_options import DEFAULT_ADMIN_PORT
from mockbroker.cli.cluster_options import DEFAULT_PORT
from tests.house.lint import ROOT
from tests.support.serving import Served

READY_FILE = "/tmp/mockbroker.json"

Instruction = tuple[str, str]


def instructions() -> list[Instruction]:
    """(instruction, arguments) of the Dockerfile, continued lines joined, comments left out."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    logical = "\n".join(lines).replace("\\\n", " ").splitlines()
    parsed = [line.split(None, 1) for line in logical if line.strip()]
    return [(word, arguments) for word, arguments in parsed]


def last_stage() -> list[Instruction]:
    found = instructions()
    start = max(index for index, (word, _) in enumerate(found) if word == "FROM")
    return found[start:]


def arguments_of(word: str) -> list[str]:
    return [arguments for name, arguments in last_stage() if name == word]


def test_it_is_built_in_two_stages_of_one_slim_base():
    bases = [arguments.split()[0] for word, arguments in instructions() if word == "FROM"]
    assert len(bases) == 2
    assert set(bases) == {"python:${PYTHON}-slim"}


def test_all_that_is_copied_from_the_tree_exists_and_is_not_ignored():
    ignore = (ROOT / ".dockerignore").read_text(encoding="utf-8").split("\n")
    kept = [line[1:] for line in ignore if line.startswith("!")]
    for word, arguments in instructions():
        if word == "COPY" and not arguments.startswith("--from"):
            for source in shlex.split(arguments)[:-1]:
                assert (ROOT / source).exists(), source
                assert any(fnmatchcase(source, pattern) for pattern in kept), source


def test_what_the_wheel_is_made_of_is_copied():
    copied = " ".join(arguments for word, arguments in instructions() if word == "COPY").split()
    assert {"pyproject.toml", "README.md", "LICENSE", "mockbroker", "protocol", "fixtures"} <= set(
        copied
    )


def test_it_runs_as_a_user_that_is_not_root():
    [user] = arguments_of("USER")
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", user)


def test_it_exposes_the_ports_of_three_brokers_and_the_admin_server():
    [exposed] = arguments_of("EXPOSE")
    assert exposed.split() == [
        *(str(DEFAULT_PORT + broker) for broker in range(3)),
        str(DEFAULT_ADMIN_PORT),
    ]


def container(tmp_path: Path, *arguments: str) -> tuple[Served, list[str]]:
    """The image's process with these arguments, and its health check, with files in `tmp_path`."""
    ready = tmp_path / "mockbroker.json"
    [entry], [check] = arguments_of("ENTRYPOINT"), arguments_of("HEALTHCHECK")
    command = [str(ready) if part == READY_FILE else part for part in json.loads(entry)]
    assert command[:2] == ["mockbroker", "serve"]
    environment = dict(
        pair.split("=", 1) for pair in shlex.split(arguments_of("ENV")[0]) if "MOCKBROKER" in pair
    )
    python, flag, code = json.loads(check.partition(" CMD ")[2])
    assert (python, flag) == ("python", "-c")
    assert READY_FILE in code
    health = [sys.executable, flag, code.replace(READY_FILE, str(ready))]
    return Served(*command[2:], *arguments, environment=environment), health


@pytest.mark.parametrize("admin", [("--admin-port", "0"), ("--no-admin",)])
def test_the_health_check_finds_the_admin_port_in_use(tmp_path: Path, admin: tuple[str, ...]):
    served, health = container(tmp_path, *admin)
    with served:
        # Docker calls a container unhealthy after three failures in a row.
        assert any(subprocess.run(health, check=False).returncode == 0 for _ in range(3))
        served.stop()
    assert subprocess.run(health, check=False, capture_output=True).returncode == 1


def test_further_arguments_keep_the_advertised_host(tmp_path: Path):
    served, _ = container(tmp_path, "--no-admin", "--brokers", "1")
    with served:
        assert served.bootstrap_servers.startswith("localhost:")
    served, _ = container(tmp_path, "--no-admin", "--advertised-host", "kafka")
    with served:
        assert served.bootstrap_servers.startswith("kafka:")


def test_listeners_advertise_the_hosts_that_they_name(tmp_path: Path):
    """The image sets an advertised host for those that name none."""
    hosts = ("INSIDE:PLAINTEXT:0:kafka", "OUTSIDE:PLAINTEXT:0")
    arguments = [word for listener in hosts for word in ("--listener", listener)]
    served, _ = container(tmp_path, "--no-admin", "--brokers", "1", *arguments)
    with served:
        assert served.bootstrap_servers.startswith("kafka:")
        assert served.fields["OUTSIDE"].startswith("localhost:")
