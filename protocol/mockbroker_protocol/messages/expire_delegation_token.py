"""ExpireDelegationToken (key 40), versions 1-2.

Generated from `schemas/expire_delegation_token.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class ExpireDelegationTokenRequest(Struct, gc=False):
    hmac: bytes = b""
    expiry_time_period_ms: int = 0
    unknown_tags: UnknownTags = None


class ExpireDelegationTokenResponse(Struct, gc=False):
    error_code: int = 0
    expiry_timestamp_ms: int = 0
    throttle_time_ms: int = 0
    unknown_tags: UnknownTags = None
