"""DescribeGroups (key 15), versions 0-6.

Generated from `schemas/describe_groups.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class DescribeGroupsRequest(Struct, gc=False):
    groups: list[str] = []
    include_authorized_operations: bool = False
    unknown_tags: UnknownTags = None


class DescribedGroupMember(Struct, gc=False):
    member_id: str = ""
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""
    unknown_tags: UnknownTags = None


class DescribedGroup(Struct, gc=False):
    error_code: int = 0
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: list[DescribedGroupMember] = []
    authorized_operations: int = -2147483648
    unknown_tags: UnknownTags = None


class DescribeGroupsResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    groups: list[DescribedGroup] = []
    unknown_tags: UnknownTags = None
