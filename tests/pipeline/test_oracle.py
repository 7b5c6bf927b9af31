"""The oracle finds the planted anomalies of generated histories, and nothing else."""

from __future__ import annotations

from collections import Counter

import pytest

from mockbroker.pipeline.findings import ANOMALIES, Finding
from tests.pipeline.oracle import audit_by_force
from tests.pipeline.plants import ALONG, PLANTS, Due, made


def shape(finding: Finding) -> Due:
    return Due(*(getattr(finding, name) for name in Due._fields))


def over(finding: Finding, gap: tuple[int, int]) -> bool:
    first, last = finding.first_seq, finding.last_seq
    return first is not None and last is not None and gap[0] <= last and gap[1] >= first


@pytest.mark.parametrize("histories", [600, pytest.param(2_000, marks=pytest.mark.slow)])
def test_what_was_planted_is_found_and_nothing_else(histories: int) -> None:
    """Each plant is found, with its verdict, and there is no false alarm."""
    planted: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for number in range(histories):
        history = made(number)
        findings = audit_by_force(history.run, history.story.tables)
        shapes = {shape(finding) for finding in findings}
        due = history.due
        if history.gap is not None:  # it may have taken the verdict, never the finding
            shapes = {each._replace(verdict="") for each in shapes}
            due = frozenset(each._replace(verdict="") for each in due)
        assert due <= shapes, (history.run, history.plant, due - shapes)
        along = ALONG.get(history.plant or "", set())
        stray = {each for each in shapes - due if each.anomaly not in along}
        assert not stray, (history.run, history.plant, stray)
        planted[history.plant or "nothing"] += bool(history.due)
        seen.update(finding.anomaly for finding in findings)
    assert set(seen) == set(ANOMALIES)
    assert all(planted[name] >= histories // 75 for name in PLANTS), planted


def test_over_a_gap_there_is_no_verdict() -> None:
    """A finding whose evidence spans a gap is undecided, and one that nothing decides; no other."""
    undecided = 0
    for number in range(500):
        history = made(number)
        for finding in audit_by_force(history.run, history.story.tables):
            if finding.first_seq is None:
                continue
            lacks = history.gap is not None and over(finding, history.gap)
            nothing_decides = (finding.subject or "").startswith(("without-id:", "unattributed:"))
            assert (finding.verdict == "undecided") is (lacks or nothing_decides)
            undecided += lacks
    assert undecided > 10
