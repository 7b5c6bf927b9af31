"""A report in a terminal: a line for each rule, the findings, and what is missing."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from mockbroker.pipeline.findings import BUG, REPORT, UNDECIDED
from mockbroker.pipeline.report.model import BUGS, NOT_APPLICABLE, NOTHING, Report
from mockbroker.pipeline.report.words import place, printable, sentence, several

if TYPE_CHECKING:
    from rich.console import Console

# The listed findings of each rule.
LISTED_MAX = 5
_STYLES = {BUGS: "bold red", NOTHING: "green", NOT_APPLICABLE: "dim"}


def verdict(report: Report) -> str:
    """The report in one line."""
    counts = {name: report.count(name) for name in (BUG, REPORT, UNDECIDED)}
    counted = [
        several(counts[name], one, more)
        for name, one, more in (
            (BUG, "bug", "bugs"),
            (REPORT, "report", "reports"),
            (UNDECIDED, "undecided finding", "undecided findings"),
        )
        if counts[name]
    ]
    found = ", ".join(counted) or "nothing found"
    if report.whole:
        return "clean: nothing found" if not counted else found
    return f"{found}; not everything is known"


def missing(report: Report) -> list[str]:
    """The missing parts of the runs, a line each."""
    lines = [
        f"run {printable(run.run)} is not complete"
        f"{': ' + printable(run.reason) if run.reason else ''}"
        for run in report.incomplete
    ]
    for gap in report.gaps[:LISTED_MAX]:
        why = f": {printable(gap.reason)}" if gap.reason else ""
        lines.append(
            f"run {printable(gap.run)} lacks entries {gap.first_seq} to {gap.last_seq}{why}"
        )
    if len(report.gaps) > LISTED_MAX:
        lines.append(f"{several(len(report.gaps) - LISTED_MAX, 'more gap', 'more gaps')}")
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

    for line in missing(report):
        console.print(Text(f"! {line}", style="yellow"))
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
    lines = [verdict(report), *(f"! {line}" for line in missing(report)), *listed(report)]
    for case in report.cases[:LISTED_MAX]:
        if case.timeline:
            lines.append(f"around {case.finding.anomaly} {place(case.finding)}:".replace(" :", ":"))
            lines += [
                f"  {'>' if entry.evidence else ' '} {entry.seq:>6} {entry.what}: {entry.text}"
                for entry in case.timeline
            ]
    return "\n".join(lines)
