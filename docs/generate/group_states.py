"""The classic group's state diagram and tables, drawn from the tables that the machine obeys."""

from __future__ import annotations

import diagram
from markdown import page as join
from markdown import table
from state_tables import answer, edges_of, steps_list, transitions_table

from mockbroker.core.groups.states import (
    ANSWERS,
    FORBIDDEN,
    TRANSITIONS,
    ClassicGroupState,
    RequestAction,
)

# Layout only: what is drawn between the places comes from TRANSITIONS.
PLACES: dict[ClassicGroupState, tuple[int, int]] = {
    ClassicGroupState.EMPTY: (110, 60),
    ClassicGroupState.PREPARING: (400, 60),
    ClassicGroupState.COMPLETING: (690, 60),
    ClassicGroupState.STABLE: (545, 190),
    ClassicGroupState.DEAD: (255, 270),
}
SIZE = (800, 320)

INTRO = """
# The classic group

Drawn from `mockbroker/core/groups/states.py`, whose docstring has the theory.

![States of a classic group](classic-group.svg)

Dashed lines: every state ends in Dead when the group is deleted or its coordinator moves.
"""


def page() -> str:
    assert set(PLACES) == set(ClassicGroupState), "each state needs a place in the diagram"
    return join(
        INTRO,
        "## Transitions",
        transitions_table(TRANSITIONS, FORBIDDEN),
        "## Answers",
        "The answer to a known member with the current generation, by the state of its group.",
        table(
            ("request", *(state.value for state in ClassicGroupState)),
            [
                (
                    kind.value,
                    *(answer(ANSWERS[state][kind], RequestAction) for state in ClassicGroupState),
                )
                for kind in next(iter(ANSWERS.values()))
            ],
        ),
        "The steps in that table:",
        steps_list(RequestAction),
    )


def picture() -> str:
    """The diagram as SVG. Every state can end in Dead: dashed, and told of below the picture."""
    return diagram.draw(
        "States of a classic group",
        PLACES,
        edges_of(TRANSITIONS),
        SIZE,
        dashed={ClassicGroupState.DEAD},
    )
