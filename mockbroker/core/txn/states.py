"""The states of a transactional id and what each of them answers: the theory, then the tables.

A transactional id is one producer's name across its lives. Its coordinator remembers which producer
id and epoch it goes by, and where its transaction stands. The first partition opens a transaction
(Ongoing). Its end is decided by one record in the coordinator's log (PrepareCommit, PrepareAbort):
from there it is carried through, whatever happens. A marker goes to each partition; when all are
written the end is complete (CompleteCommit, CompleteAbort), and the next one may begin. Whoever
initialises anew, or runs out of time, has what is open fenced (PrepareEpochFence) and aborted. An
id that nobody used for long is Dead, and forgotten.

    Empty --> Ongoing --> PrepareCommit --> CompleteCommit --+
      ^         |  ^                                         |
      |         |  +-----------------------------------------+
      |         v                                            |
      |   (PrepareEpochFence) --> PrepareAbort --> CompleteAbort
      +------------------------------------------------------+

A move is *pending* from the moment it is decided until its record is stored; while one is, the
next is refused with CONCURRENT_TRANSACTIONS. Completion is pending as long as markers are on their
way. PrepareEpochFence and Dead are only ever pending: the record that follows says PrepareAbort, or
is a tombstone.

Two tables say all that the state decides, each total over its two dimensions:

- `TRANSITIONS`: state x trigger -> next state. What is not there is `FORBIDDEN`, cell by cell.
- `ANSWERS`: state x question -> error code, or the step to take. The question is that of the right
  producer id and epoch.

The questions of an end come in two protocols. In the first (TV1) the epoch stays, so an end asked
for twice looks like the first. In the second (TV2, KIP-890) each end raises the epoch, so an end
with the epoch before the present one is a retry, and one with the present epoch is a new end.

Source: TransactionState, TransactionCoordinator.
"""

from __future__ import annotations

from enum import Enum

from mockbroker_protocol import ErrorCode


class State(Enum):
    """States by the names that DescribeTransactions and ListTransactions show."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"


# What stands for each state in the records of `__transaction_state`.
STATUS_CODES: dict[State, int] = {state: code for code, state in enumerate(State)}
STATES_BY_CODE: dict[int, State] = dict(enumerate(State))


class Trigger(Enum):
    """What moves a transactional id from one state to another."""

    INITIALISED = "a producer is given the id, or a new epoch of it"
    ADDED = "partitions are added"
    COMMITTED = "the producer commits"
    ABORTED = "the producer aborts, or is made to"
    ABORTED_EMPTY = "the producer aborts without having added anything (TV2)"
    FENCED = "the producer is to be shut out"
    MARKED = "every partition has its marker"
    EXPIRED = "nobody used the id for too long"


TRANSITIONS: dict[State, dict[Trigger, State]] = {
    State.EMPTY: {
        Trigger.INITIALISED: State.EMPTY,
        Trigger.ADDED: State.ONGOING,
        Trigger.ABORTED_EMPTY: State.PREPARE_ABORT,
        Trigger.EXPIRED: State.DEAD,
    },
    State.ONGOING: {
        Trigger.ADDED: State.ONGOING,
        Trigger.COMMITTED: State.PREPARE_COMMIT,
        Trigger.ABORTED: State.PREPARE_ABORT,
        Trigger.FENCED: State.PREPARE_EPOCH_FENCE,
    },
    State.PREPARE_COMMIT: {Trigger.MARKED: State.COMPLETE_COMMIT},
    State.PREPARE_ABORT: {Trigger.MARKED: State.COMPLETE_ABORT},
    State.COMPLETE_COMMIT: {
        Trigger.INITIALISED: State.EMPTY,
        Trigger.ADDED: State.ONGOING,
        Trigger.ABORTED_EMPTY: State.PREPARE_ABORT,
        Trigger.EXPIRED: State.DEAD,
    },
    State.COMPLETE_ABORT: {
        Trigger.INITIALISED: State.EMPTY,
        Trigger.ADDED: State.ONGOING,
        Trigger.ABORTED_EMPTY: State.PREPARE_ABORT,
        Trigger.EXPIRED: State.DEAD,
    },
    State.DEAD: {},
    State.PREPARE_EPOCH_FENCE: {Trigger.ABORTED: State.PREPARE_ABORT},
}

_ENDS = frozenset({Trigger.COMMITTED, Trigger.ABORTED})
_NOTHING_OPEN = _ENDS | {Trigger.FENCED, Trigger.MARKED}

# The cells that must never be asked for; together with TRANSITIONS they cover every pair.
FORBIDDEN: dict[State, frozenset[Trigger]] = {
    State.EMPTY: _NOTHING_OPEN,
    # An open transaction is never initialised over: it is fenced first.
    State.ONGOING: frozenset(
        {Trigger.INITIALISED, Trigger.ABORTED_EMPTY, Trigger.MARKED, Trigger.EXPIRED}
    ),
    # What is decided is carried through; nothing else may happen before.
    State.PREPARE_COMMIT: frozenset(Trigger) - {Trigger.MARKED},
    State.PREPARE_ABORT: frozenset(Trigger) - {Trigger.MARKED},
    State.COMPLETE_COMMIT: _NOTHING_OPEN,
    State.COMPLETE_ABORT: _NOTHING_OPEN,
    State.DEAD: frozenset(Trigger),
    State.PREPARE_EPOCH_FENCE: frozenset(Trigger) - {Trigger.ABORTED},
}


class Ask(Enum):
    """What may be asked of a transactional id, as far as its state decides the answer."""

    INIT = "InitProducerId"
    ADD = "AddPartitionsToTxn, AddOffsetsToTxn, or a leader that adds its partition"
    VERIFY = "AddPartitionsToTxn that only verifies"
    TV1_COMMIT = "EndTxn up to v4, commit"
    TV1_ABORT = "EndTxn up to v4, abort"
    TV2_COMMIT = "EndTxn since v5 with the present epoch, commit"
    TV2_ABORT = "EndTxn since v5 with the present epoch, abort"
    TV2_COMMIT_AGAIN = "EndTxn since v5 with the epoch before, commit"
    TV2_ABORT_AGAIN = "EndTxn since v5 with the epoch before, abort"


class Step(Enum):
    """Answers that depend on more than the state."""

    RENEW = "give out a higher epoch, or a new producer id when the epochs are used up"
    FENCE = "abort what is open under a higher epoch; the producer asks again meanwhile"
    ADD = "add the partitions, unless all are there"
    MEMBERSHIP = "say of each partition whether it is there"
    END = "decide the end"
    END_EMPTY = "abort nothing, which raises the epoch"
    SAME = "answer as the first time, with the producer id and epoch that came of it"


CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS
WRONG_STATE = ErrorCode.INVALID_TXN_STATE
FENCED = ErrorCode.PRODUCER_FENCED
IMPOSSIBLE = ErrorCode.UNKNOWN_SERVER_ERROR  # Kafka throws IllegalStateException

ANSWERS: dict[State, dict[Ask, ErrorCode | Step]] = {
    State.EMPTY: {
        Ask.INIT: Step.RENEW,
        Ask.ADD: Step.ADD,
        Ask.VERIFY: Step.MEMBERSHIP,
        Ask.TV1_COMMIT: WRONG_STATE,
        Ask.TV1_ABORT: WRONG_STATE,
        Ask.TV2_COMMIT: WRONG_STATE,
        Ask.TV2_ABORT: Step.END_EMPTY,
        Ask.TV2_COMMIT_AGAIN: FENCED,
        Ask.TV2_ABORT_AGAIN: FENCED,
    },
    State.ONGOING: {
        Ask.INIT: Step.FENCE,
        Ask.ADD: Step.ADD,
        Ask.VERIFY: Step.MEMBERSHIP,
        Ask.TV1_COMMIT: Step.END,
        Ask.TV1_ABORT: Step.END,
        Ask.TV2_COMMIT: Step.END,
        Ask.TV2_ABORT: Step.END,
        Ask.TV2_COMMIT_AGAIN: FENCED,
        Ask.TV2_ABORT_AGAIN: FENCED,
    },
    State.PREPARE_COMMIT: {
        Ask.INIT: CONCURRENT,
        Ask.ADD: CONCURRENT,
        Ask.VERIFY: CONCURRENT,
        Ask.TV1_COMMIT: CONCURRENT,
        Ask.TV1_ABORT: WRONG_STATE,
        Ask.TV2_COMMIT: FENCED,
        Ask.TV2_ABORT: FENCED,
        Ask.TV2_COMMIT_AGAIN: CONCURRENT,
        Ask.TV2_ABORT_AGAIN: WRONG_STATE,
    },
    State.PREPARE_ABORT: {
        Ask.INIT: CONCURRENT,
        Ask.ADD: CONCURRENT,
        Ask.VERIFY: CONCURRENT,
        Ask.TV1_COMMIT: WRONG_STATE,
        Ask.TV1_ABORT: CONCURRENT,
        Ask.TV2_COMMIT: FENCED,
        Ask.TV2_ABORT: FENCED,
        Ask.TV2_COMMIT_AGAIN: WRONG_STATE,
        Ask.TV2_ABORT_AGAIN: CONCURRENT,
    },
    State.COMPLETE_COMMIT: {
        Ask.INIT: Step.RENEW,
        Ask.ADD: Step.ADD,
        Ask.VERIFY: Step.MEMBERSHIP,
        Ask.TV1_COMMIT: Step.SAME,
        Ask.TV1_ABORT: WRONG_STATE,
        Ask.TV2_COMMIT: WRONG_STATE,
        Ask.TV2_ABORT: Step.END_EMPTY,
        Ask.TV2_COMMIT_AGAIN: Step.SAME,
        Ask.TV2_ABORT_AGAIN: WRONG_STATE,
    },
    State.COMPLETE_ABORT: {
        Ask.INIT: Step.RENEW,
        Ask.ADD: Step.ADD,
        Ask.VERIFY: Step.MEMBERSHIP,
        Ask.TV1_COMMIT: WRONG_STATE,
        Ask.TV1_ABORT: Step.SAME,
        Ask.TV2_COMMIT: WRONG_STATE,
        Ask.TV2_ABORT: Step.END_EMPTY,
        Ask.TV2_COMMIT_AGAIN: WRONG_STATE,
        Ask.TV2_ABORT_AGAIN: Step.SAME,
    },
    State.DEAD: {
        Ask.INIT: IMPOSSIBLE,
        Ask.ADD: IMPOSSIBLE,
        Ask.VERIFY: Step.MEMBERSHIP,
        Ask.TV1_COMMIT: IMPOSSIBLE,
        Ask.TV1_ABORT: IMPOSSIBLE,
        Ask.TV2_COMMIT: IMPOSSIBLE,
        Ask.TV2_ABORT: IMPOSSIBLE,
        Ask.TV2_COMMIT_AGAIN: FENCED,
        Ask.TV2_ABORT_AGAIN: FENCED,
    },
    State.PREPARE_EPOCH_FENCE: {
        Ask.INIT: IMPOSSIBLE,
        Ask.ADD: IMPOSSIBLE,
        Ask.VERIFY: Step.MEMBERSHIP,
        Ask.TV1_COMMIT: IMPOSSIBLE,
        Ask.TV1_ABORT: IMPOSSIBLE,
        Ask.TV2_COMMIT: IMPOSSIBLE,
        Ask.TV2_ABORT: IMPOSSIBLE,
        Ask.TV2_COMMIT_AGAIN: FENCED,
        Ask.TV2_ABORT_AGAIN: FENCED,
    },
}

# The question that an EndTxn asks: (second protocol, commit, with the epoch before) -> Ask.
END_QUESTIONS: dict[tuple[bool, bool, bool], Ask] = {
    (False, True, False): Ask.TV1_COMMIT,
    (False, False, False): Ask.TV1_ABORT,
    (True, True, False): Ask.TV2_COMMIT,
    (True, False, False): Ask.TV2_ABORT,
    (True, True, True): Ask.TV2_COMMIT_AGAIN,
    (True, False, True): Ask.TV2_ABORT_AGAIN,
}
