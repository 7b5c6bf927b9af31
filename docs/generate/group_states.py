"""The classic group's state diagram and tables, drawn from the tables that the machine obeys."""

from __future__ import annotations

import math
from collections import defaultdict
from html import escape

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
BOX_WIDTH, BOX_HEIGHT = 170, 44

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
    """The diagram as SVG: boxes at their places, one arrow for each pair of states."""
    edges: dict[tuple[State, State], list[Trigger]] = defaultdict(list)
    for state, row in TRANSITIONS.items():
        for trigger, after in row.items():
            edges[state, after].append(trigger)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'font-family="sans-serif" font-size="13">',
        "<title>States of a classic group</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" '
        'markerHeight="8" orient="auto"><path d="M0 0 8 4 0 8z" fill="#557"/></marker></defs>',
    ]
    for (before, after), triggers in edges.items():
        parts += arrow(before, after, ", ".join(trigger.name.lower() for trigger in triggers),
                       both=(after, before) in edges)  # fmt: skip
    for state, (x, y) in PLACES.items():
        parts += [
            f'<rect x="{x - BOX_WIDTH // 2}" y="{y - BOX_HEIGHT // 2}" width="{BOX_WIDTH}" '
            f'height="{BOX_HEIGHT}" rx="8" fill="#eef1f8" stroke="#557"/>',
            f'<text x="{x}" y="{y + 5}" text-anchor="middle" fill="#223">'
            f"{escape(state.value)}</text>",
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def arrow(before: State, after: State, label: str, *, both: bool) -> list[str]:
    """A line from border to border; of a pair, each keeps to its right, and so does its label."""
    (x1, y1), (x2, y2) = PLACES[before], PLACES[after]
    length = math.hypot(x2 - x1, y2 - y1)
    dx, dy = (x2 - x1) / length, (y2 - y1) / length
    aside = 9 if both else 0
    start, end = border(dx, dy), length - border(dx, dy)

    def place(along: float, right: float) -> tuple[int, int]:
        return round(x1 + dx * along - dy * right), round(y1 + dy * along + dx * right)

    (ax, ay), (bx, by) = place(start, aside), place(end, aside)
    # Every state can end in Dead: thin lines, and a word for them in the text below the picture.
    style = 'stroke="#aab" stroke-dasharray="4 3"' if after is State.DEAD else 'stroke="#557"'
    parts = [f'<line x1="{ax}" y1="{ay}" x2="{bx}" y2="{by}" {style} marker-end="url(#tip)"/>']
    if after is not State.DEAD:
        tx, ty = place((start + end) / 2, aside + 12 if both else -8)
        anchor = "middle" if abs(dx) > 0.9 else ("start" if (dy < 0) == both else "end")
        parts.append(
            f'<text x="{tx}" y="{ty + 4}" text-anchor="{anchor}" fill="#446">{escape(label)}</text>'
        )
    return parts


def border(dx: float, dy: float) -> float:
    """How far the border of a box is from its middle in a direction."""
    sides = [BOX_WIDTH / 2 / abs(dx)] if dx else []
    sides += [BOX_HEIGHT / 2 / abs(dy)] if dy else []
    return min(sides)
