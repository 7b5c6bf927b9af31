"""The example project docs/examples/orders: its own tests pass, as its users run them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.doc_blocks import ROOT, PageRunner, blocks_of

PROJECT = ROOT / "docs" / "examples" / "orders"
TIMEOUT_S = 600
# As `addopts` in pyproject.toml has it.
PLAIN = "-p no:cacheprovider -p no:schemathesis"

# The page plays one scenario, with the right kitchen and with a wrong one.
MARKS = {"test_sales.py": [pytest.mark.spark], "test_scenarios.py": [pytest.mark.slow]}
BY_THE_PAGE = {"test_zombies.py"}


def files_of_tests() -> list[object]:
    names = {path.name for path in (PROJECT / "tests").glob("test_*.py")}
    return [pytest.param(name, marks=MARKS.get(name, [])) for name in sorted(names - BY_THE_PAGE)]


@pytest.mark.slow
@pytest.mark.covers("S346")
@pytest.mark.timeout(TIMEOUT_S)
@pytest.mark.parametrize("name", files_of_tests())
def test_the_tests_of_the_example_pass(name: str, tmp_path: Path) -> None:
    plain = ("-q", *PLAIN.split(), f"--basetemp={tmp_path}/t")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plain, f"tests/{name}"],
        cwd=PROJECT,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout


def test_the_commands_of_its_page_run_as_they_stand() -> None:
    text = (PROJECT / "README.md").read_text(encoding="utf-8")
    assert all(f"tests/{name}\n" in text for name in BY_THE_PAGE)
    runner = PageRunner(PROJECT)
    runner.environment |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_ADDOPTS": PLAIN}
    try:
        for block in blocks_of(text):
            runner.run(block)
    finally:
        runner.close()


def test_each_mistake_is_on_the_page_and_is_made_by_a_test() -> None:
    page = (PROJECT / "README.md").read_text(encoding="utf-8")
    mistakes = (PROJECT / "shop" / "mistakes.py").read_text(encoding="utf-8")
    tests = "".join(path.read_text(encoding="utf-8") for path in (PROJECT / "tests").glob("*.py"))
    classes = re.findall(r"^class (\w+)", mistakes, re.MULTILINE)
    names = re.findall(r'^    "([a-z-]+)": ', mistakes, re.MULTILINE)
    assert (len(classes), len(names)) == (8, 7)
    assert [each for each in classes if f"| `{each}`: " not in page] == []
    assert [each for each in names if f':{each}": "' not in tests] == []
    assert [each for each in classes if each not in tests and mistakes.count(each) < 2] == []
