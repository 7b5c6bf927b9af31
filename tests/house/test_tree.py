"""Nothing in the tree leans on one machine, one registry or the way it was written."""

from __future__ import annotations

import re
from pathlib import Path

from tests.house.lint import ROOT, our_files

# Spelt in pieces, so that this file passes its own test.
REGISTRIES = (
    "pypi" + ".org",
    "pythonhosted" + ".org",
    "npmjs" + ".org",
    "npmjs" + ".com",
    "maven" + ".org",
    "repo.maven" + ".apache",
    "proxy.golang" + ".org",
    "sum.golang" + ".org",
    "docker" + ".io",
)
MACHINE = ("/" + r"work\b", "/" + r"root\b", "/" + r"home/\w")
ORIGIN = (
    r"\bissues? #?\d",
    r"\b(a|the|this|next|later|another) issue\b",
    r"\b(AI|LLM|coding|developer'?s?|agent'?s?) session\b",
)
FORBIDDEN = re.compile("|".join([*map(re.escape, REGISTRIES), *MACHINE, *ORIGIN]), re.IGNORECASE)

# The licence is not our prose; a Dockerfile speaks of paths inside the image.
EXEMPT = {"LICENSE"}


def text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def test_nothing_names_a_registry_a_machine_or_how_it_came_about():
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match.group()}"
        for path in our_files()
        if path.name not in EXEMPT
        for number, line in enumerate(text_of(path).splitlines(), 1)
        if (match := FORBIDDEN.search(line))
    ]
    assert found == []


def test_the_patterns_find_what_they_are_for():
    for text in ("see " + "issue" + " 3", "index at " + REGISTRIES[0], "cd /" + "work/main"):
        assert FORBIDDEN.search(text)
    for text in ("fetch session issues no error", "networks", "/workers", "KAFKA-18659"):
        assert not FORBIDDEN.search(text)


def test_text_files_end_with_one_newline_and_carry_no_trailing_blanks():
    suffixes = {".py", ".md", ".toml", ".txt", ".java", ".js", ".go", ".cfg", ".yml", ""}
    wrong = []
    for path in our_files():
        if path.suffix not in suffixes or path.name in EXEMPT:
            continue
        text = text_of(path)
        if text and (not text.endswith("\n") or re.search(r"[ \t]+$", text, re.MULTILINE)):
            wrong.append(str(path.relative_to(ROOT)))
    assert wrong == []


# A module is one idea: no class is torn apart to keep its file short. Beyond this it is likely two.
SOURCE_LINES_MAX = 800
TEST_LINES_MAX = 800


def test_modules_stay_readable_in_one_sitting():
    long = {}
    for path in our_files():
        name = path.relative_to(ROOT).as_posix()
        if path.suffix == ".py" and "messages" not in path.parts:
            lines = text_of(path).count("\n")
            if lines > (TEST_LINES_MAX if name.startswith("tests/") else SOURCE_LINES_MAX):
                long[name] = lines
    assert long == {}
