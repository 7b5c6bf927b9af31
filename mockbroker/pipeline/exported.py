"""The report about an export of the journal, without tables that are kept.

`python -m mockbroker.pipeline.exported` reads the entries from standard input and writes JSON to
standard output. The admin server runs it as a process of its own, so that the cluster goes on
meanwhile. The exit code is 1 with a sentence on standard error if there is no report.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mockbroker.pipeline.report.model import Report

RUN = "this-test"
SOURCE = "the journal of a running cluster"


def report_of_export(entries: bytes, operations: Iterable[Mapping[str, Any]] = ()) -> Report:
    """The report about an export of the journal, and an application's own records: rows of the
    table `operations`. Raises StoreError without DuckDB or pyarrow.
    """
    from mockbroker.pipeline.convert.run import convert_export
    from mockbroker.pipeline.duck import judge, open_session
    from mockbroker.pipeline.report.build import build_report
    from mockbroker.pipeline.store import open_store

    with tempfile.TemporaryDirectory(prefix="mockbroker-audit-") as directory:
        convert_export(entries, Path(directory), RUN)
        _add_operations(Path(directory), operations)
        store = open_store(directory)
        with open_session(store) as session:
            return build_report(store, session, judge(session), engine="DuckDB", source=SOURCE)


def _add_operations(directory: Path, operations: Iterable[Mapping[str, Any]]) -> None:
    rows = [dict(row) for row in operations]
    if not rows:
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    from mockbroker.pipeline.store import arrow_schema

    for number, row in enumerate(rows, 1):
        row.setdefault("seq", number)
        row.setdefault("process", "application")
    file = directory / "operations" / f"run={RUN}" / "part-00000.parquet"
    file.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, arrow_schema("operations")), file)


def main() -> None:
    import msgspec

    from mockbroker.extras import missing
    from mockbroker.pipeline.store import StoreError

    try:
        report = report_of_export(sys.stdin.buffer.read())
    except StoreError as error:
        sys.exit(str(error))
    except ModuleNotFoundError as error:
        sys.exit(missing("the audit needs", error.name or "more"))
    sys.stdout.buffer.write(msgspec.json.encode(as_data(report)))


def as_data(report: Report) -> dict[str, Any]:
    """The findings of a report with their evidence, as plain data."""
    from mockbroker.pipeline.report.terminal import not_checked

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
