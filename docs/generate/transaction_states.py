"""A transactional id's state diagram and tables, drawn from the tables that the machine obeys."""

from __future__ import annotations

import ast
import inspect
from collections import defaultdict

import diagram
from markdown import page as join
from markdown import table

from mockbroker.core.txn import states
from mockbroker.core.txn.states import ANSWERS, FORBIDDEN, TRANSITIONS, Ask, State, Step, Trigger

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
WIDTH, HEIGHT = 1040, 520

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
        theory(),
        "## Transitions",
        table(
            ("state", *(trigger.value for trigger in Trigger)),
            [
                (f"**{state.value}**", *(transition(state, trigger) for trigger in Trigger))
                for state in State
            ],
        ),
        "## Answers",
        PENDING,
        table(
            ("asked", *(state.value for state in State)),
            [(ask.value, *(answer(ANSWERS[state][ask]) for state in State)) for ask in Ask],
        ),
        "The steps in that table:",
        "\n".join(f"- *{word(step)}*: {step.value}" for step in Step),
    )


def theory() -> str:
    """The opening words of the module, without their first line and the sketch they hold."""
    text = ast.get_docstring(ast.parse(inspect.getsource(states)))
    assert text is not None
    blocks = text.partition("\n\n")[2].split("\n\n")
    return "\n\n".join(block for block in blocks if not block.startswith("    "))


def transition(state: State, trigger: Trigger) -> str:
    if trigger in FORBIDDEN[state]:
        return "never"
    return TRANSITIONS[state][trigger].value


def answer(found: object) -> str:
    return f"*{word(found)}*" if isinstance(found, Step) else f"`{getattr(found, 'name', found)}`"


def word(step: Step) -> str:
    return step.name.lower().replace("_", " ")


def picture() -> str:
    """The diagram as SVG."""
    assert set(PLACES) == set(State), "each state needs a place in the diagram"
    edges: dict[tuple[State, State], list[str]] = defaultdict(list)
    for state, row in TRANSITIONS.items():
        for trigger, after in row.items():
            edges[state, after].append(trigger.name.lower().replace("_", " "))
    return diagram.draw(
        "States of a transactional id", PLACES, edges, (WIDTH, HEIGHT), dashed={State.DEAD}
    )
