"""AlterUserScramCredentials (key 51), versions 0.

Generated from `schemas/alter_user_scram_credentials.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class ScramCredentialDeletion(Struct, gc=False):
    name: str = ""
    mechanism: int = 0
    unknown_tags: UnknownTags = None


class ScramCredentialUpsertion(Struct, gc=False):
    name: str = ""
    mechanism: int = 0
    iterations: int = 0
    salt: bytes = b""
    salted_password: bytes = b""
    unknown_tags: UnknownTags = None


class AlterUserScramCredentialsRequest(Struct, gc=False):
    deletions: list[ScramCredentialDeletion] = []
    upsertions: list[ScramCredentialUpsertion] = []
    unknown_tags: UnknownTags = None


class AlterUserScramCredentialsResult(Struct, gc=False):
    user: str = ""
    error_code: int = 0
    error_message: str | None = ""
    unknown_tags: UnknownTags = None


class AlterUserScramCredentialsResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    results: list[AlterUserScramCredentialsResult] = []
    unknown_tags: UnknownTags = None
