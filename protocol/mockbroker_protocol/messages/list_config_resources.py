"""ListConfigResources (key 74), versions 0-1.

Generated from `schemas/list_config_resources.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class ListConfigResourcesRequest(Struct, gc=False):
    resource_types: list[int] = []
    unknown_tags: UnknownTags = None


class ConfigResource(Struct, gc=False):
    resource_name: str = ""
    resource_type: int = 16
    unknown_tags: UnknownTags = None


class ListConfigResourcesResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    config_resources: list[ConfigResource] = []
    unknown_tags: UnknownTags = None
