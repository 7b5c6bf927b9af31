"""Commits of what several members may have read, by hand-made journals."""

from __future__ import annotations

from tests.pipeline.duck.journal import Journal

SURE = {"group": "g", "member": "m"}
UNSURE = {"candidates": ["m", "n"]}
NOTHING_DECIDES = ("undecided", None, "unattributed:g", 20, 40)


def read(*answers: tuple[int, int, int, dict[str, object]]) -> Journal:
    journal = Journal()
    journal.batch(10, 0, 9)
    for response_seq, asked, end, reader in answers:
        journal.fetch(response_seq, asked, end, **reader)
    return journal


def test_what_a_member_may_have_read_is_no_finding() -> None:
    """It read two records, and one of two members read three more."""
    journal = read((20, 0, 2, SURE), (30, 2, 5, UNSURE))
    journal.commit(40, 5)
    assert journal.brief("committed_not_read") == [NOTHING_DECIDES]


def test_what_nobody_read_is_a_finding_all_the_same() -> None:
    """From behind the possible answers on, beside what those leave open."""
    journal = read((20, 0, 2, SURE), (30, 2, 5, UNSURE))
    journal.commit(40, 7)
    assert journal.brief("committed_not_read") == [NOTHING_DECIDES, ("report", 5, "g", 20, 40)]


def test_certain_answers_that_reach_far_enough_decide() -> None:
    """Also where others may be the member's."""
    journal = read((20, 0, 5, SURE), (30, 0, 3, UNSURE))
    journal.commit(40, 5)
    assert journal.brief("committed_not_read") == []


def test_without_a_certain_answer_nothing_decides() -> None:
    """Beyond the reach of the possible answers, too: all or none may be the member's."""
    for committed in (2, 5, 7):
        journal = read((20, 0, 5, UNSURE))
        journal.commit(40, committed)
        assert journal.brief("committed_not_read") == [NOTHING_DECIDES]


def test_answers_of_another_group_are_not_possible_ones() -> None:
    """Which group reads is certain, which member is not."""
    journal = read((20, 0, 2, SURE), (30, 2, 5, {**UNSURE, "group": "other"}))
    journal.commit(40, 5)
    assert journal.brief("committed_not_read") == [("report", 2, "g", 20, 40)]


def test_a_topic_and_a_group_are_told_once() -> None:
    """With the evidence of all their commits."""
    journal = read((20, 0, 5, UNSURE), (22, 0, 5, {"candidates": ["o", "p"]}))
    journal.commit(30, 3)
    journal.commit(35, 4, member="o")
    journal.commit(40, 5)
    assert journal.brief("committed_not_read") == [NOTHING_DECIDES]


def test_the_possible_answers_of_a_member_reach_as_far_as_the_last_of_them() -> None:
    journal = read((20, 0, 2, SURE), (25, 2, 5, UNSURE), (30, 2, 4, UNSURE))
    journal.commit(40, 7)
    assert journal.brief("committed_not_read") == [NOTHING_DECIDES, ("report", 5, "g", 20, 40)]


def test_the_possible_answers_of_a_member_begin_with_the_first_of_them() -> None:
    journal = read((20, 0, 3, UNSURE), (30, 3, 5, UNSURE))
    journal.commit(40, 3)
    assert journal.brief("committed_not_read") == [NOTHING_DECIDES]


def test_answers_that_other_members_may_have_had_are_not_possible_ones() -> None:
    journal = read((20, 0, 2, SURE), (30, 2, 5, {"candidates": ["n", "o"]}))
    journal.commit(40, 5)
    assert journal.brief("committed_not_read") == [("report", 2, "g", 20, 40)]


def test_an_answer_with_an_error_leaves_nothing_open() -> None:
    journal = read((20, 0, 5, {**UNSURE, "error": "NOT_LEADER_OR_FOLLOWER"}))
    journal.commit(40, 5)
    assert journal.brief("committed_not_read") == []


def test_a_possible_answer_of_another_partition_leaves_nothing_open() -> None:
    journal = read((20, 0, 5, UNSURE))
    journal.tables["fetches"][0]["partition"] = 1
    journal.commit(40, 5)
    assert journal.brief("committed_not_read") == []


def test_a_possible_answer_that_reaches_no_further_leaves_nothing_open() -> None:
    journal = read((20, 0, 2, SURE), (30, 0, 2, UNSURE))
    journal.commit(40, 5)
    assert journal.brief("committed_not_read") == [("report", 2, "g", 20, 40)]
