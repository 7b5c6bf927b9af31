"""The docs tell the truth: examples run, links lead somewhere, pages are fresh."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.doc_blocks import ROOT, Block, PageRunner, blocks_of, commands_of, matches

WRITTEN = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
ALL_PAGES = [*WRITTEN, ROOT / "CHANGELOG.md", *sorted((ROOT / "docs" / "reference").glob("*.md"))]
LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")
LAYERS = "mockbroker|mockbroker_protocol|mockbroker_fixtures|core|handlers|actors|admin|cli|client"
ROOM = re.compile(rf"`((?:{LAYERS})/[\w/]+(?:\.py|/))`(?: `([\w.]+)`)?")
SOURCES = ("", "mockbroker", "protocol", "fixtures")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# Pages whose examples are run elsewhere: in tests/spark, all on one session of Spark.
ELSEWHERE = {"docs/spark.md", "docs/spark-faults.md"}

RUNNABLE = [
    page
    for page in WRITTEN
    if name_of(page) not in ELSEWHERE
    and any(block.language in {"console", "python"} for block in blocks_of(page.read_text()))
]


# Rows of the checklist that the examples of a page show.
SHOWN = {
    "docs/cookbook-answers.md": ("S91", "S278", "S279"),
    "docs/cookbook-cluster.md": ("S69", "S74", "S87", "S128", "S136", "S254"),
    "docs/cookbook-commits.md": ("S127", "S177", "S184"),
    "docs/cookbook-groups.md": ("S180", "S212", "S216", "S223"),
    "docs/cookbook-producing.md": ("S104",),
    "docs/cookbook-refused.md": ("S53", "S75", "S107", "S245"),
    "docs/applications.md": ("S341", "S344", "S345"),
    "docs/questions.md": ("S185", "S340", "S349", "S351"),
    "docs/timeouts.md": ("S352",),
    "docs/exactly-once.md": ("S172", "S246", "S249", "S255"),
    "docs/exactly-once-outside.md": ("S258", "S342"),
    "docs/exactly-once-snapshots.md": ("S265",),
}


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=pytest.mark.covers(*SHOWN.get(name_of(page), ())))
        for page in RUNNABLE
    ],
    ids=name_of,
)
def test_the_examples_of_a_page_run_as_they_stand(page: Path, tmp_path: Path):
    runner = PageRunner(tmp_path)
    try:
        for block in blocks_of(page.read_text(encoding="utf-8")):
            runner.run(block)
        runner.run_tests()
    finally:
        runner.close()


@pytest.mark.parametrize("page", ALL_PAGES, ids=name_of)
def test_each_link_to_a_file_leads_to_one(page: Path):
    text = page.read_text(encoding="utf-8")
    broken = [link for link in LINK.findall(text) if not (page.parent / link).exists()]
    assert broken == []


@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_each_room_that_is_named_exists_and_holds_what_is_named(page: Path):
    missing = []
    for room, thing in ROOM.findall(page.read_text(encoding="utf-8")):
        paths = [ROOT / source / room for source in SOURCES]
        path = next((path for path in paths if path.exists()), None)
        if path is None or (thing and thing not in names_in(path)):
            missing.append(f"{room} {thing}")
    assert missing == []


def names_in(path: Path) -> set[str]:
    """What a module defines at the top, and the methods of its classes as `Class.method`."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.ClassDef):
            names.add(node.name)
            names |= {
                f"{node.name}.{inner.name}"
                for inner in node.body
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef)
            }
    return names


def test_generated_files_are_up_to_date():
    done = subprocess.run(
        [sys.executable, "docs/generate", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_sphinx_builds_the_docs_without_a_warning(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "docs", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_console_block_is_read_as_commands_and_their_output():
    block = Block(1, "console", "$ a b\nout\nmore\n$ c\n")
    assert list(commands_of(block)) == [("a b", ["out", "more"]), ("c", [])]


def test_expected_output_may_leave_things_open():
    assert matches(["listening on 127.0.0.1:9092 ..."], "listening on 127.0.0.1:4711 since noon\n")
    assert not matches(["one"], "two")


def test_an_example_that_fails_fails_its_page(tmp_path: Path):
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        PageRunner(tmp_path).run(Block(1, "python", "1 / 0\n"))
    with pytest.raises(AssertionError, match="no-such-file"):
        PageRunner(tmp_path).run(Block(1, "console", "$ cat no-such-file\n"))
    with pytest.raises(AssertionError):
        PageRunner(tmp_path).run(Block(1, "console", "$ make no-such-target\n"))
    page = PageRunner(tmp_path)
    page.run(Block(1, "python", "# test_wrong.py\ndef test_wrong():\n    assert False\n"))
    with pytest.raises(AssertionError, match="test_wrong"):
        page.run(Block(9, "console", "$ true\n"))
    assert shutil.which("bash")
