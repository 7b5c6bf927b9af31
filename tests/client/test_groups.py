from __future__ import annotations

import pytest

from mockbroker import Cluster
from mockbroker.client import EARLIEST, LATEST, BrokerError, Client
from mockbroker.client.groups import PartitionLag


@pytest.fixture
def client(mock_kafka: Cluster):
    mock_kafka.topic("t").create(2)
    with Client(mock_kafka.bootstrap_servers) as client:
        client.produce("t", [b"x"] * 100, partition=0)
        yield client


@pytest.mark.covers("S12")
def test_lag_counts_from_the_committed_offset_to_the_end(client: Client):
    client.groups.commit("g", {("t", 0): 40, ("t", 1): 0})
    assert client.groups.committed("g") == {("t", 0): 40, ("t", 1): 0}
    lags = client.groups.lag("g")
    assert lags == [PartitionLag("t", 0, 40, 100), PartitionLag("t", 1, 0, 0)]
    assert [lag.lag for lag in lags] == [60, 0]


def test_groups_of_all_coordinators_are_listed(client: Client):
    names = [f"group-{number}" for number in range(9)]
    for name in names:
        client.groups.commit(name, {("t", 0): 1})
    peers = {client.coordinator(name).peer for name in names}
    assert len(peers) > 1
    assert [group.group_id for group in client.groups.all()] == names


def test_a_group_without_members_is_empty_and_one_that_never_was_is_not_found(client: Client):
    client.groups.commit("g", {("t", 0): 1})
    described = client.groups.describe("g")
    assert (described.group_state, described.members) == ("Empty", [])
    with pytest.raises(BrokerError, match="GROUP_ID_NOT_FOUND"):
        client.groups.describe("nosuch")


@pytest.mark.parametrize(("to", "expected"), [(EARLIEST, 0), (LATEST, 100), (30, 30), (999, 100)])
def test_offsets_are_reset_within_the_log(client: Client, to: int, expected: int):
    client.groups.commit("g", {("t", 0): 50})
    assert client.groups.reset("g", "t", to) == {("t", 0): expected, ("t", 1): 0}
    assert client.groups.committed("g") == {("t", 0): expected, ("t", 1): 0}


def test_a_deleted_group_is_gone_with_its_offsets(client: Client):
    client.groups.commit("g", {("t", 0): 50})
    client.groups.delete("g")
    assert client.groups.all() == []
    assert client.groups.committed("g") == {}
    with pytest.raises(BrokerError, match=r"delete group g: .*GROUP_ID_NOT_FOUND"):
        client.groups.delete("g")
