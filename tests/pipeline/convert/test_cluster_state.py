"""Which topics there are, and who leads them, at each entry of a run."""

from __future__ import annotations

import pytest

from mockbroker.core.events import ChangedTopic, LeaderChanged, TopicsChanged
from mockbroker.core.ids import uuid_text
from mockbroker.core.journal.entries import EventEntry
from mockbroker.pipeline.convert import recent
from mockbroker.pipeline.convert.cluster_state import Place, RunState

ONE, TWO = bytes(15) + b"\1", bytes(15) + b"\2"
FIRST, SECOND = uuid_text(ONE), uuid_text(TWO)
HERE = Place("t", FIRST, 0)


def changed(
    state: RunState, seq: int, created: tuple[str, ...] = (), deleted: tuple[str, ...] = ()
) -> None:
    """Topic "t" of two partitions was created or deleted with an id."""
    topics = [
        tuple(ChangedTopic("t", each, ((1,), (2,))) for each in ids) for ids in (created, deleted)
    ]
    event = TopicsChanged(0, *topics)
    state.topics_changed(EventEntry(seq, 0, 0, event), event)


def leads(state: RunState, seq: int, leader: int, epoch: int) -> None:
    event = LeaderChanged(0, "t", 0, leader, epoch, 1, (1,), False, "")
    state.leader_changed(EventEntry(seq, 0, 0, event), event)


def test_a_deleted_topic_has_no_id_and_its_id_still_has_a_name() -> None:
    state = RunState()
    changed(state, 1, created=(FIRST,))
    assert state.exists(HERE)
    changed(state, 2, deleted=(FIRST,))
    assert state.named("t", 0) == state.place("t", bytes(16), 0) == Place("t", None, 0)
    assert state.place("", ONE, 0) == HERE
    assert not state.exists(HERE)


def test_a_topic_that_is_deleted_and_created_again_has_its_second_id() -> None:
    state = RunState()
    changed(state, 1, created=(FIRST,))
    changed(state, 2, created=(SECOND,), deleted=(FIRST,))
    assert state.named("t", 1) == Place("t", SECOND, 1)
    assert not state.exists(HERE)
    changed(state, 3, deleted=(FIRST,))  # that one is gone
    assert state.named("t", 1) == Place("t", SECOND, 1)


def test_a_broker_has_led_since_an_entry_under_an_epoch() -> None:
    state = RunState()
    changed(state, 1, created=(FIRST,))
    assert state.leader_epoch(HERE, 1, since_seq=1) == 0  # nobody has been named yet
    leads(state, 5, leader=1, epoch=3)
    assert state.leader_epoch(HERE, 1, since_seq=5) == 3
    assert state.leader_epoch(HERE, 1, since_seq=4) is None
    assert state.leader_epoch(HERE, 2, since_seq=5) is None
    changed(state, 6, deleted=(FIRST,))
    assert state.leader_epoch(HERE, 1, since_seq=7) is None


def test_nobody_has_led_a_topic_that_was_replaced_by_another_of_its_name() -> None:
    state = RunState()
    changed(state, 1, created=(FIRST,))
    changed(state, 2, created=(SECOND,), deleted=(FIRST,))
    leads(state, 3, leader=1, epoch=4)
    assert state.leader_epoch(HERE, 1, since_seq=5) is None
    assert state.leader_epoch(Place("t", SECOND, 0), 1, since_seq=5) == 4
    assert state.leader_epoch(Place(None, None, 0), 1, since_seq=5) is None


def test_of_topics_that_come_and_go_only_the_last_names_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recent, "ENTRIES_MAX", 3)
    state = RunState()
    ids = [bytes(15) + bytes([number]) for number in range(1, 11)]
    changed(state, 1, created=(FIRST,))
    for seq, each in enumerate(ids[1:], 2):
        changed(state, seq, created=(uuid_text(each),), deleted=(uuid_text(ids[seq - 2]),))
    changed(state, 20, deleted=(uuid_text(ids[-1]),))
    named = [state.place("", each, 0).topic for each in ids]
    assert named == [None] * 7 + ["t"] * 3
    assert not state.topics
    assert not state.leading


def test_the_name_of_a_topic_that_exists_is_kept_whatever_comes_and_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recent, "ENTRIES_MAX", 3)
    state = RunState()
    changed(state, 1, created=(FIRST,))
    for number in range(2, 50):
        other = uuid_text(bytes(15) + bytes([number]))
        event = TopicsChanged(0, (ChangedTopic("u", other, ((1,),)),), ())
        state.topics_changed(EventEntry(number, 0, 0, event), event)
        event = TopicsChanged(0, (), (ChangedTopic("u", other, ((1,),)),))
        state.topics_changed(EventEntry(number, 0, 0, event), event)
    assert state.place("", ONE, 0) == HERE
    assert list(state.leading) == [("t", 0), ("t", 1)]
