"""A report as plain data, independent of the engine of the findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from mockbroker.pipeline.findings import APPLICATION, BUG, COMMITS, REPORT, UNDECIDED, WIRE, Finding
from mockbroker.pipeline.store import RunManifest

# The outcomes of a rule.
BUGS, REPORTS, NOTHING, UNKNOWN, NOT_APPLICABLE = (
    "bugs",
    "reports",
    "clean",
    "undecided",
    "not applicable",
)

# Exit codes.
CLEAN, FOUND, NO_VERDICT = 0, 1, 2

# Rule -> the basis of its verdicts.
LEVELS: Mapping[str, tuple[str, ...]] = {
    "lost_write": (WIRE, APPLICATION),
    "non_monotonic_send": (WIRE, APPLICATION),
    "commit_regression": (COMMITS,),
    "committed_not_read": (COMMITS,),
    "zombie_commit": (COMMITS,),
    "committed_not_processed": (APPLICATION,),
    "processed_again": (APPLICATION,),
}

Row = Mapping[str, Any]


class JournalGap(NamedTuple):
    """Entries of a run's journal that are missing."""

    run: str
    first_seq: int
    last_seq: int
    reason: str | None


class RuleOutcome(NamedTuple):
    """The outcome of one rule, its number of findings, its basis, and the reason for no verdict."""

    anomaly: str
    outcome: str
    bugs: int
    reports: int
    undecided: int
    levels: tuple[str, ...]
    why: str


class TimelineEntry(NamedTuple):
    """An entry of the journal near a finding; `evidence` if it belongs to the proof."""

    seq: int
    virtual_ms: int | None
    what: str
    text: str
    evidence: bool


@dataclass(frozen=True)
class Case:
    """A finding, its facts, and the journal around it. `left_out` entries are not in the
    `timeline`.
    """

    finding: Finding
    facts: Sequence[tuple[str, str]] = ()
    timeline: Sequence[TimelineEntry] = ()
    left_out: int = 0


@dataclass(frozen=True)
class Report:
    """The whole report. `measures` has rows by the names of mockbroker.pipeline.duck.MEASURES."""

    directory: str
    engine: str
    runs: Sequence[RunManifest]
    gaps: Sequence[JournalGap]
    outcomes: Sequence[RuleOutcome]
    findings: Sequence[Finding]
    cases: Sequence[Case] = ()
    measures: Mapping[str, Sequence[Row]] = field(default_factory=dict)

    def count(self, verdict: str) -> int:
        """The number of findings with this verdict."""
        return sum(finding.verdict == verdict for finding in self.findings)

    @property
    def incomplete(self) -> list[RunManifest]:
        """The incomplete runs."""
        return [run for run in self.runs if not run.complete]

    @property
    def whole(self) -> bool:
        """Whether nothing is missing, so that an anomaly without a finding did not happen."""
        return not (self.gaps or self.incomplete or self.count(UNDECIDED))

    def exit_code(self, fail_on: str = BUG) -> int:
        """CLEAN, FOUND (with `fail_on` "report" also for those), or NO_VERDICT."""
        if self.count(BUG) or (fail_on == REPORT and self.count(REPORT)):
            return FOUND
        return CLEAN if self.whole else NO_VERDICT
