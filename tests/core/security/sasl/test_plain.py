"""PLAIN: one token, read as Java reads it; denials tell no more than Kafka's."""

from __future__ import annotations

import pytest

from mockbroker.core.security.sasl.mechanism import DeniedError
from mockbroker.core.security.sasl.plain import Plain

PASSWORDS = {"alice": "secret", "zoë": "pässword"}


@pytest.mark.parametrize(
    ("token", "user"),
    [
        (b"\0alice\0secret", "alice"),
        (b"alice\0alice\0secret", "alice"),
        ("\0zoë\0pässword".encode(), "zoë"),
    ],
)
def test_the_right_password_proves_the_user(token, user):
    plain = Plain(PASSWORDS)
    assert plain.user is None
    assert plain.respond(token, 0) == b""
    assert (plain.user, plain.expires_ms) == (user, None)


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0nobody\0secret", "Authentication failed: Invalid username or password"),
        (
            b"bob\0alice\0secret",
            "Authentication failed: Client requested an authorization id that is different from"
            " username",
        ),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"alice", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice\0secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0secret\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0alice\0secret\0a\0b", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"\xff\0\xfe\0\xfd", "Authentication failed: Invalid username or password"),
    ],
)
def test_anything_else_is_denied(token, message):
    plain = Plain(PASSWORDS)
    with pytest.raises(DeniedError) as denied:
        plain.respond(token, 0)
    assert denied.value.message == message
    assert plain.user is None
    assert "secret" not in denied.value.reason
