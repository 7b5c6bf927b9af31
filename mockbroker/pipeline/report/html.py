"""A report as one self-contained page of HTML."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

from mockbroker.extras import missing
from mockbroker.pipeline.findings import ANOMALIES, BUG, REPORT, UNDECIDED
from mockbroker.pipeline.report.model import CLEAN, FOUND, Report, SharedEvidence, by_evidence
from mockbroker.pipeline.report.plots import plots
from mockbroker.pipeline.report.terminal import not_checked, verdict
from mockbroker.pipeline.report.words import at, day, evidence, printable, sentence, several
from mockbroker.pipeline.store import StoreError

if TYPE_CHECKING:
    import jinja2

_TITLE = "Audit of a Kafka cluster"


def page(report: Report) -> str:
    """The page. Raises StoreError if Jinja is not installed."""
    of_anomaly: dict[str, list[SharedEvidence]] = {name: [] for name in ANOMALIES}
    for group in by_evidence(report.cases):
        of_anomaly[group.cases[0].finding.anomaly].append(group)
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
        cases={name: of_anomaly[name] for name in sorted(of_anomaly, key=_rank(of_anomaly))},
        totals=Counter(finding.anomaly for finding in report.findings),
        shown={name: sum(len(g.cases) for g in some) for name, some in of_anomaly.items()},
        definitions=definitions(),
        plots=plots(report),
        several_runs=len(report.runs) > 1,
    )


def _rank(of_anomaly: Mapping[str, Sequence[SharedEvidence]]) -> Callable[[str], int]:
    """Anomalies with bugs come first, those with open questions last."""
    order = (BUG, REPORT, UNDECIDED)

    def rank(anomaly: str) -> int:
        verdicts = {group.cases[0].finding.verdict for group in of_anomaly[anomaly]}
        return min((order.index(each) for each in verdicts), default=len(order))

    return rank


@cache
def definitions() -> Mapping[str, Sequence[str]]:
    """Anomaly -> the paragraphs of its definition, as plain text with terms in backticks."""
    text = resources.files("mockbroker.pipeline.report").joinpath("definitions.md")
    found = {}
    for section in text.read_text(encoding="utf-8").split("### ")[1:]:
        name, _, body = section.partition("\n")
        found[name] = [" ".join(part.split()) for part in body.strip().split("\n\n")]
    return found


def _terms(text: str) -> list[tuple[bool, str]]:
    """A text in pieces, and whether each is a term in backticks."""
    return [(number % 2 == 1, piece) for number, piece in enumerate(text.split("`")) if piece]


@cache
def _template() -> jinja2.Template:
    try:
        import jinja2
    except ImportError:
        raise StoreError(missing("the page needs", "jinja2")) from None
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        shown=printable,
        at=at,
        day=day,
        sentence=sentence,
        evidence=evidence,
        terms=_terms,
        several=several,
    )
    text = resources.files("mockbroker.pipeline.report").joinpath("page.html.j2")
    return environment.from_string(text.read_text(encoding="utf-8"))
