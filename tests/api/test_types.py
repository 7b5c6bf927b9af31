"""Type checkers accept right uses of the Python API and refuse each wrong one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

TYPED = Path(__file__).parent / "typed"
SAMPLES = ("right.py", "wrong.py")
ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("mockbroker", "protocol/mockbroker_protocol", "fixtures/mockbroker_fixtures")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The sample beside the packages, as in a directory where they are installed."""
    site = tmp_path / "site"
    site.mkdir()
    for package in PACKAGES:
        (site / Path(package).name).symlink_to(ROOT / package)
    for sample in TYPED.glob("*.py"):
        shutil.copy(sample, tmp_path)
    return tmp_path


def marked_lines() -> list[int]:
    lines = (TYPED / "wrong.py").read_text().splitlines()
    return [number for number, line in enumerate(lines, 1) if line.endswith("# wrong")]


Errors = dict[str, list[int]]
"""The lines with errors, by sample. Both are checked at once: our packages take longest."""


def mypy(project: Path) -> Errors:
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
    command += ["--no-error-summary", "--hide-error-context", "--cache-dir", "mypy-cache"]
    done = subprocess.run(
        [*command, *SAMPLES],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        env={"MYPYPATH": str(project / "site"), "PATH": ""},
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = [line.split(":") for line in done.stdout.splitlines() if ": error:" in line]
    assert {file for file, *_ in found} <= set(SAMPLES), done.stdout
    return by_sample((file, int(line)) for file, line, *_ in found)


def pyright(project: Path) -> Errors:
    settings = {"include": [*SAMPLES], "extraPaths": ["site"], "typeCheckingMode": "strict"}
    (project / "pyrightconfig.json").write_text(json.dumps(settings))
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = json.loads(done.stdout)["generalDiagnostics"]
    return by_sample(
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1) for each in found
    )


def by_sample(found: Iterable[tuple[str, int]]) -> Errors:
    places = set(found)
    return {sample: sorted(line for file, line in places if file == sample) for sample in SAMPLES}


@pytest.mark.parametrize("check", [mypy, pyright])
def test_right_uses_pass_and_each_wrong_line_is_an_error(
    project: Path, check: Callable[[Path], Errors]
) -> None:
    assert check(project) == {"right.py": [], "wrong.py": marked_lines()}


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_is_marked_as_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").exists()
