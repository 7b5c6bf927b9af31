"""The rest of the admin surface: features, the quorum and its voters, brokers, config resources."""

from __future__ import annotations

from typing import Any

from mockbroker_protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from mockbroker_protocol.messages.describe_cluster import DescribeClusterRequest
from mockbroker_protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    RequestPartitionData,
    RequestTopicData,
)
from mockbroker_protocol.messages.list_config_resources import ListConfigResourcesRequest
from mockbroker_protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from mockbroker_protocol.messages.unregister_broker import UnregisterBrokerRequest
from mockbroker_protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.differential.registry import case
from tests.differential.session import Session

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
DIRECTORY = bytes(range(16))


@case()
def voters_that_cannot_be(session: Session) -> None:
    """What a quorum says before it looks at who votes in it."""
    cluster = session.quietly(DescribeClusterRequest(), 0).cluster_id
    listener = Listener("CONTROLLER", "127.0.0.1", 9)
    for cluster_id in (None, cluster, "another"):
        for voter in (-1, 99):
            for directory in (bytes(16), DIRECTORY):
                label = f"{cluster_id == cluster} {voter} {directory == DIRECTORY}"
                for version in (0, 1):
                    request = AddRaftVoterRequest(cluster_id, 1000, voter, directory, [])
                    session.ask(request, version, label=label)
                if cluster_id == "another" or voter < 0 or directory != DIRECTORY:
                    session.ask(
                        AddRaftVoterRequest(cluster_id, 1000, voter, directory, [listener]),
                        0,
                        label=label,
                    )
                    session.ask(RemoveRaftVoterRequest(cluster_id, voter, directory), 0)
    others = [Listener("PLAINTEXT", "127.0.0.1", 9)]
    session.ask(AddRaftVoterRequest(None, 1000, 99, DIRECTORY, others), 0, label="no listener")


@case()
def brokers_that_are_not_there(session: Session) -> None:
    for broker_id in (99, -1):
        session.ask(UnregisterBrokerRequest(broker_id), 0)


@case()
def features_that_cannot_be(session: Session) -> None:
    def ask(*updates: FeatureUpdateKey, version: int = 2, validate_only: bool = True) -> None:
        request = UpdateFeaturesRequest(60_000, list(updates), validate_only)
        session.ask(
            request, version, label=str([(u.feature, u.max_version_level) for u in updates])
        )

    def update(name: str, level: int, how: int = UPGRADE) -> FeatureUpdateKey:
        return FeatureUpdateKey(feature=name, max_version_level=level, upgrade_type=how)

    for version in (1, 2):
        ask(version=version)
        ask(update("bogus", 1), version=version)
        ask(update("bogus", 0), version=version)
        ask(update("transaction.version", 99), version=version)
        ask(update("transaction.version", -1), version=version)
        ask(update("transaction.version", 1), version=version)
        ask(update("transaction.version", 1, SAFE_DOWNGRADE), version=version)
        ask(update("transaction.version", 1, UNSAFE_DOWNGRADE), version=version)
        ask(update("transaction.version", 1, 7), version=version)
        ask(update("transaction.version", 2), version=version)
        ask(update("group.version", 1), update("bogus", 1), version=version)
        ask(update("metadata.version", 99), version=version)


@case()
def quorums_of_other_topics(session: Session) -> None:
    def ask(topic: str, partition: int, version: int) -> None:
        partitions = [RequestPartitionData(partition)]
        request = DescribeQuorumRequest([RequestTopicData(topic, partitions)])
        session.ask(request, version, label=f"{topic} {partition}", edit=shape)

    def shape(answer: Any) -> Any:
        """Offsets and times grow; who votes and follows is compared."""
        for topic in answer.topics:
            for partition in topic.partitions:
                partition.high_watermark = min(partition.high_watermark, 1)
                partition.leader_epoch = min(partition.leader_epoch, 1)
                for state in (*partition.current_voters, *partition.observers):
                    state.log_end_offset = min(state.log_end_offset, 1)
                    state.last_fetch_timestamp = min(state.last_fetch_timestamp, 1)
                    state.last_caught_up_timestamp = min(state.last_caught_up_timestamp, 1)
                    state.replica_directory_id = bytes(16)
        answer.nodes = []
        return answer

    for version in (0, 1, 2):
        ask("__cluster_metadata", 0, version)
        ask("__cluster_metadata", 1, version)
        ask("orders", 0, version)


@case()
def config_resources_by_type(session: Session) -> None:
    def brokers(answer: Any) -> Any:
        """Topics, groups and subscriptions of other cases are left out."""
        answer.config_resources = sorted(
            (row for row in answer.config_resources if row.resource_type in (4, 8)), key=str
        )
        return answer

    session.ask(ListConfigResourcesRequest(), 0, edit=brokers)
    for types in ([], [4], [8], [4, 8], [4, 4], [1], [99], [4, 99], [0]):
        request = ListConfigResourcesRequest(types)
        session.ask(request, 1, label=str(types), edit=brokers)
