"""The states and decisions of a streams group, as the tables have them that the machine obeys."""

from __future__ import annotations

from markdown import page as join
from markdown import table
from state_tables import theory, yes

from mockbroker.core.groups.streams import states
from mockbroker.core.groups.streams.states import (
    ADVANCE_RESULTS,
    DELETE_ANSWERS,
    DUE,
    GROUP_STATES,
    RECONCILE_ACTIONS,
    MemberState,
    ReconcileAction,
    StatusCode,
)

INTRO = """
# The streams group

Drawn from `mockbroker/core/groups/streams/states.py`.
"""

NAMES = {
    MemberState.STABLE: "Stable",
    MemberState.UNREVOKED: "UnrevokedTasks",
    MemberState.UNRELEASED: "UnreleasedTasks",
    MemberState.UNKNOWN: "Unknown",
}


def page() -> str:
    return join(
        INTRO,
        theory(states),
        "## A group",
        "Its state is read off its topology, its epochs and its members:",
        table(
            (
                "members",
                "validated topology",
                "assignment epoch = group epoch",
                "all members Stable at it",
                "state",
            ),
            [(*map(yes, facts), f"**{state.value}**") for facts, state in GROUP_STATES.items()],
        ),
        "DeleteGroups is answered by the state:",
        table(
            ("state", "answer"),
            [(state.value, f"`{error.name}`") for state, error in DELETE_ANSWERS.items()],
        ),
        "## A member",
        "What a heartbeat does with a member, by its state and whether it is due to move on:",
        table(
            ("state", "due when", "due", "not due"),
            [
                (
                    f"**{NAMES[state]}**",
                    DUE[state],
                    word(RECONCILE_ACTIONS[state][True]),
                    word(RECONCILE_ACTIONS[state][False]),
                )
                for state in MemberState
            ],
        ),
        "\n".join(f"- *{step.name.lower()}*: {step.value}" for step in ReconcileAction),
        "A member that advances ends up in this state:",
        table(
            ("must revoke tasks", "waits for others", "state", "takes the assignment epoch"),
            [
                (
                    yes(left.must_revoke),
                    yes(left.must_wait),
                    f"**{NAMES[outcome.state]}**",
                    yes(outcome.takes_target_epoch),
                )
                for left, outcome in ADVANCE_RESULTS.items()
            ],
        ),
        "The statuses of a heartbeat's answer:",
        table(("code", "status"), [(str(code.value), f"`{code.name}`") for code in StatusCode]),
    )


def word(step: ReconcileAction) -> str:
    return f"*{step.name.lower()}*"
