"""One step of one member: every state and situation, and what must hold after any of them."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from mockbroker.core.groups.consumer.members import ConsumerMember
from mockbroker.core.groups.consumer.reconcile import ReconcileInput, reconcile
from mockbroker.core.groups.consumer.states import MemberState

T, U = b"t" * 16, b"u" * 16


def member(epoch: int = 5, **fields: Any) -> ConsumerMember:
    return ConsumerMember(member_id="a", epoch=epoch, previous_epoch=epoch - 1, **fields)


def inputs(epoch: int = 6, target: Any = None, **fields: Any) -> ReconcileInput:
    """A target of partitions of T, all of them free unless `taken`."""
    taken = fields.pop("taken", ())
    return ReconcileInput(
        epoch,
        {T: frozenset(target)} if target else {},
        fields.pop("subscribed", frozenset({T, U})),
        lambda topic_id, partition: 4 if partition in taken else -1,
        fields.pop("reported", None),
        **fields,
    )


def shape(found: ConsumerMember | None) -> tuple[str, int, list[int], list[int]]:
    """State, epoch, what it owns and what it is to give up, of T."""
    assert found is not None
    revoking = sorted(found.revoking.get(T, ()))
    return found.state.name, found.epoch, sorted(found.assigned.get(T, ())), revoking


def test_a_member_at_the_target_is_left_alone() -> None:
    present = member()
    assert reconcile(present, inputs(5, [0])) is present


def test_new_partitions_come_with_the_target_epoch() -> None:
    moved = reconcile(member(assigned={T: {0: 3}}), inputs(6, [0, 1]))
    assert shape(moved) == ("STABLE", 6, [0, 1], [])
    assert moved is not None
    assert moved.assigned == {T: {0: 3, 1: 6}}
    assert moved.previous_epoch == 5


def test_what_is_lost_is_given_up_before_anything_new_comes() -> None:
    moved = reconcile(member(assigned={T: {0: 3, 1: 3}}), inputs(6, [1, 2]))
    assert shape(moved) == ("UNREVOKED", 5, [1], [0])


def test_what_the_client_no_longer_owns_need_not_be_given_up() -> None:
    gave_up = {T: (1,)}
    moved = reconcile(member(assigned={T: {0: 3, 1: 3}}), inputs(6, [1, 2], reported=gave_up))
    assert shape(moved) == ("STABLE", 6, [1, 2], [])


def test_a_member_that_still_owns_what_it_has_to_give_up_waits() -> None:
    present = member(state=MemberState.UNREVOKED, assigned={T: {1: 3}}, revoking={T: {0: 3}})
    assert reconcile(present, inputs(7, [2])) is present
    assert reconcile(present, inputs(7, [2], reported={T: (0, 1)})) is present


def test_a_member_that_gave_up_goes_for_the_latest_target() -> None:
    present = member(state=MemberState.UNREVOKED, assigned={T: {1: 3}}, revoking={T: {0: 3}})
    moved = reconcile(present, inputs(7, [1, 2], reported={T: (1,)}))
    assert shape(moved) == ("STABLE", 7, [1, 2], [])
    moved = reconcile(present, inputs(7, [2], reported={T: (1,)}))
    assert shape(moved) == ("UNREVOKED", 5, [], [1])


def test_a_member_may_get_back_what_it_was_to_give_up() -> None:
    """It is owned by nobody else."""
    present = member(state=MemberState.UNREVOKED, revoking={T: {0: 3}})
    moved = reconcile(present, inputs(7, [0], taken=[0], reported={}))
    assert shape(moved) == ("STABLE", 7, [0], [])


def test_what_others_own_is_waited_for() -> None:
    moved = reconcile(member(assigned={T: {0: 3}}), inputs(6, [0, 1, 2], taken=[2]))
    assert shape(moved) == ("UNRELEASED", 6, [0, 1], [])
    assert moved is not None
    again = reconcile(moved, inputs(6, [0, 1, 2], taken=[2]))
    assert shape(again) == ("UNRELEASED", 6, [0, 1], [])
    done = reconcile(moved, inputs(6, [0, 1, 2]))
    assert shape(done) == ("STABLE", 6, [0, 1, 2], [])


def test_topics_that_are_no_longer_subscribed_are_taken_away_at_once() -> None:
    present = member(assigned={T: {0: 3}, U: {1: 3}})
    changed = inputs(5, [0], subscribed=frozenset({U}), resubscribed=True)
    assert shape(reconcile(present, changed)) == ("UNREVOKED", 5, [], [0])
    given_up = msgspec.structs.replace(changed, reported={U: (1,)})
    moved = reconcile(present, given_up)
    assert shape(moved) == ("STABLE", 5, [], [])
    assert moved is not None
    assert moved.assigned == {U: {1: 3}}
    same = msgspec.structs.replace(changed, subscribed=frozenset({T, U}))
    assert reconcile(present, same) is present


def test_an_old_target_of_a_topic_no_longer_subscribed_does_not_count() -> None:
    moved = reconcile(member(), inputs(6, [0, 1], subscribed=frozenset({U})))
    assert shape(moved) == ("STABLE", 6, [], [])


def test_a_state_of_the_future_is_fenced_unless_it_owns_nothing() -> None:
    present = member(state=MemberState.UNKNOWN, assigned={T: {0: 3}})
    assert reconcile(present, inputs(6, [0])) is None
    assert reconcile(present, inputs(6, [0], reported={T: (0,)})) is None
    assert shape(reconcile(present, inputs(6, [0], reported={}))) == ("STABLE", 6, [0], [])


partitions = st.frozensets(st.integers(0, 5))


@given(
    st.sampled_from([MemberState.STABLE, MemberState.UNREVOKED, MemberState.UNRELEASED]),
    partitions,
    partitions,
    partitions,
    partitions,
    st.one_of(st.none(), partitions),
    st.booleans(),
)
def test_whatever_happens_nothing_is_taken_from_others(
    state: MemberState,
    owned: frozenset[int],
    to_give_up: frozenset[int],
    target: frozenset[int],
    others: frozenset[int],
    reported: frozenset[int] | None,
    resubscribed: bool,
) -> None:
    """Nothing is owned that another owns; nothing that is still in use is forgotten."""
    others -= owned | to_give_up
    to_give_up -= owned
    if state is not MemberState.UNREVOKED:
        to_give_up = frozenset()
    present = member(
        state=state,
        assigned={T: dict.fromkeys(owned, 3)} if owned else {},
        revoking={T: dict.fromkeys(to_give_up, 3)} if to_give_up else {},
    )
    used = owned | to_give_up if reported is None else reported & (owned | to_give_up)
    moved = reconcile(
        present,
        inputs(
            6,
            target,
            taken=others | owned | to_give_up,
            reported=None if reported is None else {T: tuple(reported)},
            resubscribed=resubscribed,
        ),
    )
    assert moved is not None
    mine = set(moved.assigned.get(T, ())) | set(moved.revoking.get(T, ()))
    assert not mine & others
    assert used <= mine
    assert moved.epoch in (present.epoch, 6)
    if moved.state is MemberState.STABLE and moved.epoch == 6:
        assert mine == target
