"""The outcome of each rule, and the exit code."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker.pipeline.findings import ANOMALIES
from mockbroker.pipeline.report.model import JournalGap, Report, RuleOutcome
from mockbroker.pipeline.report.outcomes import MATERIAL
from mockbroker.pipeline.report.terminal import not_checked, plain, verdict
from tests.pipeline.duck.journal import Journal
from tests.pipeline.report.reports import finding, lossy, plain_report, report_of

GAP = JournalGap("r", 30, 40, "forgotten")


def outcome_of(report: Report, anomaly: str) -> RuleOutcome:
    [found] = [outcome for outcome in report.outcomes if outcome.anomaly == anomaly]
    return found


BUGS_ONLY: dict[str, object] = {"bugs_only": True}
NO_LOSS: dict[str, object] = {"allow": ["lost_write"]}
ALIKE = finding("duplicate", "undecided", offset=None, subject="without-id:3")


@pytest.mark.parametrize(
    ("report", "settings", "code"),
    [
        (plain_report(), {}, 0),
        (plain_report(finding()), {}, 1),
        (plain_report(finding()), NO_LOSS, 0),
        (plain_report(finding("skip")), NO_LOSS, 1),
        (plain_report(finding(verdict="report")), {}, 1),
        (plain_report(finding(verdict="report")), BUGS_ONLY, 0),
        (plain_report(finding(verdict="undecided")), {}, 2),
        (plain_report(finding(verdict="undecided")), BUGS_ONLY, 2),
        (plain_report(ALIKE), {}, 2),
        (plain_report(ALIKE), BUGS_ONLY, 0),
        (plain_report(ALIKE), {"allow": ["duplicate"]}, 0),
        (plain_report(ALIKE, finding()), {}, 1),
        (plain_report(gaps=(GAP,)), BUGS_ONLY, 2),
        (plain_report(finding(), gaps=(GAP,)), {}, 1),
        (plain_report(finding(), gaps=(GAP,)), NO_LOSS, 2),
        (plain_report(complete=False), {}, 2),
    ],
)
def test_the_exit_code_tells_findings_from_not_knowing(
    report: Report, settings: dict[str, Any], code: int
) -> None:
    """A finding is one over any gap; nothing found is clean only where all was checked."""
    assert report.exit_code(**settings) == code


def test_equal_records_without_an_id_are_not_checked() -> None:
    """The one line says so, and the rule is not clean."""
    report = plain_report(ALIKE)
    assert verdict(report) == (
        "nothing found; not checked: duplicates in t: "
        "3 records without an id have the key and value of another"
    )
    outcome = outcome_of(report, "duplicate")
    assert outcome.outcome == "undecided"
    assert "without an id" in outcome.why


def test_what_was_not_found_is_not_clean_where_something_is_missing() -> None:
    """It is undecided, and the report says why."""
    assert outcome_of(plain_report(), "skip").outcome == "clean"
    for report in (plain_report(gaps=(GAP,)), plain_report(complete=False)):
        skip = outcome_of(report, "skip")
        assert skip.outcome == "undecided"
        assert "there may be more" in skip.why
        assert "nothing found; not checked: " in verdict(report)
        assert not_checked(report)


def test_a_rule_without_anything_to_judge_does_not_apply() -> None:
    """It is not said to be clean."""
    assert outcome_of(plain_report(lacking="skip"), "skip")[1] == "not applicable"


def test_every_rule_says_what_it_judges(tmp_path) -> None:
    """By tables and conditions that there are; of an empty journal no rule applies."""
    assert set(MATERIAL) == set(ANOMALIES)
    report = report_of(Journal(), tmp_path)
    assert {outcome.outcome for outcome in report.outcomes} == {"not applicable"}
    assert all(outcome.why for outcome in report.outcomes)


def test_levels_of_evidence_are_named(tmp_path) -> None:
    """The application's own record only where there is one."""
    journal = lossy()
    assert outcome_of(report_of(journal, tmp_path / "a"), "lost_write").levels == ("wire",)
    journal.operation(1, "acked", offset=0)
    with_word = report_of(journal, tmp_path / "b")
    assert outcome_of(with_word, "lost_write").levels == ("wire", "application")


def test_a_case_holds_the_journal_around_the_finding(tmp_path) -> None:
    """The record, its append and its removal as proof, and the fault that caused it."""
    report = report_of(lossy(), tmp_path)
    [case] = [case for case in report.cases if case.finding.anomaly == "lost_write"]
    assert [entry.seq for entry in case.timeline if entry.evidence] == [10, 20]
    assert {entry.what for entry in case.timeline} >= {"batches", "removals", "faults", "fetches"}
    assert any("bad-night" in entry.text for entry in case.timeline if entry.what == "faults")
    assert [entry.seq for entry in case.timeline] == sorted(e.seq for e in case.timeline)
    assert "id b" in dict(case.facts)["record"]
    assert "> " in plain(report)
    assert "because of bad-night" in plain(report)


def test_a_duplicate_of_a_forgotten_producer_names_the_config_and_shows_when(tmp_path) -> None:
    journal = Journal()
    producer = {"producer_id": 4, "producer_epoch": 0, "base_sequence": 0}
    journal.batch(10, 0, 1, **producer)
    journal.expiration(15, 4, broker=2)
    journal.batch(20, 1, 1, **producer, values=[5])
    report = report_of(journal, tmp_path)
    [case] = report.cases
    [entry] = [entry for entry in case.timeline if entry.what == "expirations"]
    assert (entry.seq, entry.text) == (15, "broker 2 forgot producer 4 (producer.id.expiration.ms)")
    assert "because of producer.id.expiration.ms" in plain(report)


def test_an_applications_word_is_shown_with_the_finding(tmp_path) -> None:
    """Where the journal has no entry that proves it."""
    journal = Journal()
    journal.operation(1, "processed", group="g", offset=3)
    journal.operation(2, "processed", group="g", offset=3)
    report = report_of(journal, tmp_path)
    [case] = report.cases
    assert [name for name, _ in case.facts] == ["application", "application"]


def test_of_many_findings_the_first_are_told_and_the_rest_counted(tmp_path) -> None:
    """The page and the terminal stay readable; nothing is lost from the findings."""
    journal = Journal()
    journal.batch(10, 0, 300)
    journal.removal(20, 0, 299, "truncation")
    report = report_of(journal, tmp_path)
    assert len(report.findings) == 300
    assert len(report.cases) == 20
    assert "and 295 more of lost_write" in plain(report)


def test_entries_that_are_not_shown_are_counted(tmp_path) -> None:
    """A timeline holds what is nearest, and says how much else there was."""
    journal = Journal()
    for number in range(50):
        journal.batch(10 + 2 * number, number, 1)
    journal.fetch(112, 0, 50, [n for n in range(50) if n != 49], rules=["hider"])
    [case] = report_of(journal, tmp_path).cases
    assert case.finding.offset == 49
    assert len(case.timeline) + case.left_out == 51
    [answer] = [entry for entry in case.timeline if entry.evidence]
    assert answer.text.endswith("changed by hider")
    assert any("offset 49 " in entry.text for entry in case.timeline)


def test_topics_and_rules_that_have_nothing_to_do_with_it_are_left_out(tmp_path) -> None:
    """Of all topics that come and go, and of all requests that rules touched."""
    journal = lossy()
    created = '{"change": "created"}'
    for seq, topic, topic_id in ((1, "t", "id-t"), (2, "other", "id-o")):
        about = {"topic": topic, "topic_id": topic_id, "details": created}
        journal.row("cluster", seq=seq, change="TopicsChanged", **about)
    journal.row("faults", seq=2, kind="fault", change="hit", rules=["another"], api="Fetch")
    [case] = report_of(journal, tmp_path).cases
    said = " ".join(entry.text for entry in case.timeline)
    assert "created" in said
    assert "other" not in said
