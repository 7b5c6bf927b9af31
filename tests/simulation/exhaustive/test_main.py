"""The program: what it prints, and its exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.exhaustive.__main__ import main
from tests.simulation.exhaustive.counts import read_counts


def test_it_tells_how_far_it_went_and_writes_the_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "counts.json"
    arguments = ["--machine", "classic-group", "--depth", "2", "--counts", str(path)]
    assert main(arguments) == 0
    counts = read_counts(path)["classic-group"]
    out = capsys.readouterr().out
    assert out.startswith(f"classic-group: depth 2, {counts.states:,} states, ")


def test_a_violation_is_shown_with_its_steps_and_is_not_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "counts.json"
    assert main(["--machine", "replicas-hw", "--counts", str(path)]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[-1] == "violated: a replica in the ISR has all committed records"
    assert not path.exists()


def test_machines_that_are_not_there_are_refused(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit):
        main(["--machine", "perpetuum-mobile"])
    assert "invalid choice" in capsys.readouterr().err
