"""OAUTHBEARER: a refused token is first a challenge, and only then a denial."""

from __future__ import annotations

import pytest

from mockbroker.core.security.sasl.jwt import Bearer
from mockbroker.core.security.sasl.mechanism import DeniedError
from mockbroker.core.security.sasl.oauthbearer import OAuthBearer


def validate(token: str, now_ms: int) -> Bearer:
    if token != "good":
        raise DeniedError("the token is bad")
    return Bearer("alice", now_ms + 5)


@pytest.mark.parametrize(
    "message",
    [
        b"n,,\x01auth=Bearer good\x01\x01",
        b"n,,\x01auth=bearer  good\x01\x01",
        b"n,a=alice,\x01auth=Bearer good\x01\x01",
        b"n,,\x01traceId=123\x01auth=Bearer good\x01other=x y\x01\x01",
    ],
)
def test_a_valid_token_proves_its_bearer(message):
    mechanism = OAuthBearer(validate)
    assert mechanism.respond(message, 100) == b""
    assert (mechanism.user, mechanism.expires_ms) == ("alice", 105)


def test_a_refused_token_is_a_challenge_until_the_client_acknowledges_it():
    mechanism = OAuthBearer(validate)
    assert mechanism.respond(b"n,,\x01auth=Bearer bad\x01\x01", 0) == b'{"status":"invalid_token"}'
    assert mechanism.user is None
    with pytest.raises(DeniedError) as denied:
        mechanism.respond(b"\x01", 0)
    assert (denied.value.reason, denied.value.message) == (
        "the token is bad",
        '{"status":"invalid_token"}',
    )


def test_another_token_may_follow_a_refused_one():
    mechanism = OAuthBearer(validate)
    mechanism.respond(b"n,,\x01auth=Bearer bad\x01\x01", 0)
    assert mechanism.respond(b"n,,\x01auth=Bearer good\x01\x01", 0) == b""
    assert mechanism.user == "alice"


def test_a_foreign_authorization_id_is_denied_with_the_reason():
    with pytest.raises(DeniedError) as denied:
        OAuthBearer(validate).respond(b"n,a=bob,\x01auth=Bearer good\x01\x01", 0)
    assert "(bob)" in (denied.value.message or "")


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\x01",
        b"n,,\x01\x01",
        b"n,,\x01auth=Basic good\x01\x01",
        b"n,,\x01auth=Bearer go od\x01\x01",
        b"n,,\x01auth=Bearer good\x01",
        b"y,,\x01auth=Bearer good\x01\x01",
        b"n,,auth=Bearer good",
        b"n,,\x01au-th=Bearer good\x01\x01",
    ],
)
def test_what_is_no_message_is_denied_without_a_word(message):
    with pytest.raises(DeniedError) as denied:
        OAuthBearer(validate).respond(message, 0)
    assert denied.value.message is None
