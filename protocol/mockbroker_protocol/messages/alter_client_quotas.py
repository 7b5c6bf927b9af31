"""AlterClientQuotas (key 49), versions 0-1.

Generated from `schemas/alter_client_quotas.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class RequestEntityData(Struct, gc=False):
    entity_type: str = ""
    entity_name: str | None = ""
    unknown_tags: UnknownTags = None


class OpData(Struct, gc=False):
    key: str = ""
    value: float = 0.0
    remove: bool = False
    unknown_tags: UnknownTags = None


class RequestEntryData(Struct, gc=False):
    entity: list[RequestEntityData] = []
    ops: list[OpData] = []
    unknown_tags: UnknownTags = None


class AlterClientQuotasRequest(Struct, gc=False):
    entries: list[RequestEntryData] = []
    validate_only: bool = False
    unknown_tags: UnknownTags = None


class ResponseEntityData(Struct, gc=False):
    entity_type: str = ""
    entity_name: str | None = ""
    unknown_tags: UnknownTags = None


class ResponseEntryData(Struct, gc=False):
    error_code: int = 0
    error_message: str | None = ""
    entity: list[ResponseEntityData] = []
    unknown_tags: UnknownTags = None


class AlterClientQuotasResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    entries: list[ResponseEntryData] = []
    unknown_tags: UnknownTags = None
