"""StreamsGroupDescribe (key 89), versions 0.

Generated from `schemas/streams_group_describe.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct, field

from mockbroker_protocol.types import UnknownTags


class StreamsGroupDescribeRequest(Struct, gc=False):
    group_ids: list[str] = []
    include_authorized_operations: bool = False
    unknown_tags: UnknownTags = None


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


class Subtopology(Struct, gc=False):
    subtopology_id: str = ""
    source_topics: list[str] = []
    repartition_sink_topics: list[str] = []
    state_changelog_topics: list[TopicInfo] = []
    repartition_source_topics: list[TopicInfo] = []
    unknown_tags: UnknownTags = None


class Topology(Struct, gc=False):
    epoch: int = 0
    subtopologies: list[Subtopology] | None = None
    unknown_tags: UnknownTags = None


class Endpoint(Struct, gc=False):
    host: str = ""
    port: int = 0
    unknown_tags: UnknownTags = None


class TaskOffset(Struct, gc=False):
    subtopology_id: str = ""
    partition: int = 0
    offset: int = 0
    unknown_tags: UnknownTags = None


class TaskIds(Struct, gc=False):
    subtopology_id: str = ""
    partitions: list[int] = []
    unknown_tags: UnknownTags = None


class Assignment(Struct, gc=False):
    active_tasks: list[TaskIds] = []
    standby_tasks: list[TaskIds] = []
    warmup_tasks: list[TaskIds] = []
    unknown_tags: UnknownTags = None


class Member(Struct, gc=False):
    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topology_epoch: int = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: list[KeyValue] = []
    task_offsets: list[TaskOffset] = []
    task_end_offsets: list[TaskOffset] = []
    assignment: Assignment = field(default_factory=Assignment)
    target_assignment: Assignment = field(default_factory=Assignment)
    is_classic: bool = False
    unknown_tags: UnknownTags = None


class DescribedGroup(Struct, gc=False):
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    topology: Topology | None = None
    members: list[Member] = []
    authorized_operations: int = -2147483648
    unknown_tags: UnknownTags = None


class StreamsGroupDescribeResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = []
    unknown_tags: UnknownTags = None
