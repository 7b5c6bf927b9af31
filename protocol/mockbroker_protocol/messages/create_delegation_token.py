"""CreateDelegationToken (key 38), versions 1-3.

Generated from `schemas/create_delegation_token.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class CreatableRenewers(Struct, gc=False):
    principal_type: str = ""
    principal_name: str = ""
    unknown_tags: UnknownTags = None


class CreateDelegationTokenRequest(Struct, gc=False):
    owner_principal_type: str | None = ""
    owner_principal_name: str | None = ""
    renewers: list[CreatableRenewers] = []
    max_lifetime_ms: int = 0
    unknown_tags: UnknownTags = None


class CreateDelegationTokenResponse(Struct, gc=False):
    error_code: int = 0
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = ""
    token_requester_principal_name: str = ""
    issue_timestamp_ms: int = 0
    expiry_timestamp_ms: int = 0
    max_timestamp_ms: int = 0
    token_id: str = ""
    hmac: bytes = b""
    throttle_time_ms: int = 0
    unknown_tags: UnknownTags = None
