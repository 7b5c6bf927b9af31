"""DescribeAcls (key 29), versions 1-3.

Generated from `schemas/describe_acls.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class DescribeAclsRequest(Struct, gc=False):
    resource_type_filter: int = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: int = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: int = 0
    permission_type: int = 0
    unknown_tags: UnknownTags = None


class AclDescription(Struct, gc=False):
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0
    unknown_tags: UnknownTags = None


class DescribeAclsResource(Struct, gc=False):
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3
    acls: list[AclDescription] = []
    unknown_tags: UnknownTags = None


class DescribeAclsResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    resources: list[DescribeAclsResource] = []
    unknown_tags: UnknownTags = None
