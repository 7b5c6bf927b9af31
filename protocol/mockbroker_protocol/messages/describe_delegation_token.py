"""DescribeDelegationToken (key 41), versions 1-3.

Generated from `schemas/describe_delegation_token.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class DescribeDelegationTokenOwner(Struct, gc=False):
    principal_type: str = ""
    principal_name: str = ""
    unknown_tags: UnknownTags = None


class DescribeDelegationTokenRequest(Struct, gc=False):
    owners: list[DescribeDelegationTokenOwner] | None = []
    unknown_tags: UnknownTags = None


class DescribedDelegationTokenRenewer(Struct, gc=False):
    principal_type: str = ""
    principal_name: str = ""
    unknown_tags: UnknownTags = None


class DescribedDelegationToken(Struct, gc=False):
    principal_type: str = ""
    principal_name: str = ""
    token_requester_principal_type: str = ""
    token_requester_principal_name: str = ""
    issue_timestamp: int = 0
    expiry_timestamp: int = 0
    max_timestamp: int = 0
    token_id: str = ""
    hmac: bytes = b""
    renewers: list[DescribedDelegationTokenRenewer] = []
    unknown_tags: UnknownTags = None


class DescribeDelegationTokenResponse(Struct, gc=False):
    error_code: int = 0
    tokens: list[DescribedDelegationToken] = []
    throttle_time_ms: int = 0
    unknown_tags: UnknownTags = None
