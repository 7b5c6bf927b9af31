"""Bugs of share partitions, share sessions and share coordinators."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mockbroker.core.share import acknowledgement
from mockbroker.core.share.in_flight import InFlightState
from mockbroker.core.share.partition import SharePartition
from mockbroker.core.share.records import ShareState
from mockbroker.core.share.sessions import ShareSessionCache
from mockbroker.core.share.shard import ShareShard
from mockbroker.core.share.states import (
    RECORD_TRANSITIONS,
    RETURN_STATES,
    RecordEvent,
    RecordState,
    ReturnFacts,
)
from tests.simulation.planted.planting import Planting, planted, put, rewritten


@planted("Records that a member has acquired are acquired by the next one, too.")
@contextmanager
def acquired_records_are_acquirable() -> Iterator[None]:
    acquired = RECORD_TRANSITIONS[RecordState.ACQUIRED]
    with (
        rewritten(
            InFlightState.is_acquirable,
            "self.state is RecordState.AVAILABLE and",
            "self.state in (RecordState.AVAILABLE, RecordState.ACQUIRED) and",
        ),
        put(acquired, RecordEvent.ACQUIRE, RecordState.ACQUIRED),
    ):
        yield


@planted("An acquisition lock holds a tenth of its time.")
def locks_end_early() -> Planting:
    return rewritten(
        SharePartition.new_lock,
        "self.configs.lock_duration_ms",
        "self.configs.lock_duration_ms // 10",
    )


@planted("A record that was delivered as often as allowed becomes Available again.")
def delivered_too_often_is_available() -> Planting:
    return put(RETURN_STATES, ReturnFacts(False, True), RecordState.AVAILABLE)


@planted("A delivery after a released one is not counted.")
def deliveries_are_not_counted() -> Planting:
    return rewritten(InFlightState.acquire, "self.delivery_count += 1", "self.delivery_count = 1")


@planted("Rejected records become Available.")
def rejected_records_are_available() -> Planting:
    return put(RECORD_TRANSITIONS[RecordState.ACQUIRED], RecordEvent.REJECT, RecordState.AVAILABLE)


@planted("Acknowledgements are answered, and not written to the share coordinator.")
def acknowledgements_are_not_written() -> Planting:
    return rewritten(acknowledgement._finish, "share.write(changes, written)", "written(None)")


@planted("The state of a share partition is read without its batches.")
def batches_are_not_read() -> Planting:
    return rewritten(
        SharePartition._take_batches, "in result.state_batches:", "in result.state_batches[:0]:"
    )


@planted("A share coordinator forgets the batches of earlier writes.")
def former_batches_are_dropped() -> Planting:
    return rewritten(ShareState.merged, "self.batches + update.batches", "update.batches")


@planted("Records whose lock has ended are not found by later fetches.")
def expired_records_are_not_found() -> Planting:
    return rewritten(acknowledgement.expire, "share.find_next_fetch_offset = True", "pass")


@planted("A share session takes every epoch.")
def share_sessions_take_every_epoch() -> Planting:
    return rewritten(
        ShareSessionCache._step,
        "elif session is not None and session.epoch == epoch:",
        "elif session is not None:",
    )


@planted("A share coordinator takes the writes of a former leader of the share partition.")
def former_share_leaders_write() -> Planting:
    return rewritten(
        ShareShard._why_refused, "NO_EPOCH != leader_epoch < entry.leader_epoch", "False"
    )


@planted("A share coordinator answers before its records are replicated.")
def share_coordinators_do_not_wait() -> Planting:
    return rewritten(ShareShard._answer, "if self.is_replicated:", "if True:")


@planted("Records that are Available again are not found by later fetches.")
def released_records_are_not_found() -> Planting:
    return rewritten(
        SharePartition._complete, "if state.state is RecordState.AVAILABLE:", "if False:"
    )
