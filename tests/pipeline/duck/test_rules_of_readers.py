"""Rules about consumers and groups, on handmade journals."""

from __future__ import annotations

import pytest

from tests.pipeline.duck.journal import Journal


def test_an_aborted_record_reaches_a_read_committed_consumer() -> None:
    """It is judged by the record that stood there when the answer was given."""
    journal = Journal()
    journal.batch(10, 0, 1, transaction="1/1")
    journal.marker(12, 1, "1/1", committed=False)
    journal.fetch(20, 0, 1, isolation_level=0)
    assert journal.brief("aborted_read") == []
    journal.fetch(22, 0, 1, isolation_level=1)
    journal.removal(30, 0, 1, "truncation")
    journal.batch(40, 0, 1)
    journal.fetch(50, 0, 1, isolation_level=1)
    assert journal.brief("aborted_read") == [("bug", 0, "connection:7", 10, 22)]


def test_an_aborted_record_that_was_gone_already_is_none_at_a_high_offset_either() -> None:
    """Removals are found by the thousand offsets in which they lie."""
    journal = Journal()
    for base in (1024, 5000):
        journal.batch(base + 10, base, 1, transaction="1/1")
        journal.marker(base + 12, base + 1, "1/1", committed=False)
        journal.removal(base + 14, base, base, "truncation")
        journal.fetch(base + 20, base, base + 1, isolation_level=1)
    assert journal.brief("aborted_read") == []


def test_of_several_records_at_an_offset_the_last_one_before_an_answer_was_in_it() -> None:
    """Nobody says that the former one is gone; that is an anomaly of its own."""
    journal = Journal()
    journal.batch(10, 0, 1, transaction="1/1")
    journal.marker(12, 1, "1/1", committed=False)
    journal.batch(20, 0, 1)
    journal.fetch(30, 0, 1, isolation_level=1)
    assert journal.brief("aborted_read") == []
    journal.batch(40, 0, 1, transaction="1/2")
    journal.marker(42, 1, "1/2", committed=False)
    journal.fetch(50, 0, 1, isolation_level=1)
    assert journal.brief("aborted_read") == [("bug", 0, "connection:7", 40, 50)]


def test_a_read_committed_consumer_stays_below_the_last_stable_offset() -> None:
    """The one that its own answer told."""
    journal = Journal()
    journal.fetch(20, 0, 3, isolation_level=1, last_stable_offset=3)
    journal.fetch(30, 0, 3, isolation_level=0, last_stable_offset=2)
    assert journal.brief("dirty_read") == []
    journal.fetch(40, 0, 3, isolation_level=1, last_stable_offset=2)
    assert journal.brief("dirty_read") == [("bug", 2, "connection:7", 40, 40)]


@pytest.mark.parametrize(
    "brought", [[0, 1, 4], [1, 0, 4], [0, 2, 4], [4], [0, 1, 2, 3], [], [0, 1, 2, 4, 4]]
)
def test_an_answer_leaves_a_record_out(brought: list[int]) -> None:
    """Inside, at its beginning, at its end, or altogether."""
    journal = Journal()
    journal.batch(10, 0, 5)
    journal.fetch(20, 0, 5, brought)
    lacking = min(set(range(5)) - set(brought))
    assert journal.brief("skip") == [("bug", lacking, "connection:7", 20, 20)]


def test_an_answer_with_an_error_leaves_nothing_out() -> None:
    """The consumer throws away what is in it."""
    journal = Journal()
    journal.batch(10, 0, 5)
    for seq, brought in ((20, [0, 2]), (30, [2, 0]), (40, [])):
        journal.fetch(seq, 0, 5, brought, error="NOT_LEADER_OR_FOLLOWER", read_span=seq)
    assert journal.brief("skip") == []


def test_an_answer_leaves_a_record_out_at_a_high_offset() -> None:
    """Records are looked up by the few hundred offsets in which they lie."""
    journal = Journal()
    journal.batch(10, 5_119, 3)
    journal.fetch(20, 5_119, 5_121, [5_119])
    assert journal.brief("skip") == [("bug", 5_120, "connection:7", 20, 20)]


def test_markers_aborted_and_removed_records_are_no_holes() -> None:
    """What counts is records, not offsets; and only those that were there."""
    journal = Journal()
    journal.batch(10, 0, 2, transaction="1/1")
    journal.marker(12, 2, "1/1", committed=False)
    journal.batch(14, 3, 4)
    journal.removal(16, 4, 4, "compaction")
    journal.fetch(20, 0, 7, [3, 5, 6], isolation_level=1)
    assert journal.brief("skip") == []
    journal.fetch(30, 0, 7, [3, 5, 6], isolation_level=0, read_span=2)
    assert journal.brief("skip") == [("bug", 0, "connection:7", 30, 30)]


def test_a_record_is_not_missed_once_its_marker_was_lost() -> None:
    """An unclean election cut the marker off, so the next marker of the producer decides; another
    marker of the same transaction would decide as the first.
    """
    journal = Journal()
    journal.batch(10, 0, 1, transaction="1/1")
    journal.marker(12, 1, "1/1", committed=True)
    journal.fetch(14, 0, 1, [], isolation_level=1)
    journal.removal(16, 1, 1, "unclean_election")
    journal.batch(18, 1, 1, transaction="1/2")
    journal.marker(20, 2, "1/2", committed=False)
    journal.fetch(22, 0, 3, [], isolation_level=1, read_span=2)
    missed = [("bug", 0, "connection:7", 14, 14)]
    assert journal.brief("skip") == missed
    journal.fetch(24, 0, 3, [1], isolation_level=0, read_span=3)
    missed.append(("bug", 0, "connection:7", 24, 24))
    assert journal.brief("skip") == missed
    journal.marker(26, 3, "1/1", committed=True)
    assert ("bug", 0, "connection:7", 22, 22) in journal.brief("skip")


def test_a_transaction_is_open_again_once_the_last_of_its_markers_was_lost() -> None:
    """By the first removal of each; those that retention takes have done their work."""
    journal = Journal()
    journal.batch(10, 0, 1, transaction="1/1")
    journal.marker(12, 1, "1/1", committed=True)
    journal.marker(14, 2, "1/1", committed=True)
    journal.removal(16, 1, 1, "truncation")
    journal.fetch(20, 0, 1, [], isolation_level=1)
    journal.removal(22, 2, 2, "truncation")
    journal.fetch(24, 0, 1, [], isolation_level=1, read_span=2)
    journal.removal(26, 1, 2, "truncation")
    assert journal.brief("skip") == [("bug", 0, "connection:7", 20, 20)]
    journal.batch(30, 5, 1, transaction="1/2")
    journal.marker(32, 6, "1/2", committed=True)
    journal.removal(34, 6, 6, "retention")
    journal.fetch(40, 5, 6, [], isolation_level=1, read_span=3)
    assert journal.brief("skip")[1:] == [("bug", 5, "connection:7", 40, 40)]


def test_what_only_a_deposed_leader_has_is_not_missed() -> None:
    """The next leader has a marker there."""
    journal = Journal()
    journal.batch(10, 0, 1, leader_epoch=0)
    journal.batch(12, 1, 1, leader_epoch=0)
    journal.marker(14, 1, "1/1", committed=True, leader_epoch=1)
    journal.batch(16, 2, 1, leader_epoch=1)
    journal.fetch(20, 0, 3, [0, 2])
    assert journal.brief("skip") == []
    journal.fetch(30, 0, 3, [0], read_span=2)
    assert journal.brief("skip") == [("bug", 2, "connection:7", 30, 30)]


def test_a_record_is_not_missed_before_it_was_appended_or_after_it_was_removed() -> None:
    """The order of the journal decides."""
    journal = Journal()
    journal.fetch(10, 0, 5, [])
    journal.batch(20, 0, 5)
    journal.removal(30, 0, 1, "retention")
    journal.fetch(40, 0, 5, [2, 3, 4], read_span=2)
    journal.fetch(50, 0, 5, [2, 3, 4], error="NOT_LEADER_OR_FOLLOWER", read_span=3)
    assert journal.brief("skip") == []
    journal.fetch(25, 0, 5, [2, 3, 4], read_span=4)
    assert journal.brief("skip") == [("bug", 0, "connection:7", 25, 25)]


def test_between_two_answers_a_record_is_left_out() -> None:
    """In one read span a bug, after a jump a report, after a reset or a rebalance nothing."""
    journal = Journal()
    journal.batch(10, 0, 9)
    journal.fetch(20, 0, 3, start="connection")
    journal.fetch(30, 4, 5)
    journal.fetch(40, 6, 7, read_span=2, start="reset")
    assert journal.brief("skip") == [("bug", 3, "connection:7", 20, 30)]
    journal.fetch(50, 8, 9, read_span=3, start="jump")
    assert journal.brief("skip") == [
        ("bug", 3, "connection:7", 20, 30),
        ("report", 7, "connection:7", 40, 50),
    ]


def test_between_two_answers_there_may_be_no_record() -> None:
    """A consumer that goes on behind a marker misses nothing."""
    journal = Journal()
    journal.batch(10, 0, 3, transaction="1/1")
    journal.marker(12, 3, "1/1", committed=True)
    journal.batch(14, 4, 2)
    journal.fetch(20, 0, 3)
    journal.fetch(30, 4, 6)
    assert journal.brief("skip") == []


def test_an_answer_goes_back_within_itself() -> None:
    """Each delivery that is not above the one before."""
    journal = Journal()
    journal.batch(10, 0, 4)
    journal.fetch(20, 0, 4)
    assert journal.brief("non_monotonic_poll") == []
    journal.fetch(30, 0, 4, [0, 2, 1, 3, 3], read_span=2)
    assert journal.brief("non_monotonic_poll") == [
        ("bug", 1, "connection:7", 30, 30),
        ("bug", 3, "connection:7", 30, 30),
    ]


def test_an_answer_goes_back_behind_the_one_before() -> None:
    """In one read span a bug, after a jump a report, in another read span nothing."""
    journal = Journal()
    journal.fetch(20, 0, 3)
    journal.fetch(30, 3, 5)
    journal.fetch(40, 0, 2, read_span=2, start="rebalance")
    assert journal.brief("non_monotonic_poll") == []
    journal.fetch(50, 1, 2, read_span=2)
    journal.fetch(60, 0, 1, read_span=3, start="jump")
    assert journal.brief("non_monotonic_poll") == [
        ("report", 0, "connection:7", 50, 60),
        ("bug", 1, "connection:7", 40, 50),
    ]


def test_a_committed_offset_goes_back() -> None:
    """Unless somebody reset it, or it had been removed."""
    journal = Journal()
    for seq, offset, reset in ((1, 5, False), (2, 3, True), (3, None, False), (4, 1, False)):
        journal.commit(seq, offset, reset=reset)
    journal.commit(5, 0, applied=False, error="ILLEGAL_GENERATION")
    journal.commit(6, 0, group="other")
    assert journal.brief("commit_regression") == []
    journal.commit(7, 0)
    assert journal.brief("commit_regression") == [("report", 0, "g", 4, 7)]


def test_a_committed_offset_goes_back_where_nobody_knows_who_reset_it() -> None:
    """As in tables that were made from the topics of a Kafka cluster."""
    journal = Journal()
    journal.commit(1, 5, reset=None)
    journal.commit(2, 3, reset=None)
    assert journal.brief("commit_regression") == [("report", 3, "g", 1, 2)]


def test_a_member_commits_what_it_had_not_been_sent() -> None:
    """Its reach is what its answers carried, or what the group had committed before."""
    member = {"group": "g", "member": "m"}
    journal = Journal()
    journal.batch(10, 0, 9)
    journal.fetch(20, 0, 2, **member)
    journal.commit(25, 2)
    journal.commit(27, 9, group="g", member="n")
    journal.commit(28, 5, reset=True)
    journal.commit(29, 5)
    assert journal.brief("committed_not_read") == []
    journal.commit(30, 7)
    assert journal.brief("committed_not_read") == [("report", 5, "g", 20, 30)]


def test_a_commit_may_pass_over_what_was_aborted() -> None:
    """Also one of a member that reads uncommitted records, whoever else may have read them."""
    journal = Journal()
    journal.batch(10, 0, 2)
    journal.batch(12, 2, 2, transaction="1/1")
    journal.marker(14, 4, "1/1", committed=False)
    journal.fetch(20, 0, 2, group="g", member="m")
    journal.commit(30, 5)
    assert journal.brief("committed_not_read") == []
    journal.fetch(24, 4, 5, [], candidates=["m", "n"])
    assert journal.brief("committed_not_read") == []


def test_a_commit_that_a_member_names_but_none_made_is_held_against_no_answer() -> None:
    """An administrator sets the group's offset."""
    journal = Journal()
    journal.batch(10, 0, 9)
    journal.fetch(20, 0, 2, group="g", member="m")
    journal.commit(25, 5, reset=True)
    assert journal.brief("committed_not_read") == []


def test_a_commit_that_names_no_member_is_held_against_no_answer() -> None:
    """Although the group of the answer is certain."""
    journal = Journal()
    journal.batch(10, 0, 9)
    journal.fetch(20, 0, 2, group="g")
    journal.commit(30, 5, member=None)
    assert journal.brief("committed_not_read") == []


def test_a_commit_beyond_the_end_promises_nothing() -> None:
    """Where no record stands, none is passed over."""
    journal = Journal()
    journal.batch(10, 0, 2)
    journal.fetch(20, 0, 2, group="g", member="m")
    journal.commit(30, 5)
    assert journal.brief("committed_not_read") == []


def test_a_group_reads_again() -> None:
    """A later read span that begins at or below what was delivered before."""
    journal = Journal()
    for response_seq, asked, end, read_span in ((10, 0, 3, 1), (12, 3, 5, 1), (14, 5, 7, 2)):
        journal.fetch(response_seq, asked, end, read_span=read_span, group="g")
    journal.fetch(16, 0, 1, read_span=3)
    journal.fetch(18, 4, 6, [], read_span=4, group="g")
    assert journal.brief("read_again") == []
    journal.fetch(20, 6, 9, read_span=4, group="g")
    assert journal.brief("read_again") == [("report", 6, "g", 10, 20)]


def test_a_read_span_is_compared_as_a_whole() -> None:
    """The lowest record of all its answers, with the highest of all answers before it."""
    journal = Journal()
    for response_seq, asked, end, read_span in ((10, 3, 6, 1), (12, 0, 3, 1), (14, 5, 7, 2)):
        journal.fetch(response_seq, asked, end, read_span=read_span, group="g")
    assert journal.brief("read_again") == [("report", 5, "g", 10, 14)]
    journal.fetch(16, 9, 10, read_span=3, group="g")
    journal.fetch(18, 6, 7, read_span=3, group="g")
    assert journal.brief("read_again")[1:] == [("report", 6, "g", 10, 16)]


def test_a_member_of_an_old_generation_commits() -> None:
    """Refused: a report; taken by a classic group: a bug."""
    journal = Journal()
    for seq, group, generation, protocol in (
        (5, "g", 1, "classic"), (15, "g", 2, "classic"), (25, "g", 3, "classic"),
        (6, "new", 4, "consumer"),
    ):  # fmt: skip
        journal.row(
            "groups", seq=seq, group=group, generation=generation, protocol=protocol, state="Stable"
        )
    journal.commit(10, 1, generation=1)
    journal.commit(12, 1, generation=None)
    journal.commit(13, 1, group="new", generation=3)
    journal.commit(14, 3, applied=False, error="UNKNOWN_TOPIC_OR_PARTITION")
    assert journal.brief("zombie_commit") == []
    journal.commit(20, 3, generation=1)
    journal.commit(30, 4, generation=1, applied=False, error="ILLEGAL_GENERATION")
    assert journal.brief("zombie_commit") == [("bug", 3, "g", 15, 20), ("report", 4, "g", 30, 30)]


def test_another_coordinator_has_other_generations() -> None:
    """Each coordinator goes by its own state. What a deposed one did is not in the log that its
    successor reads, and neither is it in what it reads itself later.
    """
    journal = Journal()
    row = {"group": "g", "protocol": "classic", "generation": 2}
    journal.row("groups", seq=5, broker=1, state="Stable", **row)
    journal.commit(10, 1, generation=1, broker=2)
    assert journal.brief("zombie_commit") == []
    journal.commit(20, 3, generation=1, broker=1)
    assert journal.brief("zombie_commit") == [("bug", 3, "g", 5, 20)]
    journal.row("groups", seq=15, broker=1, state="Dead", **row)
    assert journal.brief("zombie_commit") == []


def test_a_record_below_the_commit_was_never_processed() -> None:
    """From where the group began to read, and only where it processed anything at all."""
    journal = Journal()
    journal.batch(10, 0, 6)
    journal.removal(12, 2, 2, "compaction")
    journal.fetch(20, 1, 6, group="g")
    journal.commit(30, 5)
    assert journal.brief("committed_not_processed") == []
    journal.operation(1, "processed", group="g", offset=3)
    assert journal.brief("committed_not_processed") == [
        ("report", 1, "g", 10, 30),
        ("report", 4, "g", 10, 30),
    ]
    for offset in (1, 4):
        journal.operation(2 + offset, "processed", group="g", offset=offset)
    assert journal.brief("committed_not_processed") == []


def test_a_group_without_answers_began_at_the_first_record_that_it_processed() -> None:
    """Where other groups began, and where it began in another partition, does not matter."""
    journal = Journal()
    journal.batch(10, 0, 7)
    for offset in (2, 4):
        journal.operation(offset, "processed", group="g", offset=offset)
    journal.fetch(20, 0, 7, group="other")
    journal.fetch(22, 0, 0, group="g")
    journal.tables["fetches"][-1]["partition"] = 1
    journal.commit(30, 6)
    assert journal.brief("committed_not_processed") == [
        ("report", 3, "g", 10, 30),
        ("report", 5, "g", 10, 30),
    ]
    journal.fetch(24, 5, 7, group="g")
    assert journal.brief("committed_not_processed") == [("report", 5, "g", 10, 30)]


def test_what_was_removed_at_a_high_offset_need_not_be_processed() -> None:
    """Removals are found by the thousand offsets in which they lie."""
    journal = Journal()
    journal.batch(10, 5_119, 4)
    journal.removal(12, 5_119, 5_120, "retention")
    journal.operation(1, "processed", group="g", offset=5_121)
    journal.fetch(20, 5_119, 5_123, group="g")
    journal.commit(30, 5_123)
    assert journal.brief("committed_not_processed") == [("report", 5_122, "g", 10, 30)]


def test_a_record_is_processed_twice() -> None:
    """By the group's own word."""
    journal = Journal()
    journal.operation(1, "processed", group="g", offset=3)
    journal.operation(2, "processed", group="h", offset=3)
    journal.operation(3, "processed", group="g", offset=4)
    assert journal.brief("processed_again") == []
    journal.operation(9, "processed", group="g", offset=3, process="another")
    assert journal.brief("processed_again") == [("report", 3, "g", None, None)]


def test_over_a_gap_there_is_no_verdict() -> None:
    """What lies outside the evidence does not matter."""
    journal = Journal()
    journal.commit(10, 5)
    journal.commit(20, 4)
    journal.gap(1, 9)
    journal.gap(21, 30)
    assert [found[0] for found in journal.brief("commit_regression")] == ["report"]
    journal.gap(15, 16)
    assert [found[0] for found in journal.brief("commit_regression")] == ["undecided"]
