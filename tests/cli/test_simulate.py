"""`mockbroker simulate`: seeds that hold, a broken law, invalid plans."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mockbroker.cli import main
from mockbroker.simulation import parse_plan, simulate
from mockbroker.simulation.world import World


def play(*args: str) -> Result:
    return CliRunner().invoke(main, ["simulate", *args])


def test_a_seed_is_told_with_what_happened() -> None:
    result = play("--seed", "7")
    assert result.exit_code == 0, result.output
    assert "seed 7: " in result.output
    assert f"digest {simulate(7).digest}" in result.output
    assert "every law holds" in result.output


def test_many_seeds_are_counted() -> None:
    result = play("--seeds", "4", "--from", "6")
    assert result.exit_code == 0, result.output
    assert result.output.startswith("4 schedules in ")
    assert "batches acknowledged" in result.output


def test_processes_share_the_seeds() -> None:
    alone, shared = play("--seeds", "6"), play("--seeds", "6", "--jobs", "2")
    assert shared.exit_code == 0, shared.output
    assert alone.output.splitlines()[1:] == shared.output.splitlines()[1:]


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster that comes to rest only if nothing was done to it."""

    def unsettled(self: World) -> list[str]:
        return ["somebody did something"] if self.plan.steps else []

    monkeypatch.setattr(World, "unsettled", unsettled)


@pytest.mark.usefixtures("broken")
def test_a_broken_law_is_shrunk_and_printed_as_a_test() -> None:
    result = play("--seeds", "6")
    assert result.exit_code == 1
    assert "everything comes to rest: " in result.output
    assert "broken: everything comes to rest: somebody did something" in result.output
    assert "; 1 steps" in result.output
    test = result.output.split("A test that keeps it:\n")[1]
    names: dict[str, object] = {}
    exec(compile(test, "test", "exec"), names)
    assert len(parse_plan(names["PLAN"]).steps) == 1


@pytest.mark.usefixtures("broken")
def test_plans_and_tests_are_written_where_they_are_wanted(tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = play("--seeds", "6", "--no-shrink", "--out", str(out))
    assert result.exit_code == 1
    plan_file, test_file = sorted(out.iterdir())
    assert test_file.name == f"test_{plan_file.stem}.py"
    again = play("--plan", str(plan_file), "--no-shrink")
    assert again.exit_code == 1
    assert json.loads(plan_file.read_text())["steps"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"seed": 1, "format": 99}', "run it with the version of mockbroker that wrote it"),
        ('{"seed": 1, "steps": [{"at_ms": 1, "do": "fly"}]}', "unknown action 'fly'"),
        ("[", "is neither JSON nor YAML"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(content: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "plan.json"
    file.write_text(content)
    result = play("--plan", str(file))
    assert result.exit_code == 2
    assert said in result.output


def test_the_audit_judges_each_nth_seed() -> None:
    result = play("--seeds", "3", "--from", "6", "--audit-every", "3")
    assert result.exit_code == 0, result.output
    assert result.output.endswith("1 of 1 schedules were audited, and 0 have bugs\n")
