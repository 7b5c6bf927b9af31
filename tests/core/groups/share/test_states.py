"""The tables of share groups are total, and say what Kafka's code says."""

from __future__ import annotations

from itertools import product

from mockbroker.core.groups.share.states import (
    EMPTY_ANSWERS,
    EPOCH_ANSWERS,
    GROUP_STATES,
    MEMBER_ACTIONS,
    PARTITION_EVENTS,
    EpochRelation,
    GroupFacts,
    MemberAction,
    MemberFacts,
    PartitionEvent,
    SetChange,
    ShareGroupState,
)
from mockbroker_protocol import ErrorCode

BOOLS = (False, True)


def test_every_table_answers_every_question() -> None:
    assert set(GROUP_STATES) == {GroupFacts(*facts) for facts in product(BOOLS, repeat=2)}
    assert set(EMPTY_ANSWERS) == set(ShareGroupState)
    assert set(EPOCH_ANSWERS) == set(EpochRelation)
    assert set(MEMBER_ACTIONS) == {MemberFacts(*facts) for facts in product(BOOLS, repeat=2)}
    assert set(PARTITION_EVENTS) == set(PartitionEvent)


def test_a_member_behind_always_advances() -> None:
    assert {MEMBER_ACTIONS[MemberFacts(True, each)] for each in BOOLS} == {MemberAction.ADVANCE}


def test_only_the_current_and_the_previous_epoch_are_accepted_of_a_member() -> None:
    refused = {each for each, error in EPOCH_ANSWERS.items() if error is not ErrorCode.NONE}
    assert refused == {EpochRelation.SMALLER, EpochRelation.GREATER}


def test_no_event_leaves_a_partition_initializing_and_deleting() -> None:
    for effects in PARTITION_EVENTS.values():
        if effects.deleting is SetChange.ADD:
            assert effects.initialized is SetChange.REMOVE
        if effects.initializing is SetChange.ADD:
            assert effects.deleting is SetChange.REMOVE
