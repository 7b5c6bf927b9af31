"""A report as plain data, independent of the engine of the findings."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, NamedTuple

from mockbroker.pipeline.findings import (
    ANOMALIES,
    APPLICATION,
    BUG,
    COMMITS,
    UNATTRIBUTED,
    UNDECIDED,
    WIRE,
    WITHOUT_ID,
    Finding,
)
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


class EvidenceEntry(NamedTuple):
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
    timeline: Sequence[EvidenceEntry] = ()
    left_out: int = 0


class SharedEvidence(NamedTuple):
    """Cases of one anomaly with the same verdict and the same part of the journal."""

    cases: Sequence[Case]

    @property
    def timeline(self) -> Sequence[EvidenceEntry]:
        return self.cases[0].timeline

    @property
    def left_out(self) -> int:
        return self.cases[0].left_out


def by_evidence(cases: Iterable[Case]) -> list[SharedEvidence]:
    """The cases in their order, put together where they share their evidence."""
    together: dict[object, list[Case]] = {}
    for case in cases:
        finding = case.finding
        bounds = (
            finding.run,
            finding.anomaly,
            finding.verdict,
            finding.first_seq,
            finding.last_seq,
        )
        key = (*bounds, tuple(case.timeline)) if case.timeline else id(case)
        together.setdefault(key, []).append(case)
    return [SharedEvidence(group) for group in together.values()]


@dataclass(frozen=True)
class Report:
    """The whole report. `measures` has rows by the names of mockbroker.pipeline.duck.MEASURES.

    `source` is the directory of the tables, `version` that of mockbroker, `made_at` the time of the
    audit, in UTC.
    """

    source: str
    engine: str
    runs: Sequence[RunManifest]
    gaps: Sequence[JournalGap]
    outcomes: Sequence[RuleOutcome]
    findings: Sequence[Finding]
    cases: Sequence[Case] = ()
    measures: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    version: str = ""
    made_at: str = ""

    def count(self, verdict: str) -> int:
        """The number of findings with this verdict."""
        return sum(finding.verdict == verdict for finding in self.findings)

    @property
    def incomplete(self) -> list[RunManifest]:
        """The incomplete runs."""
        return [run for run in self.runs if not run.complete]

    @property
    def whole(self) -> bool:
        """Whether no entry is missing: an anomaly that was not found then did not occur."""
        return not (self.gaps or self.incomplete)

    @property
    def undecided(self) -> list[Finding]:
        """The findings whose evidence lies over a gap."""
        return [
            f
            for f in self.findings
            if f.verdict == UNDECIDED and not is_without_id(f) and not is_unattributed(f)
        ]

    @property
    def without_id(self) -> list[Finding]:
        """A finding for each topic with equal records without an id."""
        return [f for f in self.findings if is_without_id(f)]

    @property
    def unattributed(self) -> list[Finding]:
        """A finding for each topic and group with commits of what several members may have read."""
        return [f for f in self.findings if is_unattributed(f)]

    def failing(self, *, bugs_only: bool = False, allow: Collection[str] = ()) -> list[Finding]:
        """The findings that count: all, or only bugs, without those of the allowed anomalies.

        With `bugs_only`, equal records without an id and reads by an unknown member do not count;
        a finding over a gap does.
        """
        counted = [f for f in self.findings if f.anomaly not in allow]
        if bugs_only:
            return [f for f in counted if f.verdict == BUG or f in self.undecided]
        return counted

    def exit_code(self, *, bugs_only: bool = False, allow: Collection[str] = ()) -> int:
        """FOUND if a finding counts; otherwise NO_VERDICT if one is undecided or entries are
        missing; else CLEAN.
        """
        failing = self.failing(bugs_only=bugs_only, allow=allow)
        if any(finding.verdict != UNDECIDED for finding in failing):
            return FOUND
        return CLEAN if self.whole and not failing else NO_VERDICT


def is_without_id(finding: Finding) -> bool:
    """Whether the finding is about equal records without an id."""
    return (finding.subject or "").startswith(WITHOUT_ID)


def is_unattributed(finding: Finding) -> bool:
    """Whether the finding says that several members may have read the committed offsets."""
    return (finding.subject or "").startswith(UNATTRIBUTED)


def check_anomalies(names: Collection[str]) -> frozenset[str]:
    """The names as a set. Raises ValueError, with the nearest name, for an unknown anomaly."""
    for name in names:
        if name not in ANOMALIES:
            near = get_close_matches(name, ANOMALIES, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(ANOMALIES)}"
            raise ValueError(f"there is no anomaly {name!r}; {hint}")
    return frozenset(names)
