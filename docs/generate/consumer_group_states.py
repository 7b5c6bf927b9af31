"""The new protocol's states and decisions, as the tables have them that the machine obeys."""

from __future__ import annotations

from markdown import page as join
from markdown import table
from state_tables import theory, yes

from mockbroker.core.groups.consumer import states
from mockbroker.core.groups.consumer.states import (
    ADVANCE_RESULTS,
    DELETE_ANSWERS,
    DUE,
    GROUP_STATES,
    MIGRATION_POLICIES,
    RECONCILE_ACTIONS,
    GroupFacts,
    MemberState,
    ReconcileAction,
    ReconcileFacts,
)

INTRO = """
# The consumer group of the new protocol

Drawn from `mockbroker/core/groups/consumer/states.py`.
"""

NAMES = {
    MemberState.STABLE: "Stable",
    MemberState.UNREVOKED: "UnrevokedPartitions",
    MemberState.UNRELEASED: "UnreleasedPartitions",
    MemberState.UNKNOWN: "Unknown",
}


def page() -> str:
    return join(
        INTRO,
        theory(states, until="A group has no state of its own"),
        "## A group",
        "Its state is read off its epochs and its members:",
        table(
            ("members", "assignment epoch = group epoch", "all members Stable at it", "state"),
            [(*map(yes, facts), f"**{state.value}**") for facts, state in _groups()],
        ),
        "DeleteGroups is answered by the state:",
        table(
            ("state", "answer"),
            [(state.value, f"`{error.name}`") for state, error in DELETE_ANSWERS.items()],
        ),
        "## A member",
        "What a heartbeat does with a member, by its state, whether it is due to move on, and "
        "whether this heartbeat changed its subscription:",
        table(
            ("state", "due when", "due", "not due, new subscription", "not due"),
            [
                (
                    f"**{NAMES[state]}**",
                    DUE[state],
                    word(RECONCILE_ACTIONS[state][ReconcileFacts(True, False)]),
                    word(RECONCILE_ACTIONS[state][ReconcileFacts(False, True)]),
                    word(RECONCILE_ACTIONS[state][ReconcileFacts(False, False)]),
                )
                for state in MemberState
            ],
        ),
        "\n".join(f"- *{step.name.lower()}*: {step.value}" for step in ReconcileAction),
        "A member that advances ends up in this state:",
        table(
            ("has to give something up", "waits for others", "state", "epoch"),
            [
                (
                    yes(left.must_revoke),
                    yes(left.must_wait),
                    f"**{NAMES[outcome.state]}**",
                    "the assignment epoch" if outcome.takes_target_epoch else "as before",
                )
                for left, outcome in ADVANCE_RESULTS.items()
            ],
        ),
        "## Between the protocols",
        "By `group.consumer.migration.policy`:",
        table(
            ("policy", "classic group to consumer group", "and back"),
            [
                (f"`{name}`", yes(policy.upgrade), yes(policy.downgrade))
                for name, policy in MIGRATION_POLICIES.items()
            ],
        ),
    )


def _groups() -> list[tuple[GroupFacts, states.ConsumerGroupState]]:
    return list(GROUP_STATES.items())


def word(step: ReconcileAction) -> str:
    return f"*{step.name.lower()}*"
