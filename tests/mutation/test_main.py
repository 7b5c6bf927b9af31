"""The rates, what is taken over from a run before, and the list of equivalent mutants."""

from __future__ import annotations

import json
from pathlib import Path

from tests.house.lint import ROOT
from tests.mutation import judge
from tests.mutation.__main__ import EQUAL, equivalents, former, place, rates

MUTANT = {"path": "a.py", "line": 1, "operator": "AddNot", "before": "if a:", "after": "if not a:"}


def verdicts(package: str, *found: str) -> list[dict[str, str]]:
    return [{"package": package, "verdict": each} for each in found]


def test_equivalent_mutants_do_not_count() -> None:
    found = verdicts("log", judge.KILLED, judge.OUT_OF_TIME, judge.SURVIVED, EQUAL, judge.KILLED)
    assert rates(found) == {"log": 0.75}


def test_survivors_of_a_run_before_are_judged_anew(tmp_path: Path) -> None:
    file = tmp_path / "mutants.jsonl"
    killed, survived = ({**MUTANT, "line": n} for n in (1, 2))
    lines = [{**killed, "verdict": judge.KILLED}, {**survived, "verdict": judge.SURVIVED}]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert list(former(file)) == [place(killed)]
    assert former(tmp_path / "none") == {}


def test_each_equivalent_mutant_is_one_of_a_line_that_there_is_and_has_a_reason() -> None:
    for (path, before, after), why in equivalents().items():
        lines = [line.strip() for line in (ROOT / path).read_text("utf-8").splitlines()]
        assert before in lines, (path, before)
        assert before != after
        assert len(why) > 20
