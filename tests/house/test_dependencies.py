"""What a file of tests depends on is found in its imports, its strings and its folder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.house.lint import ROOT
from tests.support.dependencies import Dependencies

FILES = {
    "mockbroker/log.py": "OPEN = 1",
    "docs/trust.md": "figures",
    "tests/__init__.py": "",
    "tests/conftest.py": "from tests.support import policy",
    "tests/durations.json": "{}",
    "tests/corpus/seed.bin": "data",
    "tests/support/__init__.py": "",
    "tests/support/policy.py": "SKIPS = 0",
    "tests/support/http.py": "from tests.support import sockets",
    "tests/support/sockets.py": "PORT = 0",
    "tests/support/child.py": "print(1)",
    "tests/admin/__init__.py": "",
    "tests/admin/conftest.py": "SIZE = 1",
    "tests/admin/test_pages.py": "from tests.support.http import sockets",
    "tests/admin/test_rows.py": "",
    "tests/admin/pages/start.py": "import_module(f'{__package__}.{name}')",
    "tests/cli/__init__.py": "",
    "tests/cli/test_serve.py": "CHILD = 'python -m tests.support.child'",
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "tests")  # which is the project's, and would be found first
    return tmp_path


def test_imports_and_names_are_followed(root: Path) -> None:
    dependencies = Dependencies(root)
    common = {"tests", "tests.conftest", "tests.support", "tests.support.policy"}
    pages = dependencies.modules(root / "tests/admin/test_pages.py")
    assert pages == common | {
        "tests.admin",
        "tests.admin.conftest",
        "tests.admin.pages.start",
        "tests.admin.test_pages",
        "tests.support.http",
        "tests.support.sockets",
    }
    serve = dependencies.modules(root / "tests/cli/test_serve.py")
    assert serve == common | {"tests.cli", "tests.cli.test_serve", "tests.support.child"}


@pytest.mark.parametrize(
    ("changed", "depend"),
    [
        ("mockbroker/log.py", {"test_pages", "test_serve"}),
        ("tests/support/policy.py", {"test_pages", "test_serve"}),
        ("tests/corpus/seed.bin", {"test_pages", "test_serve"}),
        ("tests/admin/conftest.py", {"test_pages"}),
        ("tests/admin/pages/start.py", {"test_pages"}),
        ("tests/admin/test_rows.py", set()),
        ("tests/support/sockets.py", {"test_pages"}),
        ("tests/support/child.py", {"test_serve"}),
        ("tests/cli/test_serve.py", {"test_serve"}),
        ("tests/durations.json", set()),
        ("docs/trust.md", set()),
    ],
)
def test_the_hash_changes_with_what_a_file_depends_on(
    root: Path, changed: str, depend: set[str]
) -> None:
    files = (root / "tests/admin/test_pages.py", root / "tests/cli/test_serve.py")
    before = [Dependencies(root).hash_of(file) for file in files]
    assert before == [Dependencies(root).hash_of(file) for file in files]
    (root / changed).write_text("ANOTHER = 2")
    after = [Dependencies(root).hash_of(file) for file in files]
    assert {file.stem for file, a, b in zip(files, before, after, strict=True) if a != b} == depend


def test_every_file_of_tests_of_the_project_has_a_hash() -> None:
    dependencies = Dependencies(ROOT)
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    hashes = {dependencies.hash_of(file) for file in files}
    assert len(hashes) == len(files) > 700
