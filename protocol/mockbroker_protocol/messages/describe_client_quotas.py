"""DescribeClientQuotas (key 48), versions 0-1.

Generated from `schemas/describe_client_quotas.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class ComponentData(Struct, gc=False):
    entity_type: str = ""
    match_type: int = 0
    match: str | None = ""
    unknown_tags: UnknownTags = None


class DescribeClientQuotasRequest(Struct, gc=False):
    components: list[ComponentData] = []
    strict: bool = False
    unknown_tags: UnknownTags = None


class EntityData(Struct, gc=False):
    entity_type: str = ""
    entity_name: str | None = ""
    unknown_tags: UnknownTags = None


class ValueData(Struct, gc=False):
    key: str = ""
    value: float = 0.0
    unknown_tags: UnknownTags = None


class EntryData(Struct, gc=False):
    entity: list[EntityData] = []
    values: list[ValueData] = []
    unknown_tags: UnknownTags = None


class DescribeClientQuotasResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    entries: list[EntryData] | None = []
    unknown_tags: UnknownTags = None
