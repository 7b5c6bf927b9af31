"""What must not reach the disk: frames that may hold passwords, tokens, keys or salts."""

from __future__ import annotations

from mockbroker.core.journal.exchange import error_names
from mockbroker.pipeline.spool.notes import Buffer
from mockbroker_protocol import ApiKey
from mockbroker_protocol.codec import response_codec
from mockbroker_protocol.exceptions import DecodeError, UnknownVersionError
from mockbroker_protocol.headers import decode_request_header

# Requests with secrets: logging in, passwords of users, tokens, and configs, some of which are
# passwords.
HIDDEN_REQUESTS = frozenset(
    map(
        int,
        (
            ApiKey.SASL_AUTHENTICATE,
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
            ApiKey.RENEW_DELEGATION_TOKEN,
            ApiKey.EXPIRE_DELEGATION_TOKEN,
            ApiKey.ALTER_CONFIGS,
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
        ),
    )
)
HIDDEN_ANSWERS = frozenset(
    map(
        int,
        (
            ApiKey.SASL_AUTHENTICATE,
            ApiKey.CREATE_DELEGATION_TOKEN,
            ApiKey.DESCRIBE_DELEGATION_TOKEN,
        ),
    )
)
_API_KEY = slice(0, 2)


def shown_request(frame: Buffer) -> tuple[Buffer, bool]:
    """The frame, or no more than its header; and whether that is so."""
    if int.from_bytes(frame[_API_KEY], "big", signed=True) not in HIDDEN_REQUESTS:
        return frame, False
    try:
        _, end = decode_request_header(frame)
    except DecodeError:
        return b"", True
    return bytes(frame[:end]), True


def shown_errors(api_key: int, api_version: int, body: list[Buffer]) -> list[str]:
    """The names of the errors in an answer that is not shown otherwise."""
    try:
        codec = response_codec(ApiKey(api_key), api_version)
        message, _ = codec.decode(memoryview(b"".join(body)), 0)
    except (DecodeError, UnknownVersionError, ValueError):
        return []
    return list(error_names(message))
