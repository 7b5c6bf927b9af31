"""Keys and values of the records in `__consumer_offsets`.

Generated from `schemas/consumer_offsets.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct, field

from mockbroker_protocol.types import ZERO_UUID, UnknownTags


class OffsetCommitKey(Struct, gc=False):
    group: str = ""
    topic: str = ""
    partition: int = 0


class OffsetCommitValue(Struct, gc=False):
    offset: int = 0
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp: int = 0
    expire_timestamp: int = -1
    topic_id: bytes = ZERO_UUID
    unknown_tags: UnknownTags = None


class GroupMetadataKey(Struct, gc=False):
    group: str = ""


class MemberMetadata(Struct, gc=False):
    member_id: str = ""
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: int = -1
    session_timeout: int = 0
    subscription: bytes = b""
    assignment: bytes = b""
    unknown_tags: UnknownTags = None


class GroupMetadataValue(Struct, gc=False):
    protocol_type: str = ""
    generation: int = 0
    protocol: str | None = ""
    leader: str | None = ""
    current_state_timestamp: int = -1
    members: list[MemberMetadata] = []
    unknown_tags: UnknownTags = None


class ConsumerGroupMetadataKey(Struct, gc=False):
    group_id: str = ""


class ConsumerGroupMetadataValue(Struct, gc=False):
    epoch: int = 0
    metadata_hash: int = 0
    unknown_tags: UnknownTags = None


class ConsumerGroupPartitionMetadataKey(Struct, gc=False):
    group_id: str = ""


class PartitionMetadata(Struct, gc=False):
    partition: int = 0
    racks: list[str] = []
    unknown_tags: UnknownTags = None


class TopicMetadata(Struct, gc=False):
    topic_id: bytes = ZERO_UUID
    topic_name: str = ""
    num_partitions: int = 0
    partition_metadata: list[PartitionMetadata] = []
    unknown_tags: UnknownTags = None


class ConsumerGroupPartitionMetadataValue(Struct, gc=False):
    topics: list[TopicMetadata] = []
    unknown_tags: UnknownTags = None


class ConsumerGroupMemberMetadataKey(Struct, gc=False):
    group_id: str = ""
    member_id: str = ""


class ClassicProtocol(Struct, gc=False):
    name: str = ""
    metadata: bytes = b""
    unknown_tags: UnknownTags = None


class ClassicMemberMetadata(Struct, gc=False):
    session_timeout_ms: int = 0
    supported_protocols: list[ClassicProtocol] = []
    unknown_tags: UnknownTags = None


class ConsumerGroupMemberMetadataValue(Struct, gc=False):
    instance_id: str | None = ""
    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = []
    subscribed_topic_regex: str | None = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = ""
    classic_member_metadata: ClassicMemberMetadata | None = field(
        default_factory=ClassicMemberMetadata
    )
    unknown_tags: UnknownTags = None


class ConsumerGroupTargetAssignmentMetadataKey(Struct, gc=False):
    group_id: str = ""


class ConsumerGroupTargetAssignmentMetadataValue(Struct, gc=False):
    assignment_epoch: int = 0
    assignment_timestamp: int = 0
    unknown_tags: UnknownTags = None


class ConsumerGroupTargetAssignmentMemberKey(Struct, gc=False):
    group_id: str = ""
    member_id: str = ""


class TopicPartition(Struct, gc=False):
    topic_id: bytes = ZERO_UUID
    partitions: list[int] = []
    unknown_tags: UnknownTags = None


class ConsumerGroupTargetAssignmentMemberValue(Struct, gc=False):
    topic_partitions: list[TopicPartition] = []
    unknown_tags: UnknownTags = None


class ConsumerGroupCurrentMemberAssignmentKey(Struct, gc=False):
    group_id: str = ""
    member_id: str = ""


class ConsumerGroupCurrentMemberAssignmentValueTopicPartitions(Struct, gc=False):
    topic_id: bytes = ZERO_UUID
    partitions: list[int] = []
    assignment_epochs: list[int] | None = []
    unknown_tags: UnknownTags = None


class ConsumerGroupCurrentMemberAssignmentValue(Struct, gc=False):
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    assigned_partitions: list[ConsumerGroupCurrentMemberAssignmentValueTopicPartitions] = []
    partitions_pending_revocation: list[
        ConsumerGroupCurrentMemberAssignmentValueTopicPartitions
    ] = []
    unknown_tags: UnknownTags = None


class ConsumerGroupRegularExpressionKey(Struct, gc=False):
    group_id: str = ""
    regular_expression: str = ""


class ConsumerGroupRegularExpressionValue(Struct, gc=False):
    topics: list[str] = []
    version: int = 0
    timestamp: int = 0
    unknown_tags: UnknownTags = None


class ShareGroupMemberMetadataKey(Struct, gc=False):
    group_id: str = ""
    member_id: str = ""


class ShareGroupMemberMetadataValue(Struct, gc=False):
    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = []
    unknown_tags: UnknownTags = None


class ShareGroupMetadataKey(Struct, gc=False):
    group_id: str = ""


class ShareGroupMetadataValue(Struct, gc=False):
    epoch: int = 0
    metadata_hash: int = 0
    unknown_tags: UnknownTags = None


class ShareGroupTargetAssignmentMetadataKey(Struct, gc=False):
    group_id: str = ""


class ShareGroupTargetAssignmentMetadataValue(Struct, gc=False):
    assignment_epoch: int = 0
    assignment_timestamp: int = 0
    unknown_tags: UnknownTags = None


class ShareGroupTargetAssignmentMemberKey(Struct, gc=False):
    group_id: str = ""
    member_id: str = ""


class ShareGroupTargetAssignmentMemberValue(Struct, gc=False):
    topic_partitions: list[TopicPartition] = []
    unknown_tags: UnknownTags = None


class ShareGroupCurrentMemberAssignmentKey(Struct, gc=False):
    group_id: str = ""
    member_id: str = ""


class ShareGroupCurrentMemberAssignmentValueTopicPartitions(Struct, gc=False):
    topic_id: bytes = ZERO_UUID
    partitions: list[int] = []
    unknown_tags: UnknownTags = None


class ShareGroupCurrentMemberAssignmentValue(Struct, gc=False):
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    assigned_partitions: list[ShareGroupCurrentMemberAssignmentValueTopicPartitions] = []
    unknown_tags: UnknownTags = None


class ShareGroupStatePartitionMetadataKey(Struct, gc=False):
    group_id: str = ""


class TopicPartitionsInfo(Struct, gc=False):
    topic_id: bytes = ZERO_UUID
    topic_name: str = ""
    partitions: list[int] = []
    unknown_tags: UnknownTags = None


class ShareGroupStatePartitionMetadataValueTopicInfo(Struct, gc=False):
    topic_id: bytes = ZERO_UUID
    topic_name: str = ""
    unknown_tags: UnknownTags = None


class ShareGroupStatePartitionMetadataValue(Struct, gc=False):
    initializing_topics: list[TopicPartitionsInfo] = []
    initialized_topics: list[TopicPartitionsInfo] = []
    deleting_topics: list[ShareGroupStatePartitionMetadataValueTopicInfo] = []
    unknown_tags: UnknownTags = None


class StreamsGroupMetadataKey(Struct, gc=False):
    group_id: str = ""


class LastAssignmentConfig(Struct, gc=False):
    key: str = ""
    value: str = ""
    unknown_tags: UnknownTags = None


class StreamsGroupMetadataValue(Struct, gc=False):
    epoch: int = 0
    metadata_hash: int = 0
    validated_topology_epoch: int = -1
    last_assignment_configs: list[LastAssignmentConfig] | None = []
    unknown_tags: UnknownTags = None


class StreamsGroupMemberMetadataKey(Struct, gc=False):
    group_id: str = ""
    member_id: str = ""


class Endpoint(Struct, gc=False):
    host: str = ""
    port: int = 0
    unknown_tags: UnknownTags = None


class KeyValue(Struct, gc=False):
    key: str = ""
    value: str = ""
    unknown_tags: UnknownTags = None


class StreamsGroupMemberMetadataValue(Struct, gc=False):
    instance_id: str | None = ""
    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] = []
    unknown_tags: UnknownTags = None


class StreamsGroupTargetAssignmentMetadataKey(Struct, gc=False):
    group_id: str = ""


class StreamsGroupTargetAssignmentMetadataValue(Struct, gc=False):
    assignment_epoch: int = 0
    assignment_timestamp: int = 0
    unknown_tags: UnknownTags = None


class StreamsGroupTargetAssignmentMemberKey(Struct, gc=False):
    group_id: str = ""
    member_id: str = ""


class StreamsGroupTargetAssignmentMemberValueTaskIds(Struct, gc=False):
    subtopology_id: str = ""
    partitions: list[int] = []
    unknown_tags: UnknownTags = None


class StreamsGroupTargetAssignmentMemberValue(Struct, gc=False):
    active_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = []
    standby_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = []
    warmup_tasks: list[StreamsGroupTargetAssignmentMemberValueTaskIds] = []
    unknown_tags: UnknownTags = None


class StreamsGroupCurrentMemberAssignmentKey(Struct, gc=False):
    group_id: str = ""
    member_id: str = ""


class StreamsGroupCurrentMemberAssignmentValueTaskIds(Struct, gc=False):
    subtopology_id: str = ""
    partitions: list[int] = []
    assignment_epochs: list[int] | None = []
    unknown_tags: UnknownTags = None


class StreamsGroupCurrentMemberAssignmentValue(Struct, gc=False):
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    active_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = []
    standby_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = []
    warmup_tasks: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = []
    active_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = []
    standby_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = []
    warmup_tasks_pending_revocation: list[StreamsGroupCurrentMemberAssignmentValueTaskIds] = []
    unknown_tags: UnknownTags = None


class StreamsGroupTopologyKey(Struct, gc=False):
    group_id: str = ""


class TopicConfig(Struct, gc=False):
    key: str = ""
    value: str = ""
    unknown_tags: UnknownTags = None


class StreamsGroupTopologyValueTopicInfo(Struct, gc=False):
    name: str = ""
    partitions: int = 0
    replication_factor: int = 0
    topic_configs: list[TopicConfig] = []
    unknown_tags: UnknownTags = None


class CopartitionGroup(Struct, gc=False):
    source_topics: list[int] = []
    source_topic_regex: list[int] = []
    repartition_source_topics: list[int] = []
    unknown_tags: UnknownTags = None


class Subtopology(Struct, gc=False):
    subtopology_id: str = ""
    source_topics: list[str] = []
    source_topic_regex: list[str] = []
    state_changelog_topics: list[StreamsGroupTopologyValueTopicInfo] = []
    repartition_sink_topics: list[str] = []
    repartition_source_topics: list[StreamsGroupTopologyValueTopicInfo] = []
    copartition_groups: list[CopartitionGroup] = []
    unknown_tags: UnknownTags = None


class StreamsGroupTopologyValue(Struct, gc=False):
    epoch: int = 0
    subtopologies: list[Subtopology] = []
    unknown_tags: UnknownTags = None
