"""FindCoordinator: placement by Java's hash, one internal topic for each kind, Kafka's errors."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tests.support.group_node import GroupNode

E = ErrorCode
UUID = "AAAAAAAAAAAAAAAAAAAAAQ"


class Lookups(GroupNode):
    """Three brokers and no internal topic yet."""

    def __init__(self, **options: Any) -> None:
        super().__init__(offsets_topic=False, racks=(None, None, None), **options)

    def find(self, key: str, key_type: int = 0, version: int = 6) -> Coordinator:
        if version >= 4:
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
            (line,) = self.ask(request, version).coordinators
            assert line.key == key
            return line
        request = FindCoordinatorRequest(key=key, key_type=key_type)
        r = self.ask(request, version)
        return Coordinator("", r.node_id, r.host, r.port, r.error_code, r.error_message)


@pytest.fixture
def node() -> Lookups:
    return Lookups()


@pytest.mark.parametrize("version", range(7))
def test_the_first_lookup_creates_the_topic_and_names_the_coordinator(
    node: Lookups, version: int
) -> None:
    """The leader of the group's partition, at its address on the listener that was asked."""
    found = node.find("cg1", version=version)
    partition = node.cluster.partition("__consumer_offsets", 31)
    assert partition is not None
    assert (found.error_code, found.node_id) == (0, partition.leader_id)
    assert (found.host, found.port) == ("127.0.0.1", 9000 + partition.leader_id)
    topic = node.cluster.topics["__consumer_offsets"]
    assert (len(topic.partitions), topic.is_internal) == (50, True)


def test_the_messages_of_success(node: Lookups) -> None:
    """Null before v4, empty since."""
    assert node.find("g", version=3).error_message == "NONE"
    assert node.find("g", version=4).error_message == ""


@pytest.mark.parametrize(
    ("key_type", "key", "topic"),
    [
        (0, "group", "__consumer_offsets"),
        (1, "transactional-id", "__transaction_state"),
        (2, f"group:{UUID}:0", "__share_group_state"),
    ],
)
def test_each_kind_has_its_own_topic(node: Lookups, key_type: int, key: str, topic: str) -> None:
    found = node.find(key, key_type)
    index = node.cluster.find_coordinator_partition(key, topic)
    partition = node.cluster.partition(topic, index)
    assert partition is not None
    assert (found.error_code, found.node_id) == (0, partition.leader_id)
    assert set(node.cluster.topics) == {"t", topic}


@pytest.mark.parametrize(
    ("key_type", "key", "version"),
    [
        (3, "g", 6),
        (-1, "g", 4),
        (7, "g", 1),
        (2, f"g:{UUID}:0", 5),
        (2, f"g:{UUID}:0", 3),
        (2, "g", 6),
        (2, "g:not-an-id:0", 6),
        (2, f"g:{UUID}:zero", 6),
        (2, f":{UUID}:0", 6),
        (2, f"g:{UUID}:0:1", 6),
    ],
)
def test_an_unknown_kind_or_a_malformed_share_key_is_an_invalid_request(
    node: Lookups, key_type: int, key: str, version: int
) -> None:
    found = node.find(key, key_type, version)
    assert (found.error_code, found.node_id, found.host, found.port) == (
        E.INVALID_REQUEST,
        -1,
        "",
        -1,
    )
    assert set(node.cluster.topics) == {"t"}


@pytest.mark.parametrize("key_type", [0, 1])
def test_an_empty_key_is_a_key(node: Lookups, key_type: int) -> None:
    assert node.find("", key_type).error_code == E.NONE


def test_many_keys_at_once(node: Lookups) -> None:
    request = FindCoordinatorRequest(coordinator_keys=["cg1", "test", "jinx_01"])
    response = node.ask(request)
    topic = node.cluster.topics["__consumer_offsets"]
    leaders = [topic.partitions[p].leader_id for p in (31, 48, 5)]
    assert [(c.key, c.node_id) for c in response.coordinators] == list(
        zip(("cg1", "test", "jinx_01"), leaders, strict=True)
    )
    assert node.ask(FindCoordinatorRequest()) == FindCoordinatorResponse(error_message="")


def test_the_number_of_partitions_is_configurable() -> None:
    node = Lookups(configs={"offsets.topic.num.partitions": "1"})
    assert node.find("cg1").error_code == E.NONE
    assert len(node.cluster.topics["__consumer_offsets"].partitions) == 1


def test_there_is_no_coordinator_without_a_leader_or_an_address(node: Lookups) -> None:
    """15, and the client asks again."""
    node.find("cg1")
    partition = node.cluster.partition("__consumer_offsets", 31)
    assert partition is not None
    leader = node.cluster.brokers[partition.leader_id]
    leader.fenced = True
    assert node.find("cg1").error_code == E.COORDINATOR_NOT_AVAILABLE
    leader.fenced = False
    leader.endpoints.clear()
    found = node.find("cg1", version=3)
    assert (found.error_code, found.node_id, found.host, found.port) == (15, -1, "", -1)
    assert found.error_message
    partition.become_leader(-1, 1, [])
    assert node.find("cg1").error_code == E.COORDINATOR_NOT_AVAILABLE


def test_there_is_no_coordinator_if_the_topic_cannot_be_created() -> None:
    """More replicas asked for than there are brokers."""
    node = Lookups(configs={"offsets.topic.replication.factor": "4"})
    assert node.find("g").error_code == E.COORDINATOR_NOT_AVAILABLE
