"""ShareGroupDescribe (key 77), versions 1.

Generated from `schemas/share_group_describe.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct, field

from mockbroker_protocol.types import ZERO_UUID, UnknownTags


class ShareGroupDescribeRequest(Struct, gc=False):
    group_ids: list[str] = []
    include_authorized_operations: bool = False
    unknown_tags: UnknownTags = None


class TopicPartitions(Struct, gc=False):
    topic_id: bytes = ZERO_UUID
    topic_name: str = ""
    partitions: list[int] = []
    unknown_tags: UnknownTags = None


class Assignment(Struct, gc=False):
    topic_partitions: list[TopicPartitions] = []
    unknown_tags: UnknownTags = None


class Member(Struct, gc=False):
    member_id: str = ""
    rack_id: str | None = None
    member_epoch: int = 0
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: list[str] = []
    assignment: Assignment = field(default_factory=Assignment)
    unknown_tags: UnknownTags = None


class DescribedGroup(Struct, gc=False):
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    assignor_name: str = ""
    members: list[Member] = []
    authorized_operations: int = -2147483648
    unknown_tags: UnknownTags = None


class ShareGroupDescribeResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = []
    unknown_tags: UnknownTags = None
