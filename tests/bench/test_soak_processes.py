"""The processes of a soak's clients."""

from __future__ import annotations

import sys

import pytest

from bench.soak_processes import CRASHES_MAX, ClientProcesses
from tests.support.waiting import wait_until

WORKS = """
import json, sys
sys.stdin.read()
print(json.dumps({"done": {"read": 2}, "failed": {"read": 1}}))
"""
CRASHES = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
ENDS = "raise SystemExit(3)"


def processes(**programs: str) -> ClientProcesses:
    return ClientProcesses({name: [sys.executable, "-c", text] for name, text in programs.items()})


def test_what_all_clients_did_is_added_up() -> None:
    with processes(one=WORKS, other=WORKS) as clients:
        clients.look()
    assert (clients.done, clients.failed) == ({"read": 4}, {"read": 2})
    assert (clients.crashes, clients.problems) == ([], [])


@pytest.mark.parametrize(
    ("program", "crashes", "problem"),
    [
        (CRASHES, ["lib: SIGKILL", "lib: SIGKILL"], []),
        (ENDS, [], ["the clients of lib ended with code 3"] * 2),
    ],
)
def test_clients_that_died_are_started_anew(
    program: str, crashes: list[str], problem: list[str]
) -> None:
    with processes(lib=program) as clients:

        def died() -> bool:
            clients.look()
            return len(clients.deaths) > 0

        wait_until(died, what="the end of the process")
    assert clients.crashes == crashes
    assert clients.problems == problem


def test_too_many_crashes_are_a_problem() -> None:
    clients = processes()
    clients.deaths = [("lib", -11)] * CRASHES_MAX
    assert clients.problems == []
    clients.deaths.append(("lib", -11))
    [problem] = clients.problems
    assert problem.startswith("clients crashed 6 times: lib: SIGSEGV")
