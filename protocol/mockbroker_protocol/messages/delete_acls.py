"""DeleteAcls (key 31), versions 1-3.

Generated from `schemas/delete_acls.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class DeleteAclsFilter(Struct, gc=False):
    resource_type_filter: int = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: int = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: int = 0
    permission_type: int = 0
    unknown_tags: UnknownTags = None


class DeleteAclsRequest(Struct, gc=False):
    filters: list[DeleteAclsFilter] = []
    unknown_tags: UnknownTags = None


class DeleteAclsMatchingAcl(Struct, gc=False):
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0
    unknown_tags: UnknownTags = None


class DeleteAclsFilterResult(Struct, gc=False):
    error_code: int = 0
    error_message: str | None = ""
    matching_acls: list[DeleteAclsMatchingAcl] = []
    unknown_tags: UnknownTags = None


class DeleteAclsResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    filter_results: list[DeleteAclsFilterResult] = []
    unknown_tags: UnknownTags = None
