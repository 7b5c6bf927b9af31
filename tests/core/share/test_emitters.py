"""The events of share partitions: ranges of records, start offsets and sessions."""

from __future__ import annotations

from mockbroker.core.events import (
    Event,
    ShareRecordsMoved,
    ShareSessionChanged,
    ShareStartMoved,
)
from mockbroker.core.share import forcing
from mockbroker.core.share.acknowledgement import release_acquired
from mockbroker.core.share.states import RecordState
from mockbroker_protocol import ErrorCode
from tests.support.requests import batch_of
from tests.support.share import MEMBER, ShareNode, acknowledged, acquired

LOCK_MS = 30_000


def listened(node: ShareNode) -> list[Event]:
    events: list[Event] = []
    node.cluster.runtime.on_event.append(events.append)
    return events


def moved(events: list[Event]) -> list[tuple[str, int, int, str, int, str, str]]:
    """Change, offsets, state, delivery count, member and reason."""
    return [
        (e.change, e.first_offset, e.last_offset, e.state, e.delivery_count, e.member, e.reason)
        for e in events
        if isinstance(e, ShareRecordsMoved)
    ]


def starts(events: list[Event]) -> list[tuple[str, int, int, str]]:
    return [
        (e.change, e.former_offset, e.offset, e.reason)
        for e in events
        if isinstance(e, ShareStartMoved)
    ]


def test_neighbours_with_the_same_event_are_one_range(node: ShareNode) -> None:
    node.produced(batch_of(*[b"v"] * 6))
    events = listened(node)
    share = node.share()
    acquired(node)
    assert acknowledged(share, (0, 5, [1, 1, 2, 2, 3, 0])) is None
    assert moved(events) == [
        ("acquired", 0, 5, "Acquired", 1, MEMBER, ""),
        ("accepted", 0, 1, "Acknowledged", 1, MEMBER, ""),
        ("released", 2, 3, "Available", 1, MEMBER, ""),
        ("rejected", 4, 4, "Archived", 1, MEMBER, "rejected"),
        ("gap", 5, 5, "Archived", 1, MEMBER, "gap"),
    ]
    assert starts(events) == [("reset", -1, 0, ""), ("moved", 0, 2, "final")]


def test_a_write_that_takes_time_is_emitted_before_and_after(node: ShareNode) -> None:
    node.produced(batch_of(*[b"v"] * 2))
    share = node.share()
    acquired(node)
    events = listened(node)
    node.persister.holds = True
    told: list[object] = []
    release_acquired(share, MEMBER, told.append)
    assert moved(events) == [("writing", 0, 1, "Available", 1, MEMBER, "")]
    node.persister.answer(int(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    assert moved(events[1:]) == [("rolled_back", 0, 1, "Acquired", 1, MEMBER, "")]
    release_acquired(share, MEMBER, told.append)
    node.persister.answer()
    assert moved(events[3:]) == [("session_ended", 0, 1, "Available", 1, MEMBER, "")]


def test_a_fenced_share_partition_emits_only_what_was_written(node: ShareNode) -> None:
    node.produced(batch_of(*[b"v"] * 2))
    share = node.share()
    acquired(node)
    node.persister.holds = True
    release_acquired(share, MEMBER, lambda _: None)
    node.manager.fence(share)
    events = listened(node)
    node.persister.answer(int(ErrorCode.FENCED_STATE_EPOCH))
    assert events == []


def test_the_reason_says_why_a_record_is_archived(node: ShareNode) -> None:
    """The limit of deliveries at the end of a lock; the log's start for what is Available."""
    node.group_config("share.delivery.count.limit", "2")
    node.produced(batch_of(*[b"v"] * 1))
    share = node.share()
    events = listened(node)
    for _ in range(2):
        acquired(node)
        node.advance(LOCK_MS)
    assert moved(events)[-1] == ("lock_expired", 0, 0, "Archived", 2, MEMBER, "delivery_limit")
    assert starts(events) == [("moved", 0, 1, "final")]
    node.produced(batch_of(*[b"v"] * 2))
    acquired(node)
    assert acknowledged(share, (1, 2, [2])) is None
    share.log_start_moved(3)
    assert moved(events)[-1] == ("removed", 1, 2, "Archived", 1, "", "log_start")
    assert starts(events)[-1] == ("moved", 1, 3, "log_start")


def test_a_known_state_is_loaded(node: ShareNode) -> None:
    node.produced(batch_of(*[b"v"] * 9))
    topic_id = node.cluster.topics["t"].topic_id
    node.persister.put(("g", topic_id, 0), 3, (3, 4, int(RecordState.ACKNOWLEDGED), 1), epoch=7)
    events = listened(node)
    node.share()
    assert starts(events) == [("loaded", -1, 3, ""), ("moved", 3, 5, "final")]
    assert {e.state_epoch for e in events if isinstance(e, ShareStartMoved)} == {7}


def test_renewed_locks_and_the_cause_are_emitted(node: ShareNode) -> None:
    node.produced(batch_of(*[b"v"] * 2))
    share = node.share()
    acquired(node)
    events = listened(node)
    node.cluster.runtime.cause = "rule-1"
    assert acknowledged(share, (0, 0, [4])) is None
    assert moved(events) == [("renewed", 0, 0, "Acquired", 1, MEMBER, "")]
    assert [e.cause for e in events if isinstance(e, ShareRecordsMoved)] == ["rule-1"]


def test_changes_that_no_member_has_asked_for_are_emitted(node: ShareNode) -> None:
    """Those of actions: their cause says more than a reason."""
    node.produced(batch_of(*[b"v"] * 4))
    share = node.share()
    acquired(node)
    assert acknowledged(share, (2, 2, [2])) is None
    events = listened(node)
    assert forcing.archive(share, {2, 3}) == 2
    assert forcing.set_delivery_count(share, {0}, 4) == 1
    assert forcing.hand_out_again(share, None, lambda _: True) == 2
    assert moved(events) == [
        ("archived", 2, 2, "Archived", 1, "", ""),
        ("archived", 3, 3, "Archived", 1, MEMBER, ""),
        ("counted", 0, 0, "Acquired", 4, MEMBER, ""),
        ("handed_out", 0, 0, "Available", 4, MEMBER, ""),
        ("handed_out", 1, 1, "Available", 1, MEMBER, ""),
    ]


def test_a_session_is_opened_replaced_and_closed(node: ShareNode) -> None:
    node.topic("s")
    events = listened(node)
    node.share_fetch(0, node.wanted(topic="s"), max_wait_ms=0)
    node.share_fetch(0, node.wanted(topic="s"), max_wait_ms=0)
    node.share_fetch(-1)
    node.share_fetch(0, node.wanted(topic="s"), max_wait_ms=0)
    node.close()
    node.share_fetch(0, node.wanted(topic="s"), max_wait_ms=0)
    node.manager.unload()
    assert [(e.change, e.reason) for e in events if isinstance(e, ShareSessionChanged)] == [
        ("opened", ""),
        ("closed", "replaced"),
        ("opened", ""),
        ("closed", "final_epoch"),
        ("opened", ""),
        ("closed", "connection"),
        ("opened", ""),
        ("closed", "broker_stopped"),
    ]


def test_the_start_moves_to_the_first_record_that_the_log_still_has(node: ShareNode) -> None:
    for _ in range(2):
        node.produced(batch_of(*[b"v"] * 2))
    events = listened(node)
    assert acquired(node, offset=2) == [(2, 3, 1)]
    assert starts(events) == [("reset", -1, 0, ""), ("moved", 0, 2, "acquired")]


def test_a_batch_that_is_divided_while_it_is_written_has_the_state_of_each_record(
    node: ShareNode,
) -> None:
    node.produced(batch_of(*[b"v"] * 4))
    share = node.share()
    acquired(node)
    node.persister.holds = True
    release_acquired(share, MEMBER, lambda _: None)
    share.log_start_moved(2)
    events = listened(node)
    node.persister.answer()
    assert moved(events) == [
        ("session_ended", 0, 1, "Archived", 1, MEMBER, "log_start"),
        ("session_ended", 2, 3, "Available", 1, MEMBER, ""),
    ]
