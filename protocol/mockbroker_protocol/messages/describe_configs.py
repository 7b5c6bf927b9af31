"""DescribeConfigs (key 32), versions 1-4.

Generated from `schemas/describe_configs.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class DescribeConfigsResource(Struct, gc=False):
    resource_type: int = 0
    resource_name: str = ""
    configuration_keys: list[str] | None = []
    unknown_tags: UnknownTags = None


class DescribeConfigsRequest(Struct, gc=False):
    resources: list[DescribeConfigsResource] = []
    include_synonyms: bool = False
    include_documentation: bool = False
    unknown_tags: UnknownTags = None


class DescribeConfigsSynonym(Struct, gc=False):
    name: str = ""
    value: str | None = ""
    source: int = 0
    unknown_tags: UnknownTags = None


class DescribeConfigsResourceResult(Struct, gc=False):
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False
    synonyms: list[DescribeConfigsSynonym] = []
    config_type: int = 0
    documentation: str | None = ""
    unknown_tags: UnknownTags = None


class DescribeConfigsResult(Struct, gc=False):
    error_code: int = 0
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    configs: list[DescribeConfigsResourceResult] = []
    unknown_tags: UnknownTags = None


class DescribeConfigsResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    results: list[DescribeConfigsResult] = []
    unknown_tags: UnknownTags = None
