"""DescribeUserScramCredentials (key 50), versions 0.

Generated from `schemas/describe_user_scram_credentials.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class UserName(Struct, gc=False):
    name: str = ""
    unknown_tags: UnknownTags = None


class DescribeUserScramCredentialsRequest(Struct, gc=False):
    users: list[UserName] | None = []
    unknown_tags: UnknownTags = None


class CredentialInfo(Struct, gc=False):
    mechanism: int = 0
    iterations: int = 0
    unknown_tags: UnknownTags = None


class DescribeUserScramCredentialsResult(Struct, gc=False):
    user: str = ""
    error_code: int = 0
    error_message: str | None = ""
    credential_infos: list[CredentialInfo] = []
    unknown_tags: UnknownTags = None


class DescribeUserScramCredentialsResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = ""
    results: list[DescribeUserScramCredentialsResult] = []
    unknown_tags: UnknownTags = None
