"""Replicas: elections, reassignments and log directories, as far as one broker goes."""

from __future__ import annotations

from typing import Any

from mockbroker_protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from mockbroker_protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from mockbroker_protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from mockbroker_protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)
from mockbroker_protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsTopics,
)
from tests.differential.dialogue import make_topic
from tests.differential.registry import case
from tests.differential.session import Session

PREFERRED, UNCLEAN = 0, 1


def elect(session: Session, kind: int, version: int, *topics: tuple[str, list[int]]) -> None:
    wanted = [TopicPartitions(name, partitions) for name, partitions in topics]
    request = ElectLeadersRequest(kind, wanted, 10_000)
    label = "unclean" if kind == UNCLEAN else "preferred"
    session.ask(request, version, label=label, edit=_elections_in_order)


def _elections_in_order(answer: ElectLeadersResponse) -> ElectLeadersResponse:
    """The controller has them in a hash map."""
    answer.replica_election_results.sort(key=lambda each: each.topic)
    for topic in answer.replica_election_results:
        topic.partition_result.sort(key=lambda each: each.partition_id)
    return answer


@case()
def elections_that_are_not_needed_or_not_possible(session: Session) -> None:
    name = make_topic(session, "t", partitions=2)
    unknown = f"{session.name}-none"
    for version in range(3):
        elect(session, PREFERRED, version, (name, [0, 1]))
        elect(session, PREFERRED, version, (name, [0, 7]), (unknown, [0]))
        elect(session, PREFERRED, version)
        if version:
            elect(session, UNCLEAN, version, (name, [0]), (unknown, [3]))
    session.ask(ElectLeadersRequest(7, [TopicPartitions(name, [0])], 1000), 2, label="no such kind")


def reassign(session: Session, version: int, *topics: tuple[str, Any], **options: Any) -> None:
    wanted = [
        ReassignableTopic(name, [ReassignablePartition(index, to) for index, to in partitions])
        for name, partitions in topics
    ]
    request = AlterPartitionReassignmentsRequest(topics=wanted, timeout_ms=10_000, **options)
    session.ask(request, version, edit=_topics_in_order)


def _topics_in_order(
    answer: AlterPartitionReassignmentsResponse,
) -> AlterPartitionReassignmentsResponse:
    answer.responses.sort(key=lambda each: each.name)
    return answer


@case()
def reassignments_that_cannot_be(session: Session) -> None:
    """To brokers that are not there, to nobody, to one twice, of partitions that are not there."""
    name = make_topic(session, "t", partitions=2)
    unknown = f"{session.name}-none"
    for target in ([9], [], [1, 1], [-1], [1, 2], None):
        reassign(session, 0, (name, [(0, target)]))
    reassign(session, 0, (name, [(0, [1]), (5, [1]), (6, None)]), (unknown, [(0, [1])]))
    reassign(session, 1, (name, [(0, [1, 2])]), allow_replication_factor_change=False)
    reassign(session, 1, (name, [(0, [1])]), allow_replication_factor_change=False)
    reassign(session, 0)


@case()
def a_list_of_reassignments_that_is_empty(session: Session) -> None:
    name = make_topic(session, "t")
    unknown = f"{session.name}-none"
    session.ask(ListPartitionReassignmentsRequest(10_000, None), 0)
    for topics in ([(name, [0, 3])], [(unknown, [0])], []):
        wanted = [ListPartitionReassignmentsTopics(*each) for each in topics]
        session.ask(ListPartitionReassignmentsRequest(10_000, wanted), 0)


def describe(session: Session, version: int, *topics: tuple[str, list[int]]) -> None:
    wanted = [DescribableLogDirTopic(*each) for each in topics]
    session.ask(DescribeLogDirsRequest(wanted), version, edit=_without_place)


def _without_place(answer: DescribeLogDirsResponse) -> DescribeLogDirsResponse:
    """Where the directory is and what the disk holds are the machine's own."""
    for each in answer.results:
        each.log_dir = ""
        each.total_bytes = each.usable_bytes = -1
        each.topics.sort(key=lambda topic: topic.name)
        for topic in each.topics:
            topic.partitions.sort(key=lambda partition: partition.partition_index)
    return answer


@case()
def log_directories_of_some_partitions(session: Session) -> None:
    name = make_topic(session, "t", partitions=2)
    unknown = f"{session.name}-none"
    for version in range(1, 5):
        describe(session, version, (name, [0, 1]))
        describe(session, version, (name, [1, 9]), (unknown, [0]))
        describe(session, version, (unknown, [0]))
        describe(session, version)


@case()
def replicas_do_not_move_to_directories_that_are_not_there(session: Session) -> None:
    name = make_topic(session, "t")
    unknown = f"{session.name}-none"
    for path in ("/no/such/place", "relative"):
        for version in (1, 2):
            topics = [AlterReplicaLogDirTopic(name, [0, 4]), AlterReplicaLogDirTopic(unknown, [0])]
            request = AlterReplicaLogDirsRequest([AlterReplicaLogDir(path, topics)])
            session.ask(request, version, edit=_moves_in_order)


def _moves_in_order(answer: Any) -> Any:
    answer.results.sort(key=lambda each: each.topic_name)
    for topic in answer.results:
        topic.partitions.sort(key=lambda each: each.partition_index)
    return answer
