"""Type checkers accept right uses of the Python API and refuse each wrong one."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

TYPED = Path(__file__).parent / "typed"
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


def mypy(project: Path, sample: str) -> list[int]:
    """The lines of a sample with errors."""
    command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
    command += ["--no-error-summary", "--hide-error-context", "--cache-dir", "mypy-cache"]
    done = subprocess.run(
        [*command, sample],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        env={"MYPYPATH": str(project / "site"), "PATH": ""},
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = [line for line in done.stdout.splitlines() if ": error:" in line]
    assert all(line.startswith(f"{sample}:") for line in found), done.stdout
    return sorted({int(line.split(":")[1]) for line in found})


def pyright(project: Path, sample: str) -> list[int]:
    """The lines of a sample with errors."""
    settings = {"include": [sample], "extraPaths": ["site"], "typeCheckingMode": "strict"}
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
    return sorted({each["range"]["start"]["line"] + 1 for each in found})


@pytest.mark.parametrize("check", [mypy, pyright])
def test_a_right_sample_has_no_errors(project: Path, check) -> None:
    assert check(project, "right.py") == []


@pytest.mark.parametrize("check", [mypy, pyright])
def test_each_wrong_line_is_an_error(project: Path, check) -> None:
    assert check(project, "wrong.py") == marked_lines()


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_is_marked_as_typed(package: str) -> None:
    assert (ROOT / package / "py.typed").exists()
