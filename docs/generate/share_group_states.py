"""A share group's states and decisions, as the tables have them that the machine obeys."""

from __future__ import annotations

from markdown import page as join
from markdown import table
from state_tables import theory, yes

from mockbroker.core.groups.share import states
from mockbroker.core.groups.share.states import (
    EMPTY_ANSWERS,
    EPOCH_ANSWERS,
    GROUP_STATES,
    MEMBER_ACTIONS,
    PARTITION_EVENTS,
)

INTRO = """
# The share group

Drawn from `mockbroker/core/groups/share/states.py`.
"""


def page() -> str:
    return join(
        INTRO,
        theory(states, until="Source:"),
        "## A group",
        table(
            ("deleted", "members", "state"),
            [(*map(yes, facts), f"**{state.value}**") for facts, state in GROUP_STATES.items()],
        ),
        "DeleteGroups, DeleteShareGroupOffsets and AlterShareGroupOffsets need an Empty group:",
        table(
            ("state", "answer"),
            [(state.value, f"`{error.name}`") for state, error in EMPTY_ANSWERS.items()],
        ),
        "## A member",
        "A heartbeat is answered by its epoch:",
        table(
            ("epoch", "answer"),
            [(relation.value, f"`{error.name}`") for relation, error in EPOCH_ANSWERS.items()],
        ),
        "A heartbeat then does this with the member's assignment:",
        table(
            ("behind the assignment epoch", "raises the group epoch", "action"),
            [(*map(yes, facts), action.value) for facts, action in MEMBER_ACTIONS.items()],
        ),
        "## A share partition",
        "Each event changes the three sets of the group:",
        table(
            ("event", "initializing", "initialized", "deleting"),
            [
                (event.value, *(change.value for change in effects))
                for event, effects in PARTITION_EVENTS.items()
            ],
        ),
    )
