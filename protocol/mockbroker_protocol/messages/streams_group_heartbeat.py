"""StreamsGroupHeartbeat (key 88), versions 0.

Generated from `schemas/streams_group_heartbeat.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class KeyValue(Struct, gc=False):
    key: str = ""
    value: str = ""
    unknown_tags: UnknownTags = None


class TopicInfo(Struct, gc=False):
    name: str = ""
    partitions: int = 0
    replication_factor: int = 0
    topic_configs: list[KeyValue] = []
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
    state_changelog_topics: list[TopicInfo] = []
    repartition_sink_topics: list[str] = []
    repartition_source_topics: list[TopicInfo] = []
    copartition_groups: list[CopartitionGroup] = []
    unknown_tags: UnknownTags = None


class Topology(Struct, gc=False):
    epoch: int = 0
    subtopologies: list[Subtopology] = []
    unknown_tags: UnknownTags = None


class ResponseTaskIds(Struct, gc=False):
    subtopology_id: str = ""
    partitions: list[int] = []
    unknown_tags: UnknownTags = None


class RequestEndpoint(Struct, gc=False):
    host: str = ""
    port: int = 0
    unknown_tags: UnknownTags = None


class TaskOffset(Struct, gc=False):
    subtopology_id: str = ""
    partition: int = 0
    offset: int = 0
    unknown_tags: UnknownTags = None


class StreamsGroupHeartbeatRequest(Struct, gc=False):
    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    endpoint_information_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topology: Topology | None = None
    active_tasks: list[ResponseTaskIds] | None = None
    standby_tasks: list[ResponseTaskIds] | None = None
    warmup_tasks: list[ResponseTaskIds] | None = None
    process_id: str | None = None
    user_endpoint: RequestEndpoint | None = None
    client_tags: list[KeyValue] | None = None
    task_offsets: list[TaskOffset] | None = None
    task_end_offsets: list[TaskOffset] | None = None
    shutdown_application: bool = False
    unknown_tags: UnknownTags = None


class Status(Struct, gc=False):
    status_code: int = 0
    status_detail: str = ""
    unknown_tags: UnknownTags = None


class ResponseEndpoint(Struct, gc=False, frozen=True):
    host: str = ""
    port: int = 0
    unknown_tags: UnknownTags = None


class TopicPartition(Struct, gc=False):
    topic: str = ""
    partitions: list[int] = []
    unknown_tags: UnknownTags = None


class EndpointToPartitions(Struct, gc=False):
    user_endpoint: ResponseEndpoint = ResponseEndpoint()
    active_partitions: list[TopicPartition] = []
    standby_partitions: list[TopicPartition] = []
    unknown_tags: UnknownTags = None


class StreamsGroupHeartbeatResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    acceptable_recovery_lag: int = 0
    task_offset_interval_ms: int = 0
    status: list[Status] | None = []
    active_tasks: list[ResponseTaskIds] | None = None
    standby_tasks: list[ResponseTaskIds] | None = None
    warmup_tasks: list[ResponseTaskIds] | None = None
    endpoint_information_epoch: int = 0
    partitions_by_user_endpoint: list[EndpointToPartitions] | None = None
    unknown_tags: UnknownTags = None
