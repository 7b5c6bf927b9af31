"""ApiVersions (key 18), versions 0-4.

Generated from `schemas/api_versions.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class ApiVersionsRequest(Struct, gc=False):
    client_software_name: str = ""
    client_software_version: str = ""
    unknown_tags: UnknownTags = None


class ApiVersion(Struct, gc=False):
    api_key: int = 0
    min_version: int = 0
    max_version: int = 0
    unknown_tags: UnknownTags = None


class SupportedFeatureKey(Struct, gc=False):
    name: str = ""
    min_version: int = 0
    max_version: int = 0
    unknown_tags: UnknownTags = None


class FinalizedFeatureKey(Struct, gc=False):
    name: str = ""
    max_version_level: int = 0
    min_version_level: int = 0
    unknown_tags: UnknownTags = None


class ApiVersionsResponse(Struct, gc=False):
    error_code: int = 0
    api_keys: list[ApiVersion] = []
    throttle_time_ms: int = 0
    supported_features: list[SupportedFeatureKey] = []
    finalized_features_epoch: int = -1
    finalized_features: list[FinalizedFeatureKey] = []
    zk_migration_ready: bool = False
    unknown_tags: UnknownTags = None
