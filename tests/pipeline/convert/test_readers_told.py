"""Which member sent a Fetch, entry by entry."""

from __future__ import annotations

from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.pipeline.convert.told_run import NOBODY, ToldRun

M = ("g", "m", None)


def look_for_coordinator(run: ToldRun, connection: int, group: str = "g") -> None:
    message = FindCoordinatorRequest(coordinator_keys=[group])
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
    assert run.readers() == [M, (None, None, ["m"]), M, M]
    run.closed(3)
    run.fetch(2, {0: 2})
    assert run.readers()[4:] == [NOBODY]
