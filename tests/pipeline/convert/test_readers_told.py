"""Which member sent a Fetch, entry by entry."""

from __future__ import annotations

import pytest

from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.offset_commit import OffsetCommitRequest
from tests.pipeline.convert.told_run import NOBODY, Reader, ToldRun

M: Reader = ("g", "m", None)
N: Reader = ("g", "n", None)
PERHAPS_M: Reader = (None, None, ["m"])
GROUP, TRANSACTION = 0, 1


def look_for_coordinator(
    run: ToldRun, connection: int, key: str = "g", key_type: int = GROUP
) -> None:
    message = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
    run.request(connection, (ApiKey.FIND_COORDINATOR, 4), message)


def test_who_is_not_the_member_is_not_once_the_members_own_connection_is_closed() -> None:
    """Two connections fetch on what the member has, and one of them has named the group."""
    run = ToldRun()
    run.heartbeat(1, "m", [0])
    run.fetch(2, {0: 0})
    look_for_coordinator(run, 3)
    run.fetch(3, {0: 0})
    run.fetch(2, {0: 1})
    run.fetch(3, {0: 1})
    assert run.readers() == [M, PERHAPS_M, M, M]
    run.closed(3)
    run.fetch(2, {0: 2})
    assert run.readers()[4:] == [NOBODY]


def test_a_connection_that_names_no_group_is_not_the_members_beside_one_that_does() -> None:
    """Once both go on fetching; the other way round than above."""
    run = ToldRun()
    run.heartbeat(1, "m", [0])
    look_for_coordinator(run, 3)
    run.fetch(3, {0: 0})
    run.fetch(2, {0: 0})
    run.fetch(3, {0: 1})
    run.fetch(2, {0: 1})
    run.fetch(3, {0: 2})
    assert run.readers() == [M, PERHAPS_M, M, NOBODY, M]
    run.fetch(2, {0: 1})
    run.fetch(4, {0: 2})
    assert run.readers()[5:] == [NOBODY, PERHAPS_M]
    run.closed(3)
    run.fetch(2, {0: 2})
    assert run.readers()[7:] == [NOBODY]


def test_a_connection_stays_the_members_when_another_begins_to_fetch() -> None:
    """One that names no group was taken for it before."""
    run = ToldRun()
    run.heartbeat(1, "m", [0])
    look_for_coordinator(run, 3)
    run.fetch(3, {0: 0})
    run.fetch(2, {0: 0})
    run.fetch(3, {0: 1})
    run.fetch(2, {0: 1})
    run.fetch(4, {0: 1})
    assert run.readers() == [M, PERHAPS_M, M, NOBODY, PERHAPS_M]


def test_a_member_is_free_to_fetch_elsewhere_once_its_connection_is_anothers() -> None:
    run = ToldRun()
    run.heartbeat(1, "m", [0, 1])
    run.fetch(2, {0: 0})
    run.heartbeat(2, "n", [0])
    run.fetch(2, {0: 1})
    run.fetch(4, {1: 0})
    assert run.readers() == [M, N, M]


def test_a_member_fetches_on_another_connection_once_its_own_is_closed() -> None:
    run = ToldRun()
    run.heartbeat(1, "m", [0])
    run.fetch(2, {0: 0})
    run.closed(2)
    run.fetch(3, {0: 1})
    assert run.readers() == [M, M]


def test_a_member_fetches_from_each_broker_on_a_connection_of_its_own() -> None:
    run = ToldRun()
    run.heartbeat(1, "m", [0, 1])
    for offset in range(2):
        run.fetch(2, {0: offset})
        run.fetch(3, {1: offset}, node_id=2)
    assert run.readers() == [M] * 4


def test_a_fetch_that_was_sent_before_a_member_got_the_partition_is_not_its_own() -> None:
    run = ToldRun()
    run.heartbeat(1, "m", [1])
    early = run.fetch_begins(2, {0: 0})
    run.heartbeat(1, "m", [0, 1])
    run.fetch_ends(early, [0])
    run.fetch(2, {0: 0})
    assert run.readers() == [NOBODY, M]


def test_a_fetch_that_was_sent_before_a_member_lost_the_partition_is_its_own() -> None:
    """As are those that it sends before it notices, on the same connection."""
    run = ToldRun()
    run.heartbeat(1, "m", [0])
    early = run.fetch_begins(2, {0: 0})
    run.heartbeat(3, "n", [0])
    run.fetch_ends(early, [0])
    run.fetch(2, {0: 1})
    run.fetch(4, {0: 1})
    assert run.readers() == [M, M, N]


def test_a_partition_that_comes_back_to_a_member_is_its_own_again() -> None:
    run = ToldRun()
    run.heartbeat(1, "m", [0])
    run.heartbeat(3, "n", [0])
    run.heartbeat(3, "n", [])
    run.heartbeat(1, "m", [])
    run.heartbeat(1, "m", [0])
    run.fetch(2, {0: 0})
    assert run.readers() == [M]


def test_a_member_that_has_left_sends_no_fetch_on_any_connection() -> None:
    run = ToldRun()
    run.heartbeat(1, "m", [0])
    run.fetch(2, {0: 0})
    late = run.fetch_begins(2, {0: 1})
    run.heartbeat(1, "m", epoch=-1)
    run.fetch_ends(late, [0])
    for connection in (1, 2, 3):
        run.fetch(connection, {0: 2})
    assert run.readers() == [M, *[NOBODY] * 4]


def test_a_member_of_another_host_sent_no_fetch_of_this_one() -> None:
    run = ToldRun()
    for connection, host in ((1, "a"), (2, "a"), (3, "b")):
        run.client(connection, host)
    run.heartbeat(1, "m", [0])
    run.fetch(3, {0: 0})
    run.fetch(2, {0: 0})
    assert run.readers() == [NOBODY, M]


def test_a_member_whose_name_comes_from_another_host_is_another_one() -> None:
    """The consumer was moved, and takes its name along."""
    run = ToldRun()
    for connection, host in ((1, "a"), (2, "a"), (3, "b"), (4, "b")):
        run.client(connection, host)
    run.heartbeat(1, "m", [0])
    run.heartbeat(3, "m", [0, 1])
    run.fetch(4, {0: 0})
    run.fetch(2, {0: 0})
    assert run.readers() == [M, NOBODY]


def test_a_member_that_is_gone_goes_on_until_another_speaks_on_its_connection() -> None:
    run = ToldRun()
    for connection, host in ((1, "a"), (2, "a"), (3, "b"), (4, "a")):
        run.client(connection, host)
    run.heartbeat(1, "m", [0, 1])
    run.heartbeat(3, "m", [0])
    run.fetch(2, {1: 0})
    run.closed(2)
    run.heartbeat(1, "n", [0])
    run.fetch(4, {1: 1})
    assert run.readers() == [M, NOBODY]


def test_a_connection_of_a_member_that_has_left_is_of_no_other_group() -> None:
    run = ToldRun()
    run.heartbeat(1, "m", [0])
    run.fetch(2, {0: 0})
    run.heartbeat(1, "m", epoch=-1)
    run.heartbeat(3, "n", [0], group="h")
    run.fetch(2, {0: 1})
    run.fetch(4, {0: 1})
    assert run.readers() == [M, NOBODY, ("h", "n", None)]


@pytest.mark.parametrize(
    ("key", "key_type", "reader"),
    [("g", GROUP, M), ("other", GROUP, NOBODY), ("other", TRANSACTION, M)],
)
def test_a_consumer_looks_for_the_coordinator_of_its_own_group(
    key: str, key_type: int, reader: Reader
) -> None:
    """That of a transaction says nothing of its group."""
    run = ToldRun()
    run.heartbeat(1, "m", [0])
    look_for_coordinator(run, 2, key, key_type)
    run.fetch(2, {0: 0})
    assert run.readers() == [reader]


def test_a_member_that_has_no_partitions_yet_tells_the_group_of_its_connection() -> None:
    """Then a member of another group fetches nothing there."""
    run = ToldRun()
    run.heartbeat(1, "m", [0])
    run.heartbeat(2, "n", group="h")
    run.fetch(2, {0: 0})
    assert run.readers() == [NOBODY]


@pytest.mark.parametrize(("committer", "reader"), [("n", NOBODY), ("", M)])
def test_a_commit_tells_the_group_of_its_connection_if_a_member_sent_it(
    committer: str, reader: Reader
) -> None:
    """Without a member it may be an administrator's."""
    run = ToldRun()
    run.heartbeat(1, "m", [0])
    commit = OffsetCommitRequest("h", 1, committer, None, -1, [])
    run.request(2, (ApiKey.OFFSET_COMMIT, 8), commit)
    run.fetch(2, {0: 0})
    assert run.readers() == [reader]


def test_a_connection_that_names_several_groups_is_shared_by_several_consumers() -> None:
    """Then each member of the client may have sent a Fetch on it, whatever was named last."""
    run = ToldRun()
    run.heartbeat(1, "m", [0])
    run.heartbeat(3, "n", [1], group="h")
    look_for_coordinator(run, 2, "g")
    look_for_coordinator(run, 2, "h")
    run.fetch(2, {0: 0})
    run.fetch(2, {1: 0})
    assert run.readers() == [M, ("h", "n", None)]


def test_a_connection_that_turns_out_to_be_shared_leaves_open_what_was_certain() -> None:
    """Who reads there, and who does not."""
    run = ToldRun()
    run.heartbeat(1, "m", [0, 1])
    run.heartbeat(3, "n", [0], group="h")
    run.fetch(2, {0: 0, 1: 0})
    look_for_coordinator(run, 2, "g")
    run.fetch(2, {0: 1})
    look_for_coordinator(run, 2, "h")
    run.fetch(2, {0: 1})
    assert run.readers() == [M, M, M, (None, None, ["m", "n"])]


def test_a_connection_on_which_two_members_speak_in_turns_is_shared_by_both() -> None:
    run = ToldRun()
    run.heartbeat(1, "m", [0])
    run.heartbeat(1, "n", [1])
    run.fetch(1, {0: 0})
    assert run.readers() == [NOBODY]  # so far `n` may have replaced `m`
    run.heartbeat(1, "m")
    run.fetch(1, {0: 0})
    run.fetch(1, {1: 0})
    assert run.readers()[1:] == [M, N]


def test_of_several_members_those_remain_that_have_held_all_partitions_of_the_connection() -> None:
    run = ToldRun()
    run.heartbeat(1, "m", [0, 1])
    run.heartbeat(3, "o", [0], group="h")
    run.fetch(2, {0: 0})
    run.fetch(2, {0: 0, 1: 0})
    run.fetch(2, {0: 1})
    assert run.readers() == [(None, None, ["m", "o"]), M, M, M]
    run.fetch(4, {0: 0})
    run.fetch(2, {0: 2})
    run.fetch(4, {0: 1})
    assert run.readers()[4:] == [(None, None, ["m", "o"]), M, ("h", "o", None)]


@pytest.mark.parametrize("elsewhere", [False, True])
def test_several_members_of_one_group_leave_the_group_certain(elsewhere: bool) -> None:
    """Unless one of them fetches elsewhere: then it may be somebody without a group."""
    run = ToldRun()
    run.heartbeat(1, "m", [0])
    if elsewhere:
        run.fetch(2, {0: 0})
    run.heartbeat(3, "n", [0])
    between = run.fetch_begins(4, {0: 0})
    run.heartbeat(1, "m", [])
    run.heartbeat(1, "m", [0])
    run.fetch_ends(between, [0])
    assert run.readers()[-1] == (None if elsewhere else "g", None, ["m", "n"])
