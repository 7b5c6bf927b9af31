"""No secret reaches a spool, and the rest of its message can be decoded."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mockbroker.core.configs.secrets import HIDDEN
from mockbroker.core.journal.entries import HopEntry, RequestEntry, ResponseEntry
from mockbroker.core.journal.messages import decode_request, decode_response, error_names
from mockbroker.core.journal.plain import plain
from mockbroker.pipeline.spool.format import encode
from mockbroker.pipeline.spool.redaction import redacted
from mockbroker_protocol import ApiKey
from mockbroker_protocol.codec import request_codec, response_codec
from mockbroker_protocol.declarations import declared_keys, schema_module
from mockbroker_protocol.headers import RequestHeader, encode_request_header
from mockbroker_protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
)
from mockbroker_protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from tests.support.populated import populated

SECRET = b"a-secret-that-nobody-may-read"
NAMES = {"auth_bytes", "hmac", "request_data", "response_data", "salt", "salted_password"}


def with_secrets(message: Any) -> int:
    """Put the secret into all fields for secrets; returns how many there are."""
    found = 0
    for name in message.__struct_fields__:
        value = getattr(message, name)
        if name in NAMES:
            setattr(message, name, SECRET)
            found += 1
        elif isinstance(value, msgspec.Struct):
            found += with_secrets(value)
        elif isinstance(value, list):
            found += sum(with_secrets(each) for each in value if isinstance(each, msgspec.Struct))
    return found


def request_of(key: ApiKey, version: int, message: Any) -> RequestEntry:
    header = encode_request_header(RequestHeader(key, version, 1, "c"))
    frame = b"".join((header, *request_codec(key, version).encode(message)))
    return RequestEntry(1, 2, 3, 1, 7, frame)


def response_of(key: ApiKey, version: int, message: Any) -> ResponseEntry:
    body = response_codec(key, version).encode(message)
    return ResponseEntry(2, 3, 4, 1, 7, 1, key, version, 1, body, "", ())


@pytest.mark.parametrize("key", declared_keys(), ids=lambda key: key.name)
def test_no_version_of_any_message_carries_a_secret_to_disk(key: ApiKey) -> None:
    """Whatever names nothing secret is written as it is."""
    versions = schema_module(key.name.lower()).REQUEST.versions
    for version in range(versions.low, versions.high + 1):
        for is_request, entry_of in ((True, request_of), (False, response_of)):
            message = populated(key, version, request=is_request)
            secrets = with_secrets(message)
            entry = entry_of(key, version, message)
            assert SECRET not in encode(entry)
            if not secrets and key not in (ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS):
                assert redacted(entry) == entry


@pytest.mark.parametrize("name", ["ssl.keystore.password", "listener.name.x.ssl.keystore.password"])
def test_of_configs_the_passwords_are_left_out_and_the_others_kept(name: str) -> None:
    configs = [
        AlterableConfig(name, SECRET.decode()),
        AlterableConfig("log.retention.ms", "1234567"),
    ]
    message = AlterConfigsRequest([AlterConfigsResource(4, "1", configs)])
    entry = redacted(request_of(ApiKey.ALTER_CONFIGS, 2, message))
    found = decode_request(entry.frame)
    assert [each.value for each in found.message.resources[0].configs] == ["", "1234567"]
    assert SECRET not in encode(entry)
    assert HIDDEN in str(plain(message))


def test_an_answer_keeps_its_errors() -> None:
    message = SaslAuthenticateResponse(58, "wrong", SECRET)
    found = decode_response(redacted(response_of(ApiKey.SASL_AUTHENTICATE, 2, message)))
    assert (error_names(found), found.auth_bytes) == (("SASL_AUTHENTICATION_FAILED",), b"")


def test_of_a_request_that_cannot_be_decoded_the_header_is_kept() -> None:
    header = encode_request_header(RequestHeader(ApiKey.SASL_AUTHENTICATE, 2, 9, "c"))
    entry = redacted(RequestEntry(1, 2, 3, 1, 7, header + b"\x7f" + SECRET))
    assert entry.frame == header
    body = redacted(ResponseEntry(2, 3, 4, 1, 7, 1, 36, 2, 1, [b"\x00", SECRET], "", ()))
    assert body.body == []


def test_the_messages_of_hops_are_left_out() -> None:
    hop = HopEntry(1, 2, 3, 1, 2, 1, 17, "", 0, populated(ApiKey.FETCH, 17), "", ())
    assert redacted(hop).message is None
