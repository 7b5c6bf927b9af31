"""The tables of consumer groups are total, and say what Kafka's code says."""

from __future__ import annotations

from itertools import product

from mockbroker.core.groups.consumer.states import (
    ADVANCE_RESULTS,
    DELETE_ANSWERS,
    DUE,
    GROUP_STATES,
    MIGRATION_POLICIES,
    RECONCILE_ACTIONS,
    AdvanceFacts,
    ConsumerGroupState,
    GroupFacts,
    MemberState,
    ReconcileAction,
    ReconcileFacts,
)
from mockbroker_protocol import ErrorCode

BOOLS = (False, True)


def test_every_table_answers_every_question() -> None:
    assert set(GROUP_STATES) == {GroupFacts(*facts) for facts in product(BOOLS, repeat=3)}
    assert set(RECONCILE_ACTIONS) == set(DUE) == set(MemberState)
    for row in RECONCILE_ACTIONS.values():
        assert set(row) == {ReconcileFacts(*facts) for facts in product(BOOLS, repeat=2)}
    assert set(ADVANCE_RESULTS) == {AdvanceFacts(*facts) for facts in product(BOOLS, repeat=2)}
    assert set(DELETE_ANSWERS) == set(ConsumerGroupState)
    assert set(MIGRATION_POLICIES) == {"bidirectional", "upgrade", "downgrade", "disabled"}


def test_without_members_a_group_is_empty_whatever_its_epochs() -> None:
    assert {state for facts, state in GROUP_STATES.items() if not facts.has_members} == {
        ConsumerGroupState.EMPTY
    }


def test_only_an_empty_group_may_be_deleted() -> None:
    assert [s for s, error in DELETE_ANSWERS.items() if error is ErrorCode.NONE] == [
        ConsumerGroupState.EMPTY
    ]


def test_who_has_to_give_something_up_keeps_its_epoch() -> None:
    for left, outcome in ADVANCE_RESULTS.items():
        assert outcome.takes_target_epoch is not left.must_revoke
        assert (outcome.state is MemberState.UNREVOKED) is left.must_revoke


def test_nobody_is_fenced_but_members_in_a_state_of_the_future() -> None:
    fenced = {
        state for state, row in RECONCILE_ACTIONS.items() if ReconcileAction.FENCE in row.values()
    }
    assert fenced == {MemberState.UNKNOWN}


def test_members_have_the_states_of_kafkas_log() -> None:
    assert [state.value for state in MemberState] == [0, 1, 2, 127]


def test_each_migration_policy_allows_what_its_name_says() -> None:
    for name, policy in MIGRATION_POLICIES.items():
        assert policy.upgrade is (name in {"upgrade", "bidirectional"})
        assert policy.downgrade is (name in {"downgrade", "bidirectional"})
