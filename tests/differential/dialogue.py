"""Phrases that cases share: make a topic, produce a batch, find the coordinator."""

from __future__ import annotations

from collections.abc import Sequence

from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from mockbroker_protocol.messages.describe_groups import DescribeGroupsRequest
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from mockbroker_protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from mockbroker_protocol.records import Record, build_batch
from tests.differential.session import Session

TIMESTAMP_MS = 1_700_000_000_000


def make_topic(
    session: Session, suffix: str = "", partitions: int = 1, configs: dict[str, str] | None = None
) -> str:
    """A topic of the case's own, ready to be used; its name."""
    name = f"{session.name}{suffix}"
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[CreatableTopicConfig(name=k, value=v) for k, v in (configs or {}).items()],
    )
    session.quietly(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
    wait_for_leaders(session, name)
    return name


def wait_for_leaders(session: Session, topic: str, partitions: int = 1) -> bytes:
    """Wait until every partition has a leader and the leader takes requests; the topic's id.

    A real broker may answer before its metadata has added partitions: it has `partitions` then.
    """
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=False
    )
    while True:
        found = session.quietly(request, 12).topics[0]
        if (
            found.error_code == ErrorCode.NONE
            and len(found.partitions) >= partitions
            and all(partition.leader_id >= 0 for partition in found.partitions)
        ):
            break
    for partition in found.partitions:
        # Metadata may name a leader a moment before it serves.
        probe = list_offsets(topic, -1, partition=partition.partition_index)
        while session.quietly(probe, 7).topics[0].partitions[0].error_code != ErrorCode.NONE:
            pass
    return bytes(found.topic_id)


def batch(values: Sequence[bytes | None] = (b"v",), **options: object) -> bytearray:
    """A batch of records with equal timestamps; `options` as for `build_batch`."""
    records = [Record(0, TIMESTAMP_MS, b"k", value, ()) for value in values]
    return build_batch(records, **options)  # type: ignore[arg-type]


def produce_request(
    topic: str, records: object, *, acks: int = -1, partition: int = 0, timeout_ms: int = 5_000
) -> ProduceRequest:
    """A Produce of one records field to one partition."""
    data = PartitionProduceData(index=partition, records=records)  # type: ignore[arg-type]
    return ProduceRequest(
        acks=acks,
        timeout_ms=timeout_ms,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )


def list_offsets(
    topic: str, *timestamps: int, isolation: int = 0, epoch: int = -1, partition: int = 0
) -> ListOffsetsRequest:
    """Ask one partition for one or several timestamps."""
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation,
        topics=[
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(
                        partition_index=partition, current_leader_epoch=epoch, timestamp=at
                    )
                    for at in timestamps
                ],
            )
        ],
        timeout_ms=1000,
    )


def find_coordinator(session: Session, group: str) -> None:
    """Wait until the coordinator of a group is there and has loaded."""
    find = FindCoordinatorRequest(coordinator_keys=[group])
    while session.quietly(find, 4).coordinators[0].error_code != ErrorCode.NONE:
        pass
    probe = DescribeGroupsRequest(groups=[group])
    while session.quietly(probe, 5).groups[0].error_code != ErrorCode.NONE:
        pass
