"""Requests of the five APIs about the states of share partitions, for one topic and group."""

from __future__ import annotations

from collections.abc import Mapping

from mockbroker.core.cluster import Cluster
from mockbroker.core.metadata.topic import SHARE_GROUP_STATE_TOPIC
from mockbroker.core.replication.partition import Partition
from mockbroker.core.share.coordinator import coordinator_key
from mockbroker_protocol.messages import delete_share_group_state as deleting
from mockbroker_protocol.messages import initialize_share_group_state as initializing
from mockbroker_protocol.messages import read_share_group_state as reading
from mockbroker_protocol.messages import read_share_group_state_summary as summing
from mockbroker_protocol.messages import write_share_group_state as writing

Batch = tuple[int, int, int, int]
"""First offset, last offset, delivery state, delivery count."""

AVAILABLE, ACKNOWLEDGED, ARCHIVED = 0, 2, 4


def initialize_request(
    topic_id: bytes, *partitions: int, group: str = "g", state_epoch: int = 1, start: int = 0
) -> initializing.InitializeShareGroupStateRequest:
    rows = [initializing.PartitionData(each, state_epoch, start) for each in partitions or (0,)]
    return initializing.InitializeShareGroupStateRequest(
        group, [initializing.InitializeStateData(topic_id, rows)]
    )


def read_request(
    topic_id: bytes, *partitions: int, group: str = "g", leader_epoch: int = 0
) -> reading.ReadShareGroupStateRequest:
    rows = [reading.PartitionData(each, leader_epoch) for each in partitions or (0,)]
    return reading.ReadShareGroupStateRequest(group, [reading.ReadStateData(topic_id, rows)])


def write_request(
    topic_id: bytes,
    batches: Mapping[int, list[Batch]],
    *,
    group: str = "g",
    state_epoch: int = 1,
    leader_epoch: int = 0,
    start: int = -1,
    complete: int = -1,
) -> writing.WriteShareGroupStateRequest:
    """`batches` by partition."""
    rows = [
        writing.PartitionData(
            partition,
            state_epoch,
            leader_epoch,
            start,
            complete,
            [writing.StateBatch(*batch) for batch in given],
        )
        for partition, given in batches.items()
    ]
    return writing.WriteShareGroupStateRequest(group, [writing.WriteStateData(topic_id, rows)])


def delete_request(
    topic_id: bytes, *partitions: int, group: str = "g"
) -> deleting.DeleteShareGroupStateRequest:
    rows = [deleting.PartitionData(each) for each in partitions or (0,)]
    return deleting.DeleteShareGroupStateRequest(group, [deleting.DeleteStateData(topic_id, rows)])


def summary_request(
    topic_id: bytes, *partitions: int, group: str = "g", leader_epoch: int = 0
) -> summing.ReadShareGroupStateSummaryRequest:
    rows = [summing.PartitionData(each, leader_epoch) for each in partitions or (0,)]
    return summing.ReadShareGroupStateSummaryRequest(
        group, [summing.ReadStateSummaryData(topic_id, rows)]
    )


def state_partition(
    cluster: Cluster, topic_id: bytes, partition: int = 0, group: str = "g"
) -> Partition:
    """The partition of `__share_group_state` that has a share partition; created if needed."""
    cluster.ensure_internal_topic(SHARE_GROUP_STATE_TOPIC)
    key = coordinator_key(group, topic_id, partition)
    index = cluster.find_coordinator_partition(key, SHARE_GROUP_STATE_TOPIC)
    found = cluster.partition(SHARE_GROUP_STATE_TOPIC, index)
    assert found is not None
    return found
