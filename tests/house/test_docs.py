"""The docs tell the truth: examples run, links lead somewhere, pages are fresh."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.doc_blocks import ROOT, Block, PageRunner, blocks_of, commands_of, matches

DOCS = ROOT / "docs"
PAGES = sorted(page for page in DOCS.rglob("*.md") if "_build" not in page.parts)
GENERATED = {DOCS / "reference", DOCS / "appendix"}
GLOSSARY = DOCS / "reference" / "glossary.md"
WRITTEN = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(page for page in PAGES if page.parent not in GENERATED),
    GLOSSARY,
]
ALL_PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "SECURITY.md",
    *PAGES,
]
LINK = re.compile(r"\]\((?!https?://|#)([^)#\s]+)")
LAYERS = (
    "mockbroker|mockbroker_protocol|mockbroker_fixtures|api|core|handlers|server|admin|cli|client"
)
ROOM = re.compile(rf"`((?:{LAYERS})/[\w/]+(?:\.py|/))`(?: `([\w.]+)`)?")
SOURCES = ("", "mockbroker", "protocol", "fixtures")


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# Pages whose examples run in tests/spark, on one session of Spark, and in tests/examples.
ELSEWHERE = {
    "docs/howto/spark.md",
    "docs/examples/clients/README.md",
    "docs/examples/orders/README.md",
}

RUNNABLE = [
    page
    for page in WRITTEN
    if name_of(page) not in ELSEWHERE
    and any(block.language in {"console", "python"} for block in blocks_of(page.read_text()))
]


# Rows of the checklist that the examples of a page show.
SHOWN = {
    "docs/cookbook/clients.md": (
        "S53",
        "S75",
        "S91",
        "S104",
        "S107",
        "S245",
        "S278",
        "S279",
        "S185",
        "S340",
        "S349",
        "S351",
        "S352",
    ),
    "docs/cookbook/cluster.md": (
        "S69",
        "S74",
        "S87",
        "S127",
        "S128",
        "S136",
        "S177",
        "S180",
        "S184",
        "S212",
        "S216",
        "S223",
        "S254",
    ),
    "docs/howto/applications.md": ("S258", "S265", "S341", "S342", "S344", "S345"),
    "docs/explanation/exactly-once.md": ("S172", "S246", "S249", "S255"),
}

# Pages whose examples take more than ten seconds.
LONG = (
    "docs/cookbook/clients.md",
    "docs/cookbook/cluster.md",
    "docs/cookbook/queues.md",
    "docs/explanation/exactly-once.md",
    "docs/howto/applications.md",
    "docs/howto/pytest.md",
)


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            marks=(
                pytest.mark.covers(*SHOWN.get(name_of(page), ())),
                *((pytest.mark.slow,) if name_of(page) in LONG else ()),
            ),
        )
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


@pytest.mark.parametrize("page", WRITTEN, ids=name_of)
def test_no_page_shows_the_core_to_which_there_is_no_stable_interface(page: Path):
    """Examples use the public API: `kafka.call(…)` is for the project's own tests."""
    assert re.findall(r"\.call\(", page.read_text(encoding="utf-8")) == []


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


def test_the_table_of_what_is_where_stays_short():
    """Forty questions: a longer table would be read by nobody."""
    text = (DOCS / "explanation" / "architecture.md").read_text(encoding="utf-8")
    table = text[text.index("## Where to find it") : text.index("## Decisions")]
    questions = re.findall(r"^\| (?!question)([A-Z].*?\?) \|", table, re.MULTILINE)
    assert 30 < len(questions) <= 40
    assert len(set(questions)) == len(questions)


# `*noun*`, as the docstrings of packages define their terms.
NOUN = re.compile(r"(?<![*\w])\*([A-Za-z][\w -]*)\*(?!\*)")


def terms() -> list[str]:
    """The first column of the glossary's tables, without abbreviations in brackets."""
    rows = re.findall(r"^\| ([^|]+?) \|", GLOSSARY.read_text(encoding="utf-8"), re.MULTILINE)
    return [row.partition(" (")[0].lower() for row in rows if row != "term"]


def test_the_glossary_has_each_noun_that_a_package_defines():
    defined = terms()
    missing = []
    for source in (ROOT / "mockbroker", ROOT / "protocol", ROOT / "fixtures"):
        for package in sorted(source.rglob("__init__.py")):
            words = ast.get_docstring(ast.parse(package.read_text(encoding="utf-8"))) or ""
            missing += [
                f"{package.parent.relative_to(ROOT)}: {noun}"
                for noun in NOUN.findall(" ".join(words.split()))
                if noun.lower() not in defined and noun.lower().removesuffix("s") not in defined
            ]
    assert missing == []


def test_each_term_of_the_glossary_stands_once_in_order_and_names_a_module():
    text = GLOSSARY.read_text(encoding="utf-8")
    sections = [re.findall(r"^\| (.+) \|$", part, re.MULTILINE) for part in text.split("\n## ")[1:]]
    assert len(terms()) == len(set(terms()))
    for header, *rows in sections:
        assert header.startswith("term | meaning | ")
        names = [row.partition(" | ")[0].lower() for row in rows]
        assert names == sorted(names)
        assert [row for row in rows if ROOM.search(row.rpartition(" | ")[2]) is None] == []


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
        env=os.environ | {"PYTHONPATH": "."},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
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


def test_an_example_that_hangs_fails_its_page_with_its_output(tmp_path: Path):
    page = PageRunner(tmp_path, timeout_s=5)
    with pytest.raises(AssertionError, match=r"(?s)begun.*not ended after 5 s"):
        page.run(Block(1, "console", "$ echo begun; sleep 600\n"))


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
