"""Share sessions: epochs, changes, room, and the connection that opened one."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mockbroker.core.errors import ApiError
from mockbroker.core.limits import (
    FETCH_SESSION_PARTITIONS_MAX,
    REQUEST_ELEMENTS_MAX,
    SessionRoom,
)
from mockbroker.core.share.sessions import ShareFetchContext, ShareSessionCache, ShareTarget
from mockbroker.core.share.states import EPOCH_MAX
from mockbroker_protocol import ErrorCode

KEY = ("g", "m1")
A, B, C = (ShareTarget(b"\x01" * 16, index, "t") for index in range(3))


@pytest.fixture
def cache() -> ShareSessionCache:
    return ShareSessionCache(2)


def opened(
    cache: ShareSessionCache,
    epoch: int,
    targets: Sequence[ShareTarget] = (),
    forgotten: Sequence[ShareTarget] = (),
    *,
    key: tuple[str, str] = KEY,
    acknowledges: bool = False,
    connection: int = 1,
) -> ShareFetchContext:
    return cache.open_context(
        key,
        epoch,
        list(targets),
        list(forgotten),
        acknowledges=acknowledges,
        connection_id=connection,
    )


def refused(cache: ShareSessionCache, epoch: int, **more: object) -> ErrorCode:
    with pytest.raises(ApiError) as error:
        opened(cache, epoch, **more)  # type: ignore[arg-type]
    return error.value.error


def test_epoch_0_opens_a_session_and_later_requests_name_changes_only(cache):
    assert opened(cache, 0, [A, B]).targets == (A, B)
    assert opened(cache, 1).targets == (A, B)
    assert opened(cache, 2, [C], [A]).targets == (B, C)
    assert opened(cache, 3, [B]).targets == (B, C)


def test_a_partition_that_is_added_and_forgotten_is_not_read(cache):
    opened(cache, 0, [A])
    assert opened(cache, 1, [B], [B]).targets == (A,)


def test_another_epoch_than_the_expected_one_is_invalid_and_changes_nothing(cache):
    opened(cache, 0, [A])
    for epoch in (2, 7, -2):
        assert refused(cache, epoch) is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert opened(cache, 1).targets == (A,)
    assert refused(cache, 1) is ErrorCode.INVALID_SHARE_SESSION_EPOCH


def test_epochs_go_round_to_1(cache):
    opened(cache, 0, [A])
    session = cache.get(KEY)
    assert session is not None
    session.epoch = EPOCH_MAX
    opened(cache, EPOCH_MAX)
    assert opened(cache, 1).targets == (A,)


@pytest.mark.parametrize("epoch", [-1, 1, -5])
def test_a_member_without_a_session_is_told_so(cache, epoch):
    assert refused(cache, epoch) is ErrorCode.SHARE_SESSION_NOT_FOUND


def test_epoch_0_replaces_the_session_of_the_member(cache):
    opened(cache, 0, [A])
    opened(cache, 1)
    assert opened(cache, 0, [B]).targets == (B,)
    assert len(cache) == 1
    assert opened(cache, 1).targets == (B,)


def test_the_first_request_has_nothing_to_acknowledge(cache):
    assert refused(cache, 0, targets=[A], acknowledges=True) is ErrorCode.INVALID_REQUEST
    assert len(cache) == 0


def test_a_partition_named_twice_ends_the_former_session(cache):
    opened(cache, 0, [A])
    assert refused(cache, 0, targets=[B, B]) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert cache.get(KEY) is None


def test_there_are_no_more_sessions_than_the_broker_allows(cache):
    opened(cache, 0, [A])
    opened(cache, 0, [A], key=("g", "m2"))
    assert refused(cache, 0, key=("h", "m1")) is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    cache.drop(KEY)
    opened(cache, 0, [A], key=("h", "m1"))


def test_no_session_is_left_once_share_groups_are_disabled(cache):
    opened(cache, 0, [A])
    cache.clear()
    assert refused(cache, 1) is ErrorCode.SHARE_SESSION_NOT_FOUND
    assert not cache.has_members("g")


def test_the_last_request_reads_nothing_and_the_session_remains_until_its_answer(cache):
    opened(cache, 0, [A])
    context = opened(cache, -1)
    assert (context.targets, context.session) == ((), None)
    assert cache.get(KEY) is not None


def test_acknowledgements_use_the_epochs_of_the_session(cache):
    with pytest.raises(ApiError) as error:
        cache.acknowledged(KEY, 0)
    assert error.value.error is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    with pytest.raises(ApiError) as error:
        cache.acknowledged(KEY, 1)
    assert error.value.error is ErrorCode.SHARE_SESSION_NOT_FOUND
    opened(cache, 0, [A])
    cache.acknowledged(KEY, 1)
    cache.acknowledged(KEY, -1)
    with pytest.raises(ApiError) as error:
        cache.acknowledged(KEY, 1)
    assert error.value.error is ErrorCode.INVALID_SHARE_SESSION_EPOCH
    cache.acknowledged(KEY, 2)


def test_a_context_is_not_current_once_another_request_has_used_its_session(cache):
    opened(cache, 0, [A])
    context = opened(cache, 1)
    assert context.is_current
    cache.acknowledged(KEY, 2)
    assert not context.is_current


def test_a_new_partition_and_the_end_of_an_error_are_owed_to_the_client(cache):
    opened(cache, 0, [A])
    session = opened(cache, 1, [B]).session
    assert session is not None
    quiet = {"has_records": False, "failed": False}
    assert not session.must_send(A.key)
    assert session.must_send(B.key), "a new partition"
    session.answered(B.key, **quiet)
    assert not session.must_send(B.key)
    session.answered(B.key, has_records=False, failed=True)
    assert session.must_send(B.key), "its error may end"
    session.answered(B.key, **quiet)
    assert not session.must_send(B.key)


def test_a_partition_with_records_is_the_last_of_its_session(cache):
    session = opened(cache, 0, [A, B]).session or cache.get(KEY)
    assert session is not None
    session.answered(A.key, has_records=True, failed=False)
    assert list(session.partitions) == [B.key, A.key]


def test_a_closed_connection_names_the_session_that_it_opened_last(cache):
    opened(cache, 0, [A], connection=7)
    assert cache.connection_closed(7) == (KEY, True)
    assert cache.connection_closed(7) is None
    assert cache.connection_closed(8) is None


def test_an_old_connection_does_not_close_the_session_of_a_newer_one(cache):
    opened(cache, 0, [A], connection=7)
    opened(cache, 0, [A], connection=8)
    assert cache.connection_closed(7) == (KEY, False)
    assert cache.connection_closed(8) == (KEY, True)


def test_a_session_that_the_client_closed_leaves_its_group_to_the_connection(cache):
    opened(cache, 0, [A], connection=7)
    cache.drop(KEY)
    assert cache.connection_closed(7) == (KEY, False)
    assert not cache.has_members("g")


def test_a_session_has_no_more_partitions_than_a_request_may_name() -> None:
    """A request looks at all of them. A refused one changes nothing."""
    cache = ShareSessionCache(2, room=(room := SessionRoom(100, 2)))
    opened(cache, 0, [A, B])
    assert refused(cache, 1, targets=[C]) is ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert room.exceeded == {REQUEST_ELEMENTS_MAX: 1}
    assert opened(cache, 1, [C], [A]).targets == (B, C)
    assert opened(cache, 2, [A], [A]).targets == (B, C)
    assert room.partitions == 2


def test_all_sessions_have_room_for_so_many_partitions() -> None:
    cache = ShareSessionCache(3, room=(room := SessionRoom(2)))
    opened(cache, 0, [A, B])
    limit = ErrorCode.SHARE_SESSION_LIMIT_REACHED
    assert refused(cache, 0, targets=[C], key=("g", "m2")) is limit
    assert refused(cache, 1, targets=[C]) is limit
    assert room.exceeded == {FETCH_SESSION_PARTITIONS_MAX: 2}
    opened(cache, 1, [], [A])
    opened(cache, 0, [C], key=("g", "m2"), connection=2)
    assert refused(cache, 2, targets=[A]) is limit
    cache.drop(("g", "m2"))
    assert opened(cache, 2, [A]).targets == (B, A)
    opened(cache, 0, [C])
    assert room.partitions == 1
    cache.clear()
    assert room.partitions == 0
