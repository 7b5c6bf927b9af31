"""CreateAcls (key 30), versions 1-3.

Generated from `schemas/create_acls.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class AclCreation(Struct, gc=False):
    resource_type: int = 0
    resource_name: str = ""
    resource_pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0
    unknown_tags: UnknownTags = None


class CreateAclsRequest(Struct, gc=False):
    creations: list[AclCreation] = []
    unknown_tags: UnknownTags = None


class AclCreationResult(Struct, gc=False):
    error_code: int = 0
    error_message: str | None = ""
    unknown_tags: UnknownTags = None


class CreateAclsResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    results: list[AclCreationResult] = []
    unknown_tags: UnknownTags = None
