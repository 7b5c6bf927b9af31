"""The page, JSON, JUnit and the terminal."""

from __future__ import annotations

import dataclasses
import io
import json
import re
from html.parser import HTMLParser
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from rich.console import Console

from mockbroker.pipeline.findings import ANOMALIES, Finding
from mockbroker.pipeline.report.charts import (
    Bar,
    Interval,
    Lane,
    Mark,
    Point,
    Series,
    bars,
    lanes,
    lines,
)
from mockbroker.pipeline.report.formats import as_json, as_junit
from mockbroker.pipeline.report.html import definitions, page
from mockbroker.pipeline.report.model import JournalGap, Report
from mockbroker.pipeline.report.plots import plots
from mockbroker.pipeline.report.terminal import plain, show
from mockbroker.pipeline.report.words import printable, sentence
from tests.pipeline.duck.journal import Journal
from tests.pipeline.report.reports import HOSTILE, finding, lossy, plain_report, report_of

VOID = {"meta", "br", "link", "img", "hr", "input"}
ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "header", "h1", "h2", "h3", "p", "div",
    "strong", "em", "span", "section", "table", "thead", "tbody", "tr", "th", "td", "code", "br",
    "details", "summary", "dl", "dt", "dd", "figure", "figcaption", "svg", "path", "line", "rect",
    "text", "ul", "li", "a",
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
    assert "offset 1 removed: unclean_election" in seen.said
    assert "prefers-color-scheme: dark" in text
    assert seen.tags <= ALLOWED
    links = [value or "" for name, value in seen.attributes if name in {"src", "href"}]
    ids = {value for name, value in seen.attributes if name == "id"}
    assert {link.removeprefix("#") for link in links} <= ids
    assert "http" not in text.replace("http-equiv", "")


@pytest.mark.covers("S311")
def test_the_page_draws_what_was_measured(lost: Report) -> None:
    """Lag both ways, who owned which partition, rebalances, latency, faults, skew."""
    made = {plot.title: plot for plot in plots(lost)}
    assert list(made) == [
        "Lag", "Rebalances", "Who owned which partition", "Latency", "Faults and what they did",
        "Skew",
    ]  # fmt: skip
    [drawing] = made["Who owned which partition"].drawings
    assert "<title>m of generation 1" in drawing.svg
    assert "<title>rebalance 1: m joins</title>" in drawing.svg
    assert "stroke-dasharray" in made["Lag"].drawings[0].svg
    assert [cell.text for cell in made["Lag"].rows[0][-2:]] == ["1", "0"]
    legend = made["Lag"].drawings[0].legend
    assert [each.name for each in legend] == ["g t 0", "g t 0 (read_committed)"]
    heads = made["Faults and what they did"].columns
    assert {"requests recovered", "longest recovery, ms"} <= set(heads)


def report_with(measure: str, rows: list[dict[str, Any]]) -> Report:
    return dataclasses.replace(plain_report(), measures={measure: rows})


def test_clients_with_one_beginning_have_a_bar_each() -> None:
    """Spark's executors differ at the end of a long name; the slowest stands first."""
    name = "spark-kafka-source-" + "a" * 80 + "-executor-"
    rows = [
        {"run": "r", "api": "Fetch", "client_id": f"{name}{n}", "requests": 1, "p50_us": 1,
         "p90_us": 1, "p99_us": micros, "max_us": 1, "with_errors": 0, "without_answer": 0}
        for n, micros in ((1, 12_000), (2, 206), (3, 30_000))
    ]  # fmt: skip
    [plot] = plots(report_with("latency", rows))
    svg = plot.drawings[0].svg
    shown = re.findall(r'<text class="axis"[^>]*>([^<]*-executor-[^<]*)<title>([^<]*)', svg)
    assert [full for _, full in shown] == [f"Fetch {name}{n}" for n in (3, 1, 2)]
    assert [label[-3:] for label, _ in shown] == ["r-3", "r-1", "r-2"]
    assert re.findall(r"([\d.]+)</text>(?=<text|</svg>)", svg)[-3:] == ["30", "12", "0.206"]
    assert [row[1].text[-2:] for row in plot.rows] == ["-3", "-1", "-2"]
    assert plot.columns[3:7] == ["p50, µs", "p90, µs", "p99, µs", "max, µs"]


@pytest.mark.parametrize("most", [1, 3, 7, 10, 99, 1_000, 123_456])
def test_an_axis_has_few_round_ticks(most: int) -> None:
    """From 0 to the highest value or a little above, and its unit."""
    svg = lines([Series("a", [Point(0, 0), Point(90_000, most)], 0)], "records")
    texts = re.findall(r'text-anchor="end">([^<]*)</text>', svg)
    assert texts[0] == "records"
    ticks = [float(text.replace(",", "")) for text in texts[1:]]
    assert ticks[0] == 0
    assert 3 <= len(ticks) <= 8
    assert ticks[-2] < most <= ticks[-1]
    times = re.findall(r'text-anchor="middle">([^<]*)</text>', svg)
    assert times == ["00:00:00.000", "00:00:15.000", "00:00:30.000", "00:00:45.000",
                     "00:01:00.000", "00:01:15.000", "00:01:30.000"]  # fmt: skip


@pytest.mark.parametrize(
    ("findings", "state"),
    [
        ((), "clean"),
        ((finding(),), "bugs"),
        ((finding(verdict="report"),), "reports"),
        ((finding(verdict="undecided"),), "undecided"),
        ((finding(verdict="undecided"), finding()), "bugs"),
    ],
)
def test_the_bar_has_the_colour_of_the_verdict(findings: tuple[Finding, ...], state: str) -> None:
    """Reports are not green."""
    assert f'<div class="banner {state}" id="verdict">' in page(plain_report(*findings))


def test_findings_stand_before_rules_and_lead_to_their_definitions(lost: Report) -> None:
    """The definitions are those of the documentation."""
    text = page(lost)
    assert text.index('id="findings"') < text.index('id="rules"')
    assert '<a href="#rule-lost_write">' in text
    assert set(definitions()) == set(ANOMALIES)
    assert "A record is acknowledged and removed for an unwanted reason" in Page(text).said


def test_findings_that_share_evidence_print_it_once(tmp_path: Path) -> None:
    """Three records of one batch that one truncation removed."""
    journal = Journal()
    journal.batch(10, 0, 3)
    journal.removal(20, 0, 2, "truncation")
    report = report_of(journal, tmp_path)
    assert len(report.cases) == 3
    said = Page(page(report)).said
    assert said.count("offsets 0 to 2 removed") == 1
    assert "and 2 more with the same evidence" in said
    assert [said.count(f"offset {offset}") for offset in (0, 1, 2)] == [2, 1, 1]
    assert said.count("subject client:c") == 1
    assert plain(report).count("offsets 0 to 2 removed") == 1


def test_the_page_says_who_made_it_and_when(lost: Report) -> None:
    said = Page(page(lost)).said
    assert f"mockbroker {version('mockbroker')}" in said
    assert re.search(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", said)


def test_words_and_numbers_stay_whole_on_a_narrow_screen(lost: Report) -> None:
    """Tables and drawings scroll by themselves; nothing may break anywhere."""
    text = page(lost)
    assert "overflow-wrap: anywhere" not in text
    assert "word-break" not in text
    for element in ("<table>", "<svg "):
        assert text.count(element) == text.count(f'<div class="wide">{element}') > 0


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
        lines([Series(HOSTILE, [Point(1, 2), Point(5, None), Point(9, 1)], 0)], HOSTILE),
        bars([Bar(HOSTILE, 3)], HOSTILE),
        lanes([Lane(HOSTILE, [Interval(HOSTILE, 1, 90, HOSTILE)])], [Mark(HOSTILE, 5)]),
    ]
    for drawing in drawings:
        assert not [e for e in ElementTree.fromstring(drawing).iter() if e.tag == "script"]


def test_a_drawing_of_much_stays_small_and_keeps_the_peak() -> None:
    """Points that stand together are thinned out; the highest is kept."""
    line = [Point(n, 1_000 if n == 33_333 else n % 7) for n in range(100_000)]
    drawing = lines([Series("a", line, 0)], "records")
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
    assert len(cases) == len(ANOMALIES)
    assert cases["lost_write"] == ["failure"]
    assert cases["read_again"] == ["system-out"]
    assert cases["skip"] == ["error"]
    assert cases["torn_transaction"] == ["skipped"]
    assert cases["duplicate"] == []
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == [
        str(len(ANOMALIES)), "1", "1", "1"
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
