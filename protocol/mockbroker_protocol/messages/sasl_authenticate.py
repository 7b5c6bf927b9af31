"""SaslAuthenticate (key 36), versions 0-2.

Generated from `schemas/sasl_authenticate.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class SaslAuthenticateRequest(Struct, gc=False):
    auth_bytes: bytes = b""
    unknown_tags: UnknownTags = None


class SaslAuthenticateResponse(Struct, gc=False):
    error_code: int = 0
    error_message: str | None = ""
    auth_bytes: bytes = b""
    session_lifetime_ms: int = 0
    unknown_tags: UnknownTags = None
