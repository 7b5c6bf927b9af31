r"""The states of records in a share group, of share partitions, and of share sessions (KIP-932).

A fetch *acquires* Available records for a member, under an *acquisition lock* with a deadline. The
member acknowledges each record: it accepts, releases or rejects it, or reports that the offset has
no record (a *gap*). It may renew the lock (KIP-1222). The lock ends at its deadline, and with the
member's share session.

    Available --(acquire)--> Acquired --(accept)------------------> Acknowledged
        ^                       |   \
        +-(release, lock over)--+    +--(reject, gap, delivered too often)--> Archived

A record that becomes Available again keeps its *delivery count*. If the count has reached the
limit, the record becomes Archived instead; so does a record below the *share-partition start
offset* (SPSO), which the log no longer has. Archived and Acknowledged are final: the SPSO moves
past them.

An acknowledgement is written to the share coordinator before its answer. Until then the record has
an *ongoing transition*: no member can acquire or acknowledge it, but the log may lose it. If the
write fails, the transition is rolled back (`COMPLETIONS`). A lock that is over takes effect at
once, whether or not its write succeeds.

Archiving is a state of a later release (KIP-1191). No event leads to it or leaves it here.

Source: RecordState, InFlightState, SharePartition, SharePartitionManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum
from typing import NamedTuple

from mockbroker_protocol import ErrorCode

NO_MEMBER = ""  # of a record that no member has acquired
INITIAL_EPOCH = 0
FINAL_EPOCH = -1
EPOCH_MAX = 0x7FFFFFFF


# -- records ---------------------------------------------------------------------------------------


class RecordState(IntEnum):
    """The values are those in `__share_group_state`."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4


class RecordEvent(Enum):
    __hash__ = object.__hash__  # a member is one object, and Enum's own hash is slow

    ACQUIRE = "a member fetches the record"
    ACCEPT = "the member has processed the record"
    RELEASE = "the member gives the record back"
    REJECT = "the member cannot process the record"
    GAP = "the member found no record at the offset"
    RENEW = "the member renews its acquisition lock"
    EXPIRE = "the acquisition lock has reached its deadline"
    LEAVE = "the member's share session has ended"
    REMOVE = "the log has lost the record: by its start offset, or by compaction"
    ABORT = "the record's transaction was aborted, and the group reads committed records"


class Written(Enum):
    """Whether the share coordinator gets the new state, and when it counts."""

    FIRST = "written first; a failed write rolls the event back"
    LATER = "takes effect at once; a failed write changes nothing"
    NEVER = "not written"


_NO: RecordState | None = None

# The state after an event; None if the event has no effect, or is refused.
RECORD_TRANSITIONS: Mapping[RecordState, Mapping[RecordEvent, RecordState | None]] = {
    RecordState.AVAILABLE: {
        RecordEvent.ACQUIRE: RecordState.ACQUIRED,
        RecordEvent.ACCEPT: _NO,
        RecordEvent.RELEASE: _NO,
        RecordEvent.REJECT: _NO,
        RecordEvent.GAP: _NO,
        RecordEvent.RENEW: _NO,
        RecordEvent.EXPIRE: _NO,
        RecordEvent.LEAVE: _NO,
        RecordEvent.REMOVE: RecordState.ARCHIVED,
        RecordEvent.ABORT: _NO,
    },
    RecordState.ACQUIRED: {
        RecordEvent.ACQUIRE: _NO,
        RecordEvent.ACCEPT: RecordState.ACKNOWLEDGED,
        RecordEvent.RELEASE: RecordState.AVAILABLE,
        RecordEvent.REJECT: RecordState.ARCHIVED,
        RecordEvent.GAP: RecordState.ARCHIVED,
        RecordEvent.RENEW: RecordState.ACQUIRED,
        RecordEvent.EXPIRE: RecordState.AVAILABLE,
        RecordEvent.LEAVE: RecordState.AVAILABLE,
        RecordEvent.REMOVE: _NO,  # the member still has it; the end of its lock archives it
        RecordEvent.ABORT: RecordState.ARCHIVED,
    },
    RecordState.ACKNOWLEDGED: dict.fromkeys(RecordEvent, _NO),
    RecordState.ARCHIVING: dict.fromkeys(RecordEvent, _NO),
    RecordState.ARCHIVED: dict.fromkeys(RecordEvent, _NO),
}


class ReturnFacts(NamedTuple):
    """The facts about a record that would become Available again."""

    below_start: bool  # its offset is below the SPSO
    at_limit: bool  # its delivery count has reached the limit


RETURN_STATES: Mapping[ReturnFacts, RecordState] = {
    ReturnFacts(False, False): RecordState.AVAILABLE,
    ReturnFacts(False, True): RecordState.ARCHIVED,
    ReturnFacts(True, False): RecordState.ARCHIVED,
    ReturnFacts(True, True): RecordState.ARCHIVED,
}

WRITTEN: Mapping[RecordEvent, Written] = {
    RecordEvent.ACQUIRE: Written.NEVER,
    RecordEvent.ACCEPT: Written.FIRST,
    RecordEvent.RELEASE: Written.FIRST,
    RecordEvent.REJECT: Written.FIRST,
    RecordEvent.GAP: Written.FIRST,
    RecordEvent.RENEW: Written.NEVER,
    RecordEvent.EXPIRE: Written.LATER,
    RecordEvent.LEAVE: Written.FIRST,
    RecordEvent.REMOVE: Written.NEVER,
    RecordEvent.ABORT: Written.NEVER,
}


class CompletionFacts(NamedTuple):
    """The facts that decide how an ongoing transition ends."""

    written: bool  # the share coordinator has the new state
    removed: bool  # REMOVE has archived the record meanwhile
    expired: bool  # the acquisition lock has reached its deadline meanwhile
    at_limit: bool  # the delivery count has reached the limit


class Completion(Enum):
    __hash__ = object.__hash__

    KEEP = "the new state remains, and the lock ends"
    ROLL_BACK = "Acquired again, by the same member and with the same lock"
    RETURN = "Available, because the lock is over"
    ARCHIVE = "Archived, because the lock is over and the record was delivered too often"


COMPLETIONS: Mapping[CompletionFacts, Completion] = {
    CompletionFacts(True, False, False, False): Completion.KEEP,
    CompletionFacts(True, False, False, True): Completion.KEEP,
    CompletionFacts(True, False, True, False): Completion.KEEP,
    CompletionFacts(True, False, True, True): Completion.KEEP,
    CompletionFacts(True, True, False, False): Completion.KEEP,
    CompletionFacts(True, True, False, True): Completion.KEEP,
    CompletionFacts(True, True, True, False): Completion.KEEP,
    CompletionFacts(True, True, True, True): Completion.KEEP,
    CompletionFacts(False, False, False, False): Completion.ROLL_BACK,
    CompletionFacts(False, False, False, True): Completion.ROLL_BACK,
    CompletionFacts(False, False, True, False): Completion.RETURN,
    CompletionFacts(False, False, True, True): Completion.ARCHIVE,
    CompletionFacts(False, True, False, False): Completion.KEEP,
    CompletionFacts(False, True, False, True): Completion.KEEP,
    CompletionFacts(False, True, True, False): Completion.KEEP,
    CompletionFacts(False, True, True, True): Completion.KEEP,
}

FINAL_STATES = frozenset((RecordState.ACKNOWLEDGED, RecordState.ARCHIVED))

# The acknowledge types of ShareFetch and ShareAcknowledge.
RENEW_TYPE = 4
ACKNOWLEDGE_TYPES: Mapping[int, RecordEvent] = {
    0: RecordEvent.GAP,
    1: RecordEvent.ACCEPT,
    2: RecordEvent.RELEASE,
    3: RecordEvent.REJECT,
    RENEW_TYPE: RecordEvent.RENEW,
}


class AcquireMode(IntEnum):
    """How a fetch observes its maximum number of records (KIP-1206)."""

    BATCH_OPTIMIZED = 0  # whole batches; the last one may exceed the maximum
    RECORD_LIMIT = 1  # never more records than the maximum


# -- share partitions ------------------------------------------------------------------------------


class SharePartitionState(Enum):
    __hash__ = object.__hash__

    EMPTY = "Empty"
    INITIALIZING = "Initializing"
    ACTIVE = "Active"
    FAILED = "Failed"
    FENCED = "Fenced"


class SharePartitionEvent(Enum):
    __hash__ = object.__hash__

    READ_SENT = "its state is requested from the share coordinator"
    READ_DONE = "the share coordinator has answered with its state"
    READ_FAILED = "the share coordinator, or the offset reset, has answered with an error"
    FENCE = "leadership moved, the topic was deleted, the group is empty, or a write was fenced"


_SAME: SharePartitionState | None = None

# The state after an event; None if the event has no effect: late answers to a fenced one.
SHARE_PARTITION_TRANSITIONS: Mapping[
    SharePartitionState, Mapping[SharePartitionEvent, SharePartitionState | None]
] = {
    SharePartitionState.EMPTY: {
        SharePartitionEvent.READ_SENT: SharePartitionState.INITIALIZING,
        SharePartitionEvent.READ_DONE: _SAME,
        SharePartitionEvent.READ_FAILED: _SAME,
        SharePartitionEvent.FENCE: SharePartitionState.FENCED,
    },
    SharePartitionState.INITIALIZING: {
        SharePartitionEvent.READ_SENT: _SAME,
        SharePartitionEvent.READ_DONE: SharePartitionState.ACTIVE,
        SharePartitionEvent.READ_FAILED: SharePartitionState.FAILED,
        SharePartitionEvent.FENCE: SharePartitionState.FENCED,
    },
    SharePartitionState.ACTIVE: {
        SharePartitionEvent.READ_SENT: _SAME,
        SharePartitionEvent.READ_DONE: _SAME,
        SharePartitionEvent.READ_FAILED: _SAME,
        SharePartitionEvent.FENCE: SharePartitionState.FENCED,
    },
    SharePartitionState.FAILED: {
        SharePartitionEvent.READ_SENT: _SAME,
        SharePartitionEvent.READ_DONE: _SAME,
        SharePartitionEvent.READ_FAILED: _SAME,
        SharePartitionEvent.FENCE: SharePartitionState.FENCED,
    },
    SharePartitionState.FENCED: dict.fromkeys(SharePartitionEvent, _SAME),
}


# -- share sessions --------------------------------------------------------------------------------


class SessionRequest(Enum):
    """A request's share session epoch, compared with its session."""

    __hash__ = object.__hash__

    INITIAL = "0"
    FINAL = "-1"
    EXPECTED = "the expected one"
    OTHER = "another one"


class SessionStep(Enum):
    __hash__ = object.__hash__

    OPEN = "drop the member's former session, and open one if there is room"
    CLOSE = "answer, then close the session and release the member's records"
    CONTINUE = "apply the changes, and expect the next epoch"


class SessionFacts(NamedTuple):
    """`known` is whether the member has a session with this broker."""

    request: SessionRequest
    known: bool


FETCH_SESSION_ANSWERS: Mapping[SessionFacts, SessionStep | ErrorCode] = {
    SessionFacts(SessionRequest.INITIAL, False): SessionStep.OPEN,
    SessionFacts(SessionRequest.INITIAL, True): SessionStep.OPEN,
    SessionFacts(SessionRequest.FINAL, False): ErrorCode.SHARE_SESSION_NOT_FOUND,
    SessionFacts(SessionRequest.FINAL, True): SessionStep.CLOSE,
    SessionFacts(SessionRequest.EXPECTED, True): SessionStep.CONTINUE,
    SessionFacts(SessionRequest.OTHER, False): ErrorCode.SHARE_SESSION_NOT_FOUND,
    SessionFacts(SessionRequest.OTHER, True): ErrorCode.INVALID_SHARE_SESSION_EPOCH,
}

ACKNOWLEDGE_SESSION_ANSWERS: Mapping[SessionFacts, SessionStep | ErrorCode] = {
    SessionFacts(SessionRequest.INITIAL, False): ErrorCode.INVALID_SHARE_SESSION_EPOCH,
    SessionFacts(SessionRequest.INITIAL, True): ErrorCode.INVALID_SHARE_SESSION_EPOCH,
    SessionFacts(SessionRequest.FINAL, False): ErrorCode.SHARE_SESSION_NOT_FOUND,
    SessionFacts(SessionRequest.FINAL, True): SessionStep.CLOSE,
    SessionFacts(SessionRequest.EXPECTED, True): SessionStep.CONTINUE,
    SessionFacts(SessionRequest.OTHER, False): ErrorCode.SHARE_SESSION_NOT_FOUND,
    SessionFacts(SessionRequest.OTHER, True): ErrorCode.INVALID_SHARE_SESSION_EPOCH,
}


def next_epoch(epoch: int) -> int:
    """The share session epoch after `epoch`; 1 follows 2147483647."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == EPOCH_MAX else epoch + 1
