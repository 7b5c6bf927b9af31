"""The programs of docs/examples/clients print what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mockbroker import Cluster
from tests.house.doc_blocks import ROOT, PageRunner, blocks_of

FOLDER = ROOT / "docs" / "examples" / "clients"
PROGRAMS = sorted(FOLDER.glob("*.py"))


@pytest.mark.covers("S353")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
@pytest.mark.mock_kafka(brokers=3, topics={"orders": 2, "bills": 1})
def test_a_program_prints_what_it_says(mock_kafka: Cluster, program: Path) -> None:
    said = re.findall(r"^# prints: (.+)$", program.read_text(encoding="utf-8"), re.MULTILINE)
    assert said
    done = subprocess.run(
        [sys.executable, str(program)],
        env={**os.environ, "MOCKBROKER_BOOTSTRAP": mock_kafka.bootstrap_servers},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == said


def test_the_page_has_each_program_and_its_command_runs() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(\w+\.py)` \|", page, re.MULTILINE)
    assert sorted(listed) == [path.name for path in PROGRAMS]
    assert len(listed) == 11
    runner = PageRunner(FOLDER)
    try:
        for block in blocks_of(page):
            runner.run(block)
    finally:
        runner.close()
