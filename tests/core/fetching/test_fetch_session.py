"""Fetch sessions: what a request stands for, and who keeps a slot in the cache."""

from __future__ import annotations

import pytest

from mockbroker.core.fetching.fetch_session import (
    EPOCH_MAX,
    EVICTION_MS,
    FetchSessionCache,
    next_epoch,
)
from mockbroker.core.ids import IdSource
from mockbroker.core.limits import (
    FETCH_SESSION_PARTITIONS_MAX,
    REQUEST_ELEMENTS_MAX,
    SessionRoom,
)
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)

ID = b"\x01" * 16


def cache(slots: int = 10) -> FetchSessionCache:
    return FetchSessionCache(slots, IdSource(1))


def request(session_id: int, epoch: int, *offsets: int, forget: tuple[int, ...] = ()):
    """A request for partitions 0, 1, … of topic t at these offsets."""
    partitions = [FetchPartition(index, fetch_offset=at) for index, at in enumerate(offsets)]
    return FetchRequest(
        session_id=session_id,
        session_epoch=epoch,
        topics=[FetchTopic("t", partitions=partitions)] if partitions else [],
        forgotten_topics_data=[ForgottenTopic("t", partitions=list(forget))] if forget else [],
    )


def begin(sessions: FetchSessionCache, *offsets: int, now_ms: int = 0, privileged=False) -> int:
    """Open a session by a full request."""
    context = sessions.open_context(request(0, 0, *offsets), by_id=False, now_ms=now_ms)
    assert context.opens_session
    return sessions.create(context.targets, by_id=False, privileged=privileged, now_ms=now_ms)


def offsets_of(sessions: FetchSessionCache, asked: FetchRequest) -> list[tuple[object, int]]:
    context = sessions.open_context(asked, by_id=False, now_ms=0)
    assert not context.error
    return [(target.key[1], target.request.fetch_offset) for target in context.targets.values()]


def error_of(sessions: FetchSessionCache, asked: FetchRequest, *, by_id=False) -> ErrorCode:
    return ErrorCode(sessions.open_context(asked, by_id=by_id, now_ms=0).error)


def test_a_sessionless_request_opens_nothing():
    sessions = cache()
    context = sessions.open_context(request(0, -1, 5), by_id=False, now_ms=0)
    assert (context.session, context.opens_session) == (None, False)
    assert len(context.targets) == 1


@pytest.mark.covers("S134")
def test_an_incremental_request_changes_adds_and_forgets_partitions():
    sessions = cache()
    session = begin(sessions, 10, 20, 30)
    assert offsets_of(sessions, request(session, 1)) == [(0, 10), (1, 20), (2, 30)]
    assert offsets_of(sessions, request(session, 2, 11)) == [(0, 11), (1, 20), (2, 30)]
    assert offsets_of(sessions, request(session, 3, forget=(1,))) == [(0, 11), (2, 30)]
    assert offsets_of(sessions, request(session, 4, 1, 2)) == [(0, 1), (2, 30), (1, 2)]


@pytest.mark.covers("S135")
def test_wrong_ids_and_epochs_are_told_apart():
    sessions = cache()
    session = begin(sessions, 10)
    assert error_of(sessions, request(session + 1, 1)) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert error_of(sessions, request(0, 1)) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert error_of(sessions, request(session, 2)) is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert error_of(sessions, request(session, 1)) is ErrorCode.NONE
    assert error_of(sessions, request(session, 1)) is ErrorCode.INVALID_FETCH_SESSION_EPOCH


@pytest.mark.covers("S136")
def test_a_session_of_names_cannot_go_on_with_topic_ids():
    sessions = cache()
    session = begin(sessions, 10)
    mixed = error_of(sessions, request(session, 1), by_id=True)
    assert mixed is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    assert error_of(sessions, request(session, 1)) is ErrorCode.NONE


def test_topics_are_told_apart_by_id_where_ids_are_used():
    sessions = cache()
    asked = FetchRequest(
        session_epoch=0,
        topics=[
            FetchTopic(topic_id=ID, partitions=[FetchPartition(0)]),
            FetchTopic(topic_id=b"\x02" * 16, partitions=[FetchPartition(0)]),
        ],
    )
    context = sessions.open_context(asked, by_id=True, now_ms=0)
    assert [target.topic for target in context.targets.values()] == [None, None]
    assert len(context.targets) == 2


def test_a_partition_named_twice_is_one_target_with_the_last_parameters():
    sessions = cache()
    asked = FetchRequest(
        topics=[
            FetchTopic("t", partitions=[FetchPartition(0, fetch_offset=1)]),
            FetchTopic("t", partitions=[FetchPartition(0, fetch_offset=2)]),
        ]
    )
    assert offsets_of(sessions, asked) == [(0, 2)]


def test_a_full_or_final_request_ends_the_session_it_names():
    sessions = cache()
    first, second = begin(sessions, 1), begin(sessions, 1)
    sessions.open_context(request(first, 0, 1), by_id=False, now_ms=0)
    sessions.open_context(request(second, -1, 1), by_id=False, now_ms=0)
    assert len(sessions) == 0


def test_a_session_that_becomes_empty_is_closed():
    sessions = cache()
    session = begin(sessions, 10)
    context = sessions.open_context(request(session, 1, forget=(0,)), by_id=False, now_ms=0)
    assert (context.error, context.session, context.targets) == (0, None, {})
    assert len(sessions) == 0


def test_the_epoch_after_the_last_is_1():
    assert [next_epoch(epoch) for epoch in (0, 1, EPOCH_MAX - 1, EPOCH_MAX)] == [
        1,
        2,
        EPOCH_MAX,
        1,
    ]


def test_a_full_cache_of_young_sessions_refuses_consumers():
    sessions = cache(slots=1)
    held = begin(sessions, 1)
    assert begin(sessions, 1, 2, 3, now_ms=EVICTION_MS) == 0
    assert error_of(sessions, request(held, 1)) is ErrorCode.NONE


def test_an_idle_session_makes_room():
    sessions = cache(slots=1)
    held = begin(sessions, 1)
    assert begin(sessions, 1, now_ms=EVICTION_MS + 1) != 0
    assert error_of(sessions, request(held, 1)) is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_an_old_but_used_session_yields_to_one_that_is_no_smaller():
    sessions = cache(slots=1)
    held = begin(sessions, 1, 2)
    sessions.open_context(request(held, 1), by_id=False, now_ms=EVICTION_MS)
    assert begin(sessions, 1, now_ms=EVICTION_MS + 1) == 0
    assert begin(sessions, 1, 2, 3, now_ms=EVICTION_MS + 1) != 0


def test_a_follower_pushes_out_a_consumer_but_not_another_young_follower():
    sessions = cache(slots=1)
    begin(sessions, 1, 2, 3)
    assert begin(sessions, 1, privileged=True) != 0
    assert begin(sessions, 1, 2, privileged=True) == 0


def test_sessions_beyond_the_room_for_partitions_are_refused_or_closed():
    """A client without a session goes on; one that outgrows the room sends a full request."""
    sessions = FetchSessionCache(10, IdSource(1), room := SessionRoom(5))
    first, second = begin(sessions, 0, 0, 0), begin(sessions, 0, 0)
    assert begin(sessions, 0) == 0
    assert error_of(sessions, request(first, 1, 0, 0, 0, 0)) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert begin(sessions, 0, 0, 0) != 0
    assert room.exceeded == {FETCH_SESSION_PARTITIONS_MAX: 2}
    assert len(offsets_of(sessions, request(second, 1, 5))) == 2
    assert len(offsets_of(sessions, request(second, 2, forget=(0,)))) == 1
    assert begin(sessions, 0) != 0


def test_a_session_has_no_more_partitions_than_a_request_may_name():
    """A request looks at all of them."""
    sessions = FetchSessionCache(10, IdSource(1), room := SessionRoom(100, 5))
    session = begin(sessions, 0, 0, 0)
    assert len(offsets_of(sessions, request(session, 1, 0, 0, 0, 0, 0))) == 5
    more = request(session, 2, 0, 0, 0, 0, 0, 0)
    assert error_of(sessions, more) == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert room.exceeded == {REQUEST_ELEMENTS_MAX: 1}
    assert room.partitions == 0
