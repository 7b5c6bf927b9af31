"""Report on an export of the journal: entries on standard input, JSON on standard output.

The admin server runs it as a process of its own, so that the cluster goes on meanwhile. The exit
code is 1 with a sentence on standard error if there is no report.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import Any

import msgspec

from mockbroker.pipeline.report.exported import report_of_export
from mockbroker.pipeline.report.model import Report
from mockbroker.pipeline.report.terminal import not_checked
from mockbroker.pipeline.store import StoreError


def main() -> None:
    try:
        report = report_of_export(sys.stdin.buffer.read())
    except StoreError as error:
        sys.exit(str(error))
    sys.stdout.buffer.write(msgspec.json.encode(as_data(report)))


def as_data(report: Report) -> dict[str, Any]:
    """The findings of a report with their evidence, as plain data."""
    return {
        "engine": report.engine,
        "whole": report.whole,
        "not_checked": not_checked(report),
        "findings": [
            {
                **case.finding._asdict(),
                "facts": [list(fact) for fact in case.facts],
                "evidence": [entry._asdict() for entry in case.timeline],
                "left_out": case.left_out,
            }
            for case in report.cases
        ],
        "outcomes": [outcome._asdict() for outcome in report.outcomes],
        "runs": [asdict(run) for run in report.runs],
    }


if __name__ == "__main__":
    main()
