"""A transactional id's state diagram and tables, drawn from the tables that the machine obeys."""

from __future__ import annotations

import diagram
from markdown import page as join
from markdown import table
from state_tables import answer, edges_of, steps_list, theory, transitions_table

from mockbroker.core.txn import states
from mockbroker.core.txn.states import (
    ANSWERS,
    FORBIDDEN,
    TRANSITIONS,
    TransactionState,
    TxnAction,
    TxnRequest,
)

# Layout only: what is drawn between the places comes from TRANSITIONS.
PLACES: dict[TransactionState, tuple[int, int]] = {
    TransactionState.DEAD: (520, 40),
    TransactionState.EMPTY: (430, 190),
    TransactionState.ONGOING: (330, 340),
    TransactionState.COMPLETE_COMMIT: (110, 160),
    TransactionState.COMPLETE_ABORT: (930, 160),
    TransactionState.PREPARE_COMMIT: (110, 480),
    TransactionState.PREPARE_EPOCH_FENCE: (460, 480),
    TransactionState.PREPARE_ABORT: (930, 480),
}
SIZE = (1040, 520)

INTRO = """
# A transactional id

Drawn from `mockbroker/core/txn/states.py`.

![States of a transactional id](transactional-id.svg)

Dashed lines: an unused id expires from every state without an open transaction.
"""

PENDING = """
The answer to the producer with the current epoch, by the state of its id. During a pending
transition, every request except a verification gets `CONCURRENT_TRANSACTIONS`. The completion of a
decided transaction is pending until every marker is written. An id is never *in* Dead or
PrepareEpochFence but only in transition to it. In those four columns clients see only the row of
the verification.
"""


def page() -> str:
    return join(
        INTRO,
        words(),
        "## Transitions",
        transitions_table(TRANSITIONS, FORBIDDEN),
        "## Answers",
        PENDING,
        table(
            ("request", *(state.value for state in TransactionState)),
            [
                (ask.value, *(answer(ANSWERS[state][ask], TxnAction) for state in TransactionState))
                for ask in TxnRequest
            ],
        ),
        "The steps in that table:",
        steps_list(TxnAction),
    )


def words() -> str:
    """The opening words of the module, without the sketch they hold."""
    blocks = theory(states).split("\n\n")
    return "\n\n".join(block for block in blocks if not block.startswith("    "))


def picture() -> str:
    """The diagram as SVG."""
    assert set(PLACES) == set(TransactionState), "each state needs a place in the diagram"
    return diagram.draw(
        "States of a transactional id",
        PLACES,
        edges_of(TRANSITIONS),
        SIZE,
        dashed={TransactionState.DEAD},
    )
