"""IncrementalAlterConfigs (key 44), versions 0-1.

Generated from `schemas/incremental_alter_configs.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class AlterableConfig(Struct, gc=False):
    name: str = ""
    config_operation: int = 0
    value: str | None = ""
    unknown_tags: UnknownTags = None


class AlterConfigsResource(Struct, gc=False):
    resource_type: int = 0
    resource_name: str = ""
    configs: list[AlterableConfig] = []
    unknown_tags: UnknownTags = None


class IncrementalAlterConfigsRequest(Struct, gc=False):
    resources: list[AlterConfigsResource] = []
    validate_only: bool = False
    unknown_tags: UnknownTags = None


class AlterConfigsResourceResponse(Struct, gc=False):
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    unknown_tags: UnknownTags = None


class IncrementalAlterConfigsResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    responses: list[AlterConfigsResourceResponse] = []
    unknown_tags: UnknownTags = None
