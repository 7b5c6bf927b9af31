"""A report as one self-contained page of HTML."""

from __future__ import annotations

from collections import Counter
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from mockbroker.pipeline.findings import ANOMALIES, BUG
from mockbroker.pipeline.report.model import CLEAN, FOUND, Case, Report
from mockbroker.pipeline.report.plots import plots
from mockbroker.pipeline.report.terminal import not_checked, verdict
from mockbroker.pipeline.report.words import at, day, evidence, printable, sentence
from mockbroker.pipeline.store import StoreError

if TYPE_CHECKING:
    import jinja2

_TITLE = "Audit of a Kafka cluster"


def page(report: Report) -> str:
    """The page. Raises StoreError if Jinja is not installed."""
    of_anomaly: dict[str, list[Case]] = {name: [] for name in ANOMALIES}
    for case in report.cases:
        of_anomaly[case.finding.anomaly].append(case)
    state = {CLEAN: "clean", FOUND: "reports"}.get(report.exit_code(), "undecided")
    if report.count(BUG):
        state = "bugs"
    return _template().render(
        report=report,
        headline=_TITLE,
        state=state,
        verdict=verdict(report),
        not_checked=not_checked(report),
        meaning=ANOMALIES,
        cases={name: some for name, some in of_anomaly.items() if some},
        totals=Counter(finding.anomaly for finding in report.findings),
        plots=plots(report),
        several_runs=len(report.runs) > 1,
    )


@cache
def _template() -> jinja2.Template:
    try:
        import jinja2
    except ImportError:
        raise StoreError("the page needs Jinja: pip install 'mockbroker[pipeline]'") from None
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        shown=printable, at=at, day=day, sentence=sentence, evidence=evidence
    )
    text = resources.files("mockbroker.pipeline.report").joinpath("page.html.j2")
    return environment.from_string(text.read_text(encoding="utf-8"))
