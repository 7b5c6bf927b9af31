"""RenewDelegationToken (key 39), versions 1-2.

Generated from `schemas/renew_delegation_token.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class RenewDelegationTokenRequest(Struct, gc=False):
    hmac: bytes = b""
    renew_period_ms: int = 0
    unknown_tags: UnknownTags = None


class RenewDelegationTokenResponse(Struct, gc=False):
    error_code: int = 0
    expiry_timestamp_ms: int = 0
    throttle_time_ms: int = 0
    unknown_tags: UnknownTags = None
