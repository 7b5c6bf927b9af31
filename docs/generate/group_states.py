"""The classic group's state diagram and tables, drawn from the tables that the machine obeys."""

from __future__ import annotations

from collections import defaultdict

import diagram
from markdown import page as join
from markdown import table

from mockbroker.core.groups.states import ANSWERS, FORBIDDEN, TRANSITIONS, State, Step, Trigger

# Layout only: what is drawn between the places comes from TRANSITIONS.
PLACES: dict[State, tuple[int, int]] = {
    State.EMPTY: (110, 60),
    State.PREPARING: (400, 60),
    State.COMPLETING: (690, 60),
    State.STABLE: (545, 190),
    State.DEAD: (255, 270),
}
WIDTH, HEIGHT = 800, 320

INTRO = """
# The classic group

Drawn from `mockbroker/core/groups/states.py`, whose opening words tell how a group works. Only its
tables decide; a transition that is not in them cannot happen.

![States of a classic group](classic-group.svg)

The dashed lines: every state ends in Dead when the group is deleted or its coordinator moves away.
"""


def page() -> str:
    assert set(PLACES) == set(State), "each state needs a place in the diagram"
    return join(
        INTRO,
        "## Transitions",
        table(
            ("state", *(trigger.value for trigger in Trigger)),
            [
                (f"**{state.value}**", *(transition(state, trigger) for trigger in Trigger))
                for state in State
            ],
        ),
        "## Answers",
        "What a known member with the current generation is told, by the state of its group.",
        table(
            ("asked", *(state.value for state in State)),
            [
                (ask.value, *(answer(ANSWERS[state][ask]) for state in State))
                for ask in next(iter(ANSWERS.values()))
            ],
        ),
        "The steps in that table:",
        "\n".join(f"- *{word(step)}*: {step.value}" for step in Step),
    )


def transition(state: State, trigger: Trigger) -> str:
    if trigger in FORBIDDEN[state]:
        return "never"
    return TRANSITIONS[state][trigger].value


def answer(found: object) -> str:
    return f"*{word(found)}*" if isinstance(found, Step) else f"`{getattr(found, 'name', found)}`"


def word(step: Step) -> str:
    return step.name.lower().replace("_", " ")


def picture() -> str:
    """The diagram as SVG. Every state can end in Dead: dashed, and told of below the picture."""
    edges: dict[tuple[State, State], list[str]] = defaultdict(list)
    for state, row in TRANSITIONS.items():
        for trigger, after in row.items():
            edges[state, after].append(trigger.name.lower())
    return diagram.draw(
        "States of a classic group", PLACES, edges, (WIDTH, HEIGHT), dashed={State.DEAD}
    )
