"""UpdateFeatures (key 57), versions 0-2.

Generated from `schemas/update_features.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class FeatureUpdateKey(Struct, gc=False):
    feature: str = ""
    max_version_level: int = 0
    allow_downgrade: bool = False
    upgrade_type: int = 1
    unknown_tags: UnknownTags = None


class UpdateFeaturesRequest(Struct, gc=False):
    timeout_ms: int = 60000
    feature_updates: list[FeatureUpdateKey] = []
    validate_only: bool = False
    unknown_tags: UnknownTags = None


class UpdatableFeatureResult(Struct, gc=False):
    feature: str = ""
    error_code: int = 0
    error_message: str | None = ""
    unknown_tags: UnknownTags = None


class UpdateFeaturesResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    results: list[UpdatableFeatureResult] = []
    unknown_tags: UnknownTags = None
