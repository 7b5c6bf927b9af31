"""A transactional id's state diagram and tables, drawn from the tables that the machine obeys."""

from __future__ import annotations

import diagram
from markdown import page as join
from markdown import table
from state_tables import answer, edges_of, steps_list, theory, transitions_table

from mockbroker.core.txn import states
from mockbroker.core.txn.states import ANSWERS, FORBIDDEN, TRANSITIONS, Ask, State, Step

# Layout only: what is drawn between the places comes from TRANSITIONS.
PLACES: dict[State, tuple[int, int]] = {
    State.DEAD: (520, 40),
    State.EMPTY: (430, 190),
    State.ONGOING: (330, 340),
    State.COMPLETE_COMMIT: (110, 160),
    State.COMPLETE_ABORT: (930, 160),
    State.PREPARE_COMMIT: (110, 480),
    State.PREPARE_EPOCH_FENCE: (460, 480),
    State.PREPARE_ABORT: (930, 480),
}
SIZE = (1040, 520)

INTRO = """
# A transactional id

Drawn from `mockbroker/core/txn/states.py`. Only its tables decide; a transition that is not in them
cannot happen.

![States of a transactional id](transactional-id.svg)

The dashed lines: an id that nobody uses is forgotten from every state in which nothing is open.
"""

PENDING = """
What the producer that holds the id and its present epoch is told, by the state of the id. While a
move is pending, everything but a verification is answered with `CONCURRENT_TRANSACTIONS`. An end
that is decided has its completion pending until every marker is written, and an id is never *in*
Dead or PrepareEpochFence but only on its way there: of those four columns clients see the row of
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
            ("asked", *(state.value for state in State)),
            [(ask.value, *(answer(ANSWERS[state][ask], Step) for state in State)) for ask in Ask],
        ),
        "The steps in that table:",
        steps_list(Step),
    )


def words() -> str:
    """The opening words of the module, without the sketch they hold."""
    blocks = theory(states).split("\n\n")
    return "\n\n".join(block for block in blocks if not block.startswith("    "))


def picture() -> str:
    """The diagram as SVG."""
    assert set(PLACES) == set(State), "each state needs a place in the diagram"
    return diagram.draw(
        "States of a transactional id",
        PLACES,
        edges_of(TRANSITIONS),
        SIZE,
        dashed={State.DEAD},
    )
