"""The page, JSON, JUnit and the terminal."""

from __future__ import annotations

import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console

from mockbroker.pipeline.report.charts import Interval, Point, bars, lanes, lines
from mockbroker.pipeline.report.formats import as_json, as_junit
from mockbroker.pipeline.report.html import page
from mockbroker.pipeline.report.model import JournalGap, Report
from mockbroker.pipeline.report.plots import plots
from mockbroker.pipeline.report.terminal import show
from mockbroker.pipeline.report.words import printable, sentence
from tests.pipeline.duck.journal import Journal
from tests.pipeline.report.reports import HOSTILE, finding, lossy, plain_report, report_of

VOID = {"meta", "br", "link", "img", "hr", "input"}
ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "header", "h1", "h2", "h3", "p", "div",
    "strong", "em", "span", "section", "table", "thead", "tbody", "tr", "th", "td", "code", "br",
    "details", "summary", "dl", "dt", "dd", "figure", "figcaption", "svg", "path", "line", "rect",
    "text",
}  # fmt: skip


class Page(HTMLParser):
    """Checks that elements nest, and gathers what there is."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.words.append(data)

    @property
    def said(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return report_of(lossy(), tmp_path_factory.mktemp("lost"))


def hostile(journal: Journal) -> Journal:
    """The same journal, by people who call everything something else."""
    for rows in journal.tables.values():
        for row in rows:
            for name, value in row.items():
                if isinstance(value, str) and name not in {"reason", "state", "former", "protocol"}:
                    row[name] = value + HOSTILE
                elif isinstance(value, list):
                    row[name] = [each + HOSTILE for each in value]
    return journal


def test_the_page_tells_the_finding_its_proof_and_its_cause(lost: Report) -> None:
    """It stands alone: no script, nothing fetched, light and dark."""
    text = page(lost)
    seen = Page(text)
    assert "lost_write" in seen.said
    assert "because of bad-night" in seen.said
    assert "offsets 1 to 1 removed: unclean_election" in seen.said
    assert "prefers-color-scheme: dark" in text
    assert seen.tags <= ALLOWED
    assert not {name for name, _ in seen.attributes} & {"src", "href"}
    assert "http" not in text.replace("http-equiv", "")


@pytest.mark.covers("S311")
def test_the_page_draws_what_was_measured(lost: Report) -> None:
    """Lag both ways, who owned which partition, rebalances, latency, faults, skew."""
    made = {plot.title: plot for plot in plots(lost)}
    assert list(made) == [
        "Lag", "Rebalances", "Who owned which partition", "Latency", "Faults and what they did",
        "Skew",
    ]  # fmt: skip
    [(_, drawing)] = made["Who owned which partition"].drawings
    assert "<title>m of generation 1" in drawing
    assert "<title>rebalance 1: m joins</title>" in drawing
    assert "stroke-dasharray" in made["Lag"].drawings[0][1]
    assert made["Lag"].rows[0][-2:] == ["1", "0"]


def test_nobody_writes_into_the_page(tmp_path: Path) -> None:
    """Names of topics, clients, groups, rules and ids are shown, never obeyed."""
    text = page(report_of(hostile(lossy()), tmp_path))
    seen = Page(text)
    assert "script" not in seen.tags
    assert seen.tags <= ALLOWED
    assert "<script>alert(1)</script>" in seen.said
    assert not set(text) & {"\x1b", "\u202e", "\x00"}


def test_nobody_writes_into_the_drawings() -> None:
    """They are well-formed whatever names there are."""
    drawings = [
        lines({HOSTILE: [Point(1, 2), Point(5, None), Point(9, 1)]}),
        bars({HOSTILE: 3}),
        lanes({HOSTILE: [Interval(HOSTILE, 1, 90, HOSTILE)]}, {HOSTILE: 5}),
    ]
    for drawing in drawings:
        assert not [e for e in ElementTree.fromstring(drawing).iter() if e.tag == "script"]


def test_a_drawing_of_much_stays_small_and_keeps_the_peak() -> None:
    """Points that stand together are thinned out; the highest is kept."""
    line = [Point(n, 1_000 if n == 33_333 else n % 7) for n in range(100_000)]
    drawing = lines({"a": line})
    assert len(drawing) < 20_000
    assert f"{1_000:,}" in drawing


def test_what_is_missing_stands_at_the_top() -> None:
    """Before any outcome, and in every form."""
    report = plain_report(gaps=(JournalGap("r", 30, 40, "forgotten"),), complete=False)
    seen = Page(page(report)).said
    assert seen.index("Not checked") < seen.index("Rules")
    assert "entries 30 to 40 of run r, which the journal lacks: forgotten" in seen
    told = json.loads(as_json(report))
    assert told["whole"] is False
    assert len(told["not_checked"]) == 2
    assert "not checked: entries 30 to 40 of run r" in as_junit(report)
    assert text_of(report).startswith("! not checked: the rest of run r, which is not complete")


def text_of(report: Report) -> str:
    console = Console(file=io.StringIO(), width=200, highlight=False)
    show(report, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_json_holds_everything_that_was_found(lost: Report) -> None:
    """With the columns of a finding, and what was measured."""
    told = json.loads(as_json(lost))
    [found] = told["findings"]
    assert (found["anomaly"], found["rule"], found["first_seq"]) == ("lost_write", "bad-night", 10)
    assert told["exit_code"] == 1
    assert json.loads(as_json(lost, bugs_only=True))["exit_code"] == 0  # a rule did it
    assert {row["partition"] for row in told["measures"]["skew"]} == {0}
    assert {outcome["outcome"] for outcome in told["outcomes"]} == {
        "reports", "clean", "not applicable"
    }  # fmt: skip


def test_junit_has_a_test_case_for_each_rule() -> None:
    """Failed, in error where it cannot decide, skipped, or passed with what is allowed."""
    report = plain_report(
        finding(subject=f"client:{HOSTILE}"),
        finding("read_again", "report"),
        finding("skip", "undecided"),
        lacking="torn_transaction",
    )
    suite = ElementTree.fromstring(as_junit(report, allow=["read_again"]))[0]
    cases = {case.get("name"): [child.tag for child in case] for case in suite.iter("testcase")}
    assert len(cases) == 18
    assert cases["lost_write"] == ["failure"]
    assert cases["read_again"] == ["system-out"]
    assert cases["skip"] == ["error"]
    assert cases["torn_transaction"] == ["skipped"]
    assert cases["duplicate"] == []
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == [
        "18", "1", "1", "1"
    ]  # fmt: skip
    for settings, failures in (({}, "2"), ({"bugs_only": True}, "1")):
        suite = ElementTree.fromstring(as_junit(report, **settings))[0]
        assert suite.get("failures") == failures


def test_the_terminal_is_not_steered_by_names() -> None:
    """No escape sequence, no turned writing gets through."""
    said = text_of(plain_report(finding(topic=HOSTILE, subject=HOSTILE, rule=HOSTILE)))
    assert not re.search(r"[\x00\x1b\u202e]", said)
    assert "lost_write" in said


def test_a_finding_in_one_line() -> None:
    """Where, what, who, the proof and the cause."""
    assert sentence(finding(rule="bad-night")) == (
        "t-0 offset 7: a record was acknowledged and is not in the log; client:c; "
        "entries 10 to 20; because of bad-night"
    )
    assert sentence(finding("torn_transaction", topic=None, offset=None, last_seq=10)) == (
        "some partitions of a transaction were committed, others were not; client:c; entry 10"
    )


def test_printable_text_shows_what_cannot_be_seen() -> None:
    """By its code; and cuts what is long."""
    assert printable("a\x1b\u202eb") == "a\\u001b\\u202eb"
    assert printable("é漢🙂") == "é漢🙂"
    assert printable("x" * 300, 10) == "x" * 9 + "…"
