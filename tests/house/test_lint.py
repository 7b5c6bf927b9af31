"""The layers below the server are pure, and tests never sleep: checked call by call."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.house.lint import ROOT, calls, offences, our_files, python_files

PURE = (
    "mockbroker/core",
    "mockbroker/exchange",
    "mockbroker/handlers",
    "protocol/mockbroker_protocol",
)

# What would make two runs of the same events differ. Seeded generators are handed in from above.
IMPURE = (
    "time.*",
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "datetime.datetime.today",
    "datetime.date.today",
    "uuid.uuid1",
    "uuid.uuid4",
    "secrets.*",
    "random.*",
    "os.urandom",
    "os.getrandom",
    "os.environ*",
    "os.getenv",
    "os.getpid",
    "threading.*",
    "socket.*",
    "ssl.*",
    "trio.*",
    "asyncio.*",
    "builtins.open",
)

SLEEPS = ("time.sleep", "trio.sleep", "asyncio.sleep", "anyio.sleep", "trio.sleep_until")


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def offenders(paths: Iterable[Path], banned: tuple[str, ...]) -> list[str]:
    """`file:line: call` of each banned call in all the files: one test reports them all."""
    return [
        f"{relative(path)}:{call.line}: {call.name}"
        for path in paths
        for call in offences(path.read_text(encoding="utf-8"), banned)
    ]


def test_nothing_below_the_server_reads_a_clock_or_draws_randomness():
    assert offenders(python_files(*PURE), IMPURE) == []


def test_no_test_sleeps():
    stopping = ROOT / "tests" / "support" / "stops.py"  # makes tests wait on purpose
    files = [path for path in python_files("tests") if path != stopping]
    assert offenders(files, SLEEPS) == []


def test_an_offender_is_named_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tests.house.test_lint.ROOT", tmp_path)
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("import time\ntime.sleep(1)\n")
    found = offenders([tmp_path / "a.py", tmp_path / "b.py"], SLEEPS)
    assert found == ["a.py:2: time.sleep", "b.py:2: time.sleep"]


# A JavaScript timer that calls `resolve` is a sleep; one that rejects after a while is a deadline.
FOREIGN_SLEEPS = re.compile(
    r"\b(Thread\.sleep|TimeUnit\.\w+\.sleep|time\.Sleep)\s*\(|\bsetTimeout\(\s*\w+\s*,"
)


def test_no_test_in_java_javascript_or_go_sleeps():
    sleepers = [
        relative(path)
        for path in our_files()
        if relative(path).startswith("tests/")
        and path.suffix in {".java", ".js", ".mjs", ".go"}
        and FOREIGN_SLEEPS.search(path.read_text(encoding="utf-8"))
    ]
    assert sleepers == []


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import time\ntime.sleep(1)", "time.sleep"),
        ("import time as t\nt.sleep(1)", "time.sleep"),
        ("from time import sleep as nap\nnap(1)", "time.sleep"),
        ("def f():\n    from time import sleep\n    sleep(1)", "time.sleep"),
        ("import time\nnap = time.sleep", "time.sleep"),
        ("from datetime import datetime\ndatetime.now()", "datetime.datetime.now"),
        ("import datetime\ndatetime.datetime.now()", "datetime.datetime.now"),
        ("import os\nos.environ.get('X')", "os.environ.get"),
    ],
)
def test_the_linter_sees_a_call_however_it_was_imported(source: str, name: str):
    assert name in [call.name for call in calls(source)]
    assert offences(source, (name,)) != []


def test_the_linter_leaves_methods_of_other_things_alone():
    source = (
        "def f(self, time):\n    self.time.sleep(1)\n    time.sleep(2)\n    x = {}\n    x.random()"
    )
    assert list(calls(source)) == []
