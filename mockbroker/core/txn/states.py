"""The states of a transactional id, their transitions and their answers to requests.

A transactional id names one producer across its restarts. Its coordinator holds the producer id,
the epoch and the state of the transaction. The first partition opens a transaction (Ongoing). One
record in the coordinator's log decides the end (PrepareCommit, PrepareAbort), which then always
completes: a marker goes to each partition, and when all are written the transaction is complete
(CompleteCommit, CompleteAbort). An InitProducerId or a timeout fences an open transaction
(PrepareEpochFence) and aborts it. An expired id is Dead and is removed.

    Empty --> Ongoing --> PrepareCommit --> CompleteCommit --+
      ^         |  ^                                         |
      |         |  +-----------------------------------------+
      |         v                                            |
      |   (PrepareEpochFence) --> PrepareAbort --> CompleteAbort
      +------------------------------------------------------+

A transition is *pending* until its record is stored; meanwhile requests get
CONCURRENT_TRANSACTIONS. The completion is pending until all markers are written. PrepareEpochFence
and Dead exist only as pending states: their record has PrepareAbort, or is a tombstone.

Two tables, each total over its two dimensions:

- `TRANSITIONS`: state x trigger -> next state. Every other cell is in `FORBIDDEN`.
- `ANSWERS`: state x request -> error code or action. The request has the right producer id and
  epoch.

An EndTxn belongs to one of two protocols. In the first (TV1) the epoch stays, so a retry looks like
the first request. In the second (TV2, KIP-890) each end raises the epoch: an EndTxn with the former
epoch is a retry, and one with the current epoch is a new end.

Source: TransactionState, TransactionCoordinator.
"""

from __future__ import annotations

from enum import Enum

from mockbroker_protocol import ErrorCode


class TransactionState(Enum):
    """States, with their names in DescribeTransactions and ListTransactions."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"


# The code of each state in the records of `__transaction_state`.
STATUS_CODES: dict[TransactionState, int] = {
    state: code for code, state in enumerate(TransactionState)
}
STATES_BY_CODE: dict[int, TransactionState] = dict(enumerate(TransactionState))


class Trigger(Enum):
    """Causes of a transition."""

    INITIALISED = "a producer gets an epoch"
    ADDED = "partitions are added"
    COMMITTED = "the producer commits"
    ABORTED = "the transaction is aborted"
    ABORTED_EMPTY = "the producer aborts an empty transaction (TV2)"
    FENCED = "the producer is fenced"
    MARKED = "every partition has its marker"
    EXPIRED = "the id was unused for too long"


TRANSITIONS: dict[TransactionState, dict[Trigger, TransactionState]] = {
    TransactionState.EMPTY: {
        Trigger.INITIALISED: TransactionState.EMPTY,
        Trigger.ADDED: TransactionState.ONGOING,
        Trigger.ABORTED_EMPTY: TransactionState.PREPARE_ABORT,
        Trigger.EXPIRED: TransactionState.DEAD,
    },
    TransactionState.ONGOING: {
        Trigger.ADDED: TransactionState.ONGOING,
        Trigger.COMMITTED: TransactionState.PREPARE_COMMIT,
        Trigger.ABORTED: TransactionState.PREPARE_ABORT,
        Trigger.FENCED: TransactionState.PREPARE_EPOCH_FENCE,
    },
    TransactionState.PREPARE_COMMIT: {Trigger.MARKED: TransactionState.COMPLETE_COMMIT},
    TransactionState.PREPARE_ABORT: {Trigger.MARKED: TransactionState.COMPLETE_ABORT},
    TransactionState.COMPLETE_COMMIT: {
        Trigger.INITIALISED: TransactionState.EMPTY,
        Trigger.ADDED: TransactionState.ONGOING,
        Trigger.ABORTED_EMPTY: TransactionState.PREPARE_ABORT,
        Trigger.EXPIRED: TransactionState.DEAD,
    },
    TransactionState.COMPLETE_ABORT: {
        Trigger.INITIALISED: TransactionState.EMPTY,
        Trigger.ADDED: TransactionState.ONGOING,
        Trigger.ABORTED_EMPTY: TransactionState.PREPARE_ABORT,
        Trigger.EXPIRED: TransactionState.DEAD,
    },
    TransactionState.DEAD: {},
    TransactionState.PREPARE_EPOCH_FENCE: {Trigger.ABORTED: TransactionState.PREPARE_ABORT},
}

_ENDS = frozenset({Trigger.COMMITTED, Trigger.ABORTED})
_NOTHING_OPEN = _ENDS | {Trigger.FENCED, Trigger.MARKED}

# The transitions that must not occur; with TRANSITIONS they cover each pair.
FORBIDDEN: dict[TransactionState, frozenset[Trigger]] = {
    TransactionState.EMPTY: _NOTHING_OPEN,
    # InitProducerId fences an open transaction first.
    TransactionState.ONGOING: frozenset(
        {Trigger.INITIALISED, Trigger.ABORTED_EMPTY, Trigger.MARKED, Trigger.EXPIRED}
    ),
    # A decided end completes; no other transition is possible before.
    TransactionState.PREPARE_COMMIT: frozenset(Trigger) - {Trigger.MARKED},
    TransactionState.PREPARE_ABORT: frozenset(Trigger) - {Trigger.MARKED},
    TransactionState.COMPLETE_COMMIT: _NOTHING_OPEN,
    TransactionState.COMPLETE_ABORT: _NOTHING_OPEN,
    TransactionState.DEAD: frozenset(Trigger),
    TransactionState.PREPARE_EPOCH_FENCE: frozenset(Trigger) - {Trigger.ABORTED},
}


class TxnRequest(Enum):
    """The requests whose answer depends on the state."""

    INIT = "InitProducerId"
    ADD = "AddPartitionsToTxn, AddOffsetsToTxn"
    VERIFY = "AddPartitionsToTxn that only verifies"
    TV1_COMMIT = "EndTxn up to v4, commit"
    TV1_ABORT = "EndTxn up to v4, abort"
    TV2_COMMIT = "EndTxn since v5 with the current epoch, commit"
    TV2_ABORT = "EndTxn since v5 with the current epoch, abort"
    TV2_COMMIT_RETRY = "EndTxn since v5 with the former epoch, commit"
    TV2_ABORT_RETRY = "EndTxn since v5 with the former epoch, abort"


class TxnAction(Enum):
    """Actions where the answer depends on more than the state."""

    BUMP_EPOCH = "assign a higher epoch, or a new producer id if the epochs are exhausted"
    FENCE = "abort the open transaction under a higher epoch; the producer retries meanwhile"
    ADD = "add the partitions that are not in the transaction"
    VERIFY = "check each partition"
    END = "decide the end"
    END_EMPTY = "abort an empty transaction, which raises the epoch"
    REPEAT = "repeat the first answer, with the resulting producer id and epoch"


CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS
WRONG_STATE = ErrorCode.INVALID_TXN_STATE
FENCED = ErrorCode.PRODUCER_FENCED
IMPOSSIBLE = ErrorCode.UNKNOWN_SERVER_ERROR  # Kafka throws IllegalStateException

ANSWERS: dict[TransactionState, dict[TxnRequest, ErrorCode | TxnAction]] = {
    TransactionState.EMPTY: {
        TxnRequest.INIT: TxnAction.BUMP_EPOCH,
        TxnRequest.ADD: TxnAction.ADD,
        TxnRequest.VERIFY: TxnAction.VERIFY,
        TxnRequest.TV1_COMMIT: WRONG_STATE,
        TxnRequest.TV1_ABORT: WRONG_STATE,
        TxnRequest.TV2_COMMIT: WRONG_STATE,
        TxnRequest.TV2_ABORT: TxnAction.END_EMPTY,
        TxnRequest.TV2_COMMIT_RETRY: FENCED,
        TxnRequest.TV2_ABORT_RETRY: FENCED,
    },
    TransactionState.ONGOING: {
        TxnRequest.INIT: TxnAction.FENCE,
        TxnRequest.ADD: TxnAction.ADD,
        TxnRequest.VERIFY: TxnAction.VERIFY,
        TxnRequest.TV1_COMMIT: TxnAction.END,
        TxnRequest.TV1_ABORT: TxnAction.END,
        TxnRequest.TV2_COMMIT: TxnAction.END,
        TxnRequest.TV2_ABORT: TxnAction.END,
        TxnRequest.TV2_COMMIT_RETRY: FENCED,
        TxnRequest.TV2_ABORT_RETRY: FENCED,
    },
    TransactionState.PREPARE_COMMIT: {
        TxnRequest.INIT: CONCURRENT,
        TxnRequest.ADD: CONCURRENT,
        TxnRequest.VERIFY: CONCURRENT,
        TxnRequest.TV1_COMMIT: CONCURRENT,
        TxnRequest.TV1_ABORT: WRONG_STATE,
        TxnRequest.TV2_COMMIT: FENCED,
        TxnRequest.TV2_ABORT: FENCED,
        TxnRequest.TV2_COMMIT_RETRY: CONCURRENT,
        TxnRequest.TV2_ABORT_RETRY: WRONG_STATE,
    },
    TransactionState.PREPARE_ABORT: {
        TxnRequest.INIT: CONCURRENT,
        TxnRequest.ADD: CONCURRENT,
        TxnRequest.VERIFY: CONCURRENT,
        TxnRequest.TV1_COMMIT: WRONG_STATE,
        TxnRequest.TV1_ABORT: CONCURRENT,
        TxnRequest.TV2_COMMIT: FENCED,
        TxnRequest.TV2_ABORT: FENCED,
        TxnRequest.TV2_COMMIT_RETRY: WRONG_STATE,
        TxnRequest.TV2_ABORT_RETRY: CONCURRENT,
    },
    TransactionState.COMPLETE_COMMIT: {
        TxnRequest.INIT: TxnAction.BUMP_EPOCH,
        TxnRequest.ADD: TxnAction.ADD,
        TxnRequest.VERIFY: TxnAction.VERIFY,
        TxnRequest.TV1_COMMIT: TxnAction.REPEAT,
        TxnRequest.TV1_ABORT: WRONG_STATE,
        TxnRequest.TV2_COMMIT: WRONG_STATE,
        TxnRequest.TV2_ABORT: TxnAction.END_EMPTY,
        TxnRequest.TV2_COMMIT_RETRY: TxnAction.REPEAT,
        TxnRequest.TV2_ABORT_RETRY: WRONG_STATE,
    },
    TransactionState.COMPLETE_ABORT: {
        TxnRequest.INIT: TxnAction.BUMP_EPOCH,
        TxnRequest.ADD: TxnAction.ADD,
        TxnRequest.VERIFY: TxnAction.VERIFY,
        TxnRequest.TV1_COMMIT: WRONG_STATE,
        TxnRequest.TV1_ABORT: TxnAction.REPEAT,
        TxnRequest.TV2_COMMIT: WRONG_STATE,
        TxnRequest.TV2_ABORT: TxnAction.END_EMPTY,
        TxnRequest.TV2_COMMIT_RETRY: WRONG_STATE,
        TxnRequest.TV2_ABORT_RETRY: TxnAction.REPEAT,
    },
    TransactionState.DEAD: {
        TxnRequest.INIT: IMPOSSIBLE,
        TxnRequest.ADD: IMPOSSIBLE,
        TxnRequest.VERIFY: TxnAction.VERIFY,
        TxnRequest.TV1_COMMIT: IMPOSSIBLE,
        TxnRequest.TV1_ABORT: IMPOSSIBLE,
        TxnRequest.TV2_COMMIT: IMPOSSIBLE,
        TxnRequest.TV2_ABORT: IMPOSSIBLE,
        TxnRequest.TV2_COMMIT_RETRY: FENCED,
        TxnRequest.TV2_ABORT_RETRY: FENCED,
    },
    TransactionState.PREPARE_EPOCH_FENCE: {
        TxnRequest.INIT: IMPOSSIBLE,
        TxnRequest.ADD: IMPOSSIBLE,
        TxnRequest.VERIFY: TxnAction.VERIFY,
        TxnRequest.TV1_COMMIT: IMPOSSIBLE,
        TxnRequest.TV1_ABORT: IMPOSSIBLE,
        TxnRequest.TV2_COMMIT: IMPOSSIBLE,
        TxnRequest.TV2_ABORT: IMPOSSIBLE,
        TxnRequest.TV2_COMMIT_RETRY: FENCED,
        TxnRequest.TV2_ABORT_RETRY: FENCED,
    },
}

# By (second protocol, commit, with the former epoch).
END_REQUESTS: dict[tuple[bool, bool, bool], TxnRequest] = {
    (False, True, False): TxnRequest.TV1_COMMIT,
    (False, False, False): TxnRequest.TV1_ABORT,
    (True, True, False): TxnRequest.TV2_COMMIT,
    (True, False, False): TxnRequest.TV2_ABORT,
    (True, True, True): TxnRequest.TV2_COMMIT_RETRY,
    (True, False, True): TxnRequest.TV2_ABORT_RETRY,
}
