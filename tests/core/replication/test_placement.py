"""Replica placement: on different brokers, evenly, and over all racks."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mockbroker.core.errors import ApiError
from mockbroker.core.ids import IdSource
from mockbroker.core.replication.placement import UsableBroker, place_replicas
from mockbroker_protocol import ErrorCode


def brokers(*racks: str | None, fenced: tuple[int, ...] = ()) -> list[UsableBroker]:
    return [UsableBroker(n, rack, n in fenced) for n, rack in enumerate(racks, start=1)]


@pytest.mark.covers("S34")
@given(
    racks=st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=9),
    partitions=st.integers(1, 30),
    seed=st.integers(0, 2**32),
    data=st.data(),
)
def test_replicas_of_a_partition_never_share_a_broker(racks, partitions, seed, data):
    factor = data.draw(st.integers(1, len(racks)))
    placed = place_replicas(brokers(*racks), partitions, factor, IdSource(seed))
    assert len(placed) == partitions
    for replicas in placed:
        assert len(replicas) == len(set(replicas)) == factor


@pytest.mark.covers("S35")
@pytest.mark.parametrize("seed", range(10))
def test_leaders_spread_evenly(seed):
    placed = place_replicas(brokers(None, None, None), 6, 2, IdSource(seed))
    assert Counter(replicas[0] for replicas in placed) == {1: 2, 2: 2, 3: 2}


@pytest.mark.covers("S35")
@pytest.mark.parametrize("seed", range(10))
def test_replicas_cover_as_many_racks_as_there_are(seed):
    racks = ("a", "a", "b", "b", "c", "c")
    for replicas in place_replicas(brokers(*racks), 12, 3, IdSource(seed)):
        assert {racks[n - 1] for n in replicas} == {"a", "b", "c"}


@pytest.mark.parametrize("seed", range(10))
def test_a_fenced_broker_never_leads_and_is_used_last(seed):
    usable = brokers(None, None, None, fenced=(2,))
    for replicas in place_replicas(usable, 9, 2, IdSource(seed)):
        assert 2 not in replicas
    for replicas in place_replicas(usable, 9, 3, IdSource(seed)):
        assert replicas[2] == 2


def test_fenced_brokers_come_in_every_order():
    """StripedReplicaPlacer shuffles them with the others, once each of these has led."""
    usable = brokers(*[None] * 5, fenced=(3, 4, 5))
    placed = place_replicas(usable, 100, 5, IdSource(0))
    assert {tuple(replicas[2:]) for replicas in placed} == set(permutations((3, 4, 5)))


def test_a_rack_without_a_live_broker_does_not_lead():
    usable = brokers("a", "b", fenced=(1,))
    assert place_replicas(usable, 4, 2, IdSource(4)) == [[2, 1]] * 4


@pytest.mark.parametrize(
    ("usable", "factor"),
    [(brokers(None), 2), (brokers(None, None), 0), (brokers(None, fenced=(1,)), 1)],
)
def test_an_impossible_placement_is_refused(usable, factor):
    with pytest.raises(ApiError) as refused:
        place_replicas(usable, 1, factor, IdSource(0))
    assert refused.value.error is ErrorCode.INVALID_REPLICATION_FACTOR
