"""Request headers (v0-v2) and response headers (v0-v1).

Generated from `schemas/headers.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class RequestHeader(Struct, gc=False):
    api_key: int = 0
    api_version: int = 0
    correlation_id: int = 0
    client_id: str | None = None
    unknown_tags: UnknownTags = None


class ResponseHeader(Struct, gc=False):
    correlation_id: int = 0
    unknown_tags: UnknownTags = None
