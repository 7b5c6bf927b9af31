"""Rules for one of the several groups, transactional ids or resources that a request names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from mockbroker import Cluster
from mockbroker.client.connection import Connection
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from mockbroker_protocol.messages.delete_groups import DeleteGroupsRequest
from mockbroker_protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from mockbroker_protocol.messages.describe_groups import DescribeGroupsRequest
from mockbroker_protocol.messages.describe_transactions import DescribeTransactionsRequest
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from mockbroker_protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from mockbroker_protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

TOPIC, OTHER = "orders", "shipments"


def opened(cluster: Cluster) -> Connection:
    host, _, port = cluster.bootstrap_servers.partition(",")[0].rpartition(":")
    return Connection(host, int(port))


def commit(client: Connection, group: str) -> None:
    """Have a group commit 5 of partition 0 of "orders"."""
    partition = OffsetCommitRequestPartition(0, 5)
    topic = OffsetCommitRequestTopic(TOPIC, partitions=[partition])
    answer = client.send(OffsetCommitRequest(group_id=group, topics=[topic]), 8)
    assert answer.topics[0].partitions[0].error_code == 0


@pytest.fixture(scope="module")
def running() -> Iterator[Cluster]:
    """Groups "a" and "b" have committed."""
    with Cluster(brokers=1, topics={TOPIC: 2, OTHER: 1}) as cluster, opened(cluster) as client:
        # Makes the coordinators' topics.
        client.send(FindCoordinatorRequest(key_type=0, coordinator_keys=["a"]))
        client.send(FindCoordinatorRequest(key_type=1, coordinator_keys=["x"]))
        commit(client, "a")
        commit(client, "b")
        yield cluster


@pytest.fixture
def kafka(running: Cluster) -> Iterator[Cluster]:
    yield running
    running.faults.clear()


@pytest.fixture
def client(running: Cluster) -> Iterator[Connection]:
    with opened(running) as connection:
        yield connection


def offsets(client: Connection, *groups: str) -> dict[str, tuple[int, list[tuple[str, int]]]]:
    """Of each group: its error, and topic and offset of each partition."""
    request = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id=group, topics=[OffsetFetchRequestTopics(TOPIC, partition_indexes=[0])]
            )
            for group in groups
        ]
    )
    answer = client.send(request, 9)
    return {
        each.group_id: (
            each.error_code,
            [(t.name, p.committed_offset) for t in each.topics for p in t.partitions],
        )
        for each in answer.groups
    }


@pytest.mark.fault("error", "group")
def test_an_error_of_one_group_of_an_offset_fetch(kafka: Cluster, client: Connection) -> None:
    rule = kafka.faults.add(
        match={"api": "OffsetFetch", "group": "b"}, do={"error": "COORDINATOR_LOAD_IN_PROGRESS"}
    )
    assert offsets(client, "a", "b") == {
        "a": (0, [(TOPIC, 5)]),
        "b": (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, []),
    }
    assert offsets(client, "a") == {"a": (0, [(TOPIC, 5)])}
    assert rule.hits == 1


@pytest.mark.fault("error_after", "group")
def test_an_error_after_of_one_group_of_an_offset_fetch(kafka: Cluster, client: Connection) -> None:
    kafka.faults.add(
        match={"api": "OffsetFetch", "group": "b", "topic": TOPIC},
        do={"error_after": "UNSTABLE_OFFSET_COMMIT"},
    )
    assert offsets(client, "a", "b") == {"a": (0, [(TOPIC, 5)]), "b": (0, [(TOPIC, -1)])}


@pytest.mark.fault("error", "group")
def test_no_rule_fires_for_an_empty_group_that_nobody_named(
    kafka: Cluster, client: Connection
) -> None:
    rule = kafka.faults.add(match={"api": "OffsetFetch", "group": "/^$/"}, do={"observe": {}})
    offsets(client, "a")
    assert rule.hits == 0


@pytest.mark.fault("error", "group")
def test_an_error_of_one_group_that_is_described(kafka: Cluster, client: Connection) -> None:
    kafka.faults.add(
        match={"api": "DescribeGroups", "group": "b"}, do={"error": "COORDINATOR_NOT_AVAILABLE"}
    )
    answer = client.send(DescribeGroupsRequest(groups=["a", "b"]))
    told = {each.group_id: (each.error_code, each.group_state) for each in answer.groups}
    assert told == {"a": (0, "Empty"), "b": (ErrorCode.COORDINATOR_NOT_AVAILABLE, "")}


@pytest.mark.fault("error", "group")
def test_a_group_whose_deletion_is_refused_stays_and_the_other_goes(
    kafka: Cluster, client: Connection
) -> None:
    commit(client, "gone")
    kafka.faults.add(match={"api": "DeleteGroups", "group": "a"}, do={"error": "NON_EMPTY_GROUP"})
    answer = client.send(DeleteGroupsRequest(["gone", "a"]))
    told = {each.group_id: each.error_code for each in answer.results}
    assert told == {"gone": 0, "a": ErrorCode.NON_EMPTY_GROUP}
    kafka.faults.clear()
    assert offsets(client, "a", "gone") == {"a": (0, [(TOPIC, 5)]), "gone": (0, [(TOPIC, -1)])}


@pytest.mark.fault("error", "group", "transactional_id")
@pytest.mark.parametrize(("kind", "field"), [(0, "group"), (1, "transactional_id")])
def test_one_of_several_coordinators_is_not_found(
    kafka: Cluster, client: Connection, kind: int, field: str
) -> None:
    kafka.faults.add(
        match={"api": "FindCoordinator", field: "b"}, do={"error": "COORDINATOR_NOT_AVAILABLE"}
    )
    answer = client.send(FindCoordinatorRequest(key_type=kind, coordinator_keys=["a", "b"]))
    told = {each.key: (each.error_code, each.node_id) for each in answer.coordinators}
    assert told == {"a": (0, 1), "b": (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)}


@pytest.mark.fault("error", "transactional_id")
def test_an_error_of_one_transactional_id_that_is_described(
    kafka: Cluster, client: Connection
) -> None:
    rule = kafka.faults.add(
        match={"api": "DescribeTransactions", "transactional_id": "x"},
        do={"error": "COORDINATOR_LOAD_IN_PROGRESS"},
    )
    answer = client.send(DescribeTransactionsRequest(["x", "y"]))
    told = {each.transactional_id: each.error_code for each in answer.transaction_states}
    assert told == {
        "x": ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        "y": ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
    }
    assert rule.hits == 1


@pytest.mark.fault("error", "transactional_id")
def test_an_error_of_one_of_several_transactions(kafka: Cluster, client: Connection) -> None:
    """Brokers ask for several at once (KIP-890); none of these is known."""
    kafka.faults.add(
        match={"api": "AddPartitionsToTxn", "transactional_id": "x"},
        do={"error_after": "CONCURRENT_TRANSACTIONS"},
    )
    request = AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(
                name, producer_id=0, topics=[AddPartitionsToTxnTopic(TOPIC, [0])]
            )
            for name in ("x", "y")
        ]
    )
    answer = client.send(request, 5)
    told = {
        each.transactional_id: [
            p.partition_error_code for t in each.topic_results for p in t.results_by_partition
        ]
        for each in answer.results_by_transaction
    }
    assert told["x"] == [ErrorCode.CONCURRENT_TRANSACTIONS]
    assert told["y"] not in ([], [0], told["x"])


def resources(*names: str) -> list[DescribeConfigsResource]:
    return [DescribeConfigsResource(2, name, ["retention.ms"]) for name in names]


@pytest.mark.fault("error", "topic")
def test_an_error_of_one_topic_whose_configs_are_described(
    kafka: Cluster, client: Connection
) -> None:
    kafka.faults.add(
        match={"api": "DescribeConfigs", "topic": TOPIC}, do={"error": "TOPIC_AUTHORIZATION_FAILED"}
    )
    broker = DescribeConfigsResource(4, "1", ["log.retention.ms"])
    request = DescribeConfigsRequest([*resources(TOPIC, OTHER), broker])
    told = {
        each.resource_name: (each.error_code, len(each.configs))
        for each in client.send(request).results
    }
    denied = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, 0)
    assert told == {TOPIC: denied, OTHER: (0, 1), "1": (0, 1)}


@pytest.mark.fault("error", "topic")
def test_configs_of_one_topic_cannot_be_altered(kafka: Cluster, client: Connection) -> None:
    kafka.faults.add(
        match={"api": "IncrementalAlterConfigs", "topic": TOPIC}, do={"error": "POLICY_VIOLATION"}
    )
    request = IncrementalAlterConfigsRequest(
        [
            AlterConfigsResource(2, name, [AlterableConfig("retention.ms", 0, "1234")])
            for name in (TOPIC, OTHER)
        ]
    )
    answer = client.send(request)
    told = {each.resource_name: each.error_code for each in answer.responses}
    assert told == {TOPIC: ErrorCode.POLICY_VIOLATION, OTHER: 0}
    found: dict[str, Any] = {
        each.resource_name: each.configs[0].value
        for each in client.send(DescribeConfigsRequest(resources(TOPIC, OTHER))).results
    }
    assert found[OTHER] == "1234"
    assert found[TOPIC] != "1234"


@pytest.mark.fault("rewrite", "group")
def test_only_the_rows_of_one_group_are_rewritten(kafka: Cluster, client: Connection) -> None:
    path = "groups[].topics[].partitions[].committed_offset"
    kafka.faults.add(
        match={"api": "OffsetFetch", "group": "b"}, do={"rewrite": {"answer": {path: 99}}}
    )
    assert offsets(client, "a", "b") == {"a": (0, [(TOPIC, 5)]), "b": (0, [(TOPIC, 99)])}


@pytest.mark.fault("error", "group", "topic")
def test_a_topic_of_another_group_than_the_one_that_matches_is_left_alone(
    kafka: Cluster, client: Connection
) -> None:
    kafka.faults.add(
        match={"api": "OffsetFetch", "group": "b", "topic": OTHER},
        do={"error": "UNKNOWN_SERVER_ERROR"},
    )
    request = OffsetFetchRequest(
        groups=[
            OffsetFetchRequestGroup(
                group_id=group, topics=[OffsetFetchRequestTopics(topic, partition_indexes=[0])]
            )
            for group, topic in (("a", OTHER), ("b", TOPIC))
        ]
    )
    answer = client.send(request, 9)
    codes = [p.error_code for g in answer.groups for t in g.topics for p in t.partitions]
    assert codes == [0, 0]
    assert [each.error_code for each in answer.groups] == [0, 0]
