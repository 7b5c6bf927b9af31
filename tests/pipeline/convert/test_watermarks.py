"""When a high watermark that an answer tells is evidence, and when it may be old news."""

from __future__ import annotations

from mockbroker.pipeline.convert.watermarks import _ReportedMarks


def told(*marks: tuple[int, int]) -> _ReportedMarks:
    """Marks that were told one behind the other, each asked for just before: (entry, mark)."""
    found = _ReportedMarks()
    for seq, mark in marks:
        assert found.add(seq, mark, seq - 1)
    return found


def test_a_mark_that_rises_or_stays_is_evidence():
    assert told((10, 3), (20, 5), (30, 5)).add(40, 9, 35)


def test_a_lower_mark_is_old_news_if_it_was_asked_for_before_the_higher_was_told():
    assert not told((10, 3), (20, 5)).add(30, 3, 15)


def test_a_lower_mark_went_back_if_it_was_asked_for_after_the_higher_was_told():
    found = told((10, 3), (20, 5))
    assert found.add(30, 3, 25)
    # From now on that is where it stands.
    assert found.add(40, 3, 35)
    assert found.add(50, 4, 45)


def test_a_higher_mark_that_was_asked_for_before_it_went_back_is_old_news():
    found = told((10, 3), (20, 5))
    assert found.add(30, 3, 25)
    assert not found.add(40, 5, 28)
    assert found.add(50, 3, 45)


def test_what_a_rule_had_a_hand_in_counts_only_where_it_went_back_for_sure_or_is_known():
    found = told((10, 3), (20, 5))
    assert found.is_known(5, 25)
    assert found.is_known(2, 25)
    assert not found.is_known(3, 15)  # late, by the rule
    assert not found.is_known(1_000_000, 25)  # a lie, perhaps
    assert found.add(30, 5, 29)
