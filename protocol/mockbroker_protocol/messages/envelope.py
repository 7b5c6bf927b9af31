"""Envelope (key 58), versions 0.

Generated from `schemas/envelope.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class EnvelopeRequest(Struct, gc=False):
    request_data: bytes = b""
    request_principal: bytes | None = b""
    client_host_address: bytes = b""
    unknown_tags: UnknownTags = None


class EnvelopeResponse(Struct, gc=False):
    response_data: bytes | None = None
    error_code: int = 0
    unknown_tags: UnknownTags = None
