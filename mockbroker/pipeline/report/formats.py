"""A report for programs: JSON, and JUnit XML for CI."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict
from xml.etree import ElementTree

from mockbroker.pipeline.findings import ANOMALIES, Finding
from mockbroker.pipeline.report.model import NOT_APPLICABLE, UNKNOWN, Report, RuleOutcome
from mockbroker.pipeline.report.terminal import not_checked, verdict
from mockbroker.pipeline.report.words import printable, sentence

JSON_VERSION = 2
# The number of findings in one test case of JUnit.
_LISTED_MAX = 50


def as_json(report: Report, *, bugs_only: bool = False, allow: Collection[str] = ()) -> str:
    """Everything but the timelines: runs, gaps, outcomes, all findings, and measurements.

    `bugs_only` and `allow` as in `Report.exit_code`.
    """
    return json.dumps(
        {
            "version": JSON_VERSION,
            "verdict": verdict(report),
            "whole": report.whole,
            "not_checked": not_checked(report),
            "exit_code": report.exit_code(bugs_only=bugs_only, allow=allow),
            "engine": report.engine,
            "runs": [asdict(run) for run in report.runs],
            "gaps": [gap._asdict() for gap in report.gaps],
            "outcomes": [outcome._asdict() for outcome in report.outcomes],
            "findings": [finding._asdict() for finding in report.findings],
            "measures": {name: list(rows) for name, rows in report.measures.items()},
        },
        indent=1,
    )


def as_junit(report: Report, *, bugs_only: bool = False, allow: Collection[str] = ()) -> str:
    """A test case for each rule: failed, in error if it is undecided, or skipped.

    `bugs_only` and `allow` as in `Report.exit_code`.
    """
    failing = {f.anomaly for f in report.failing(bugs_only=bugs_only, allow=allow)}
    suite = ElementTree.Element("testsuite", name="mockbroker.audit")
    counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for outcome in report.outcomes:
        case = ElementTree.SubElement(
            suite, "testcase", classname="mockbroker.audit", name=outcome.anomaly
        )
        counts["tests"] += 1
        mine = [finding for finding in report.findings if finding.anomaly == outcome.anomaly]
        kind = _kind(outcome, outcome.anomaly in failing, bugs_only=bugs_only, whole=report.whole)
        if kind is not None:
            counts[kind[1]] += 1
            said = ElementTree.SubElement(case, kind[0], message=_message(outcome))
            said.text = _listed(mine)
        elif mine:
            ElementTree.SubElement(case, "system-out").text = _listed(mine)
    for name, count in counts.items():
        suite.set(name, str(count))
    lines = [f"not checked: {line}" for line in not_checked(report)]
    if lines:
        ElementTree.SubElement(suite, "system-err").text = "\n".join(lines)
    suites = ElementTree.Element("testsuites", {name: str(n) for name, n in counts.items()})
    suites.append(suite)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _kind(
    outcome: RuleOutcome, failing: bool, *, bugs_only: bool, whole: bool
) -> tuple[str, str] | None:
    """The element of a rule that did not pass, and the attribute that counts such elements."""
    if failing and (outcome.bugs or (outcome.reports and not bugs_only)):
        return "failure", "failures"
    if outcome.outcome == UNKNOWN and (failing or not whole):
        return "error", "errors"
    if outcome.outcome == NOT_APPLICABLE:
        return "skipped", "skipped"
    return None


def _message(outcome: RuleOutcome) -> str:
    words = [ANOMALIES[outcome.anomaly]]
    words += [
        f"{count} {name}"
        for name, count in (
            ("bugs", outcome.bugs), ("reports", outcome.reports), ("undecided", outcome.undecided)
        )
        if count
    ]  # fmt: skip
    return "; ".join([*words, outcome.why] if outcome.why else words)


def _listed(findings: list[Finding]) -> str:
    lines = [
        f"{finding.verdict}: {printable(finding.run)}: {sentence(finding)}"
        for finding in findings[:_LISTED_MAX]
    ]
    if len(findings) > _LISTED_MAX:
        lines.append(f"and {len(findings) - _LISTED_MAX} more")
    return "\n".join(lines)
