"""Tests are stopped at lines that the seed decides, where something else goes on meanwhile."""

from __future__ import annotations

import re

import pytest

from tests.support.bare_pytest import use_only
from tests.support.stops import STOP_S

pytest_plugins = ["pytester"]

BESIDE_A_THREAD = """
import threading
import time

import pytest

@pytest.fixture
def thread():
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    yield
    end.set()
    thread.join()

def test_it_fails(thread):
    began = time.monotonic()
    for _ in range(1000):
        pass
    print(f"took {time.monotonic() - began:.3f} s")
    assert False
"""
BESIDE_A_PROCESS = """
import subprocess

def test_it_fails():
    process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    for _ in range(1000):
        pass
    process.stdin.close()
    process.wait()
    assert False
"""
IN_A_LOOP = """
import trio

async def in_a_loop():
    for _ in range(1000):
        pass

def test_it_fails():
    trio.run(in_a_loop)
    assert False
"""
ALONE = """
def test_it_fails():
    for _ in range(1000):
        pass
    assert False
"""


def stops_of(pytester: pytest.Pytester, source: str, *options: str) -> tuple[list[str], str]:
    """The lines at which the only test of this code was stopped, and what pytest wrote."""
    pytester.makepyfile(test_it=source)
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *options)
    result.assert_outcomes(failed=1)
    at = next((n for n, line in enumerate(result.outlines) if "- stopped -" in line), None)
    if at is None:
        return [], str(result.stdout)
    lines, _, seed = result.outlines[at + 1].partition(" (")
    assert seed == f"{' '.join(options[-2:])})"
    return re.findall(r"test_it\.py:\d+", lines), str(result.stdout)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    use_only(monkeypatch)


def with_seed(seed: int) -> tuple[str, ...]:
    return ("-p", "tests.support.stops", "--stops", str(seed))


@pytest.mark.parametrize("source", [BESIDE_A_PROCESS, IN_A_LOOP])
def test_a_test_is_stopped_while_something_goes_on(pytester: pytest.Pytester, source: str) -> None:
    lines, _ = stops_of(pytester, source, *with_seed(1))
    assert len(lines) == 3


def test_the_seed_decides_at_which_lines(pytester: pytest.Pytester) -> None:
    first, wrote = stops_of(pytester, BESIDE_A_THREAD, *with_seed(1))
    [took] = re.findall(r"took ([\d.]+) s", wrote)
    assert float(took) >= STOP_S
    assert stops_of(pytester, BESIDE_A_THREAD, *with_seed(1))[0] == first
    assert stops_of(pytester, BESIDE_A_THREAD, *with_seed(2))[0] != first


def test_none_is_stopped_without_a_seed_or_alone_or_if_it_measures_time(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeini("[pytest]\nmarkers =\n  timed: it measures time\n")
    assert stops_of(pytester, BESIDE_A_THREAD, "-p", "tests.support.stops")[0] == []
    assert stops_of(pytester, ALONE, *with_seed(1))[0] == []
    timed = f"{BESIDE_A_THREAD}\ntest_it_fails = pytest.mark.timed(test_it_fails)"
    assert stops_of(pytester, timed, *with_seed(1))[0] == []
