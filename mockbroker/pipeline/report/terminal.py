"""A report in a terminal: a line for each rule, the findings, and the gaps."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mockbroker.pipeline.findings import BUG, REPORT
from mockbroker.pipeline.report.model import BUGS, NOT_APPLICABLE, NOTHING, Report, by_evidence
from mockbroker.pipeline.report.words import (
    commits_unattributed,
    place,
    printable,
    records_without_id,
    sentence,
    several,
)

if TYPE_CHECKING:
    from rich.console import Console

# The listed findings of each rule.
LISTED_MAX = 5
_STYLES = {BUGS: "bold red", NOTHING: "green", NOT_APPLICABLE: "dim"}


def verdict(report: Report) -> str:
    """The report in one line."""
    counts = (
        (report.count(BUG), "bug", "bugs"),
        (report.count(REPORT), "report", "reports"),
        (len(report.undecided), "undecided finding", "undecided findings"),
    )
    counted = [several(count, one, more) for count, one, more in counts if count]
    found = ", ".join(counted) or "nothing found"
    gaps = not_checked(report)
    if gaps:
        more = f"; and {len(gaps) - 1} more" if len(gaps) > 1 else ""
        return f"{found}; not checked: {gaps[0]}{more}"
    return found if counted else "clean: nothing found"


def not_checked(report: Report) -> list[str]:
    """The unchecked items with their reasons, a line each."""
    several_runs = len(report.runs) > 1
    lines = [
        f"the rest of run {printable(run.run)}, which is not complete"
        f"{': ' + printable(run.reason) if run.reason else ''}"
        for run in report.incomplete
    ]
    for gap in report.gaps[:LISTED_MAX]:
        why = f": {printable(gap.reason)}" if gap.reason else ""
        entries = (
            f"entry {gap.first_seq}"
            if gap.first_seq == gap.last_seq
            else f"entries {gap.first_seq} to {gap.last_seq}"
        )
        lines.append(f"{entries} of run {printable(gap.run)}, which the journal lacks{why}")
    if len(report.gaps) > LISTED_MAX:
        lines.append(f"{several(len(report.gaps) - LISTED_MAX, 'more gap')} of the journal")
    for finding in report.without_id:
        of_run = f" of run {printable(finding.run)}" if several_runs else ""
        lines.append(
            f"duplicates in {printable(finding.topic)}{of_run}: {records_without_id(finding)}"
        )
    for finding in report.unattributed:
        of_run = f" of run {printable(finding.run)}" if several_runs else ""
        lines.append(
            f"commits in {printable(finding.topic)}{of_run}: {commits_unattributed(finding)}"
        )
    return lines


def listed(report: Report) -> list[str]:
    """The first findings of each rule, a line each, and the number of the others."""
    lines = []
    totals = Counter(finding.anomaly for finding in report.findings)
    seen: Counter[str] = Counter()
    for finding in report.findings:
        seen[finding.anomaly] += 1
        if seen[finding.anomaly] <= LISTED_MAX:
            run = f"{printable(finding.run)}: " if len(report.runs) > 1 else ""
            lines.append(f"{finding.verdict} {finding.anomaly}: {run}{sentence(finding)}")
        elif seen[finding.anomaly] == totals[finding.anomaly]:
            more = totals[finding.anomaly] - LISTED_MAX
            lines.append(f"  and {several(more, 'more', 'more')} of {finding.anomaly}")
    return lines


def show(report: Report, console: Console) -> None:
    """Print the report with rich."""
    from rich.table import Table
    from rich.text import Text

    for line in not_checked(report):
        console.print(Text(f"! not checked: {line}", style="yellow"))
    table = Table(box=None, pad_edge=False, header_style="bold cyan")
    for name in ("RULE", "OUTCOME", "BUGS", "REPORTS", "UNDECIDED", "EVIDENCE", ""):
        numbers = name in {"BUGS", "REPORTS", "UNDECIDED"}
        table.add_column(name, justify="right" if numbers else "left", overflow="fold")
    for each in report.outcomes:
        counts = (each.bugs, each.reports, each.undecided)
        table.add_row(
            each.anomaly,
            Text(each.outcome, style=_STYLES.get(each.outcome, "yellow")),
            *(str(count or "-") for count in counts),
            ", ".join(each.levels),
            Text(each.why, style="dim"),
        )
    console.print(table)
    for line in listed(report):
        console.print(Text(line, style="red" if line.startswith(BUG) else ""))
    console.print(Text(verdict(report), style="bold"))


def plain(report: Report) -> str:
    """The findings as text, for assertions."""
    lines = [
        verdict(report),
        *(f"! not checked: {line}" for line in not_checked(report)),
        *listed(report),
    ]
    for group in by_evidence(report.cases[:LISTED_MAX]):
        if group.timeline:
            finding = group.cases[0].finding
            more = f" and {len(group.cases) - 1} more" if len(group.cases) > 1 else ""
            lines.append(f"around {finding.anomaly} {place(finding)}".rstrip() + f"{more}:")
            lines += [
                f"  {'>' if entry.evidence else ' '} {entry.seq:>6} {entry.what}: {entry.text}"
                for entry in group.timeline
            ]
    return "\n".join(lines)
