"""PLAIN (RFC 4616): one token, `[authorization id] NUL user NUL password` (PlainSaslServer)."""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from mockbroker.core.security.sasl.mechanism import denied_with_reason


class Plain:
    """The server side of PLAIN, with the passwords by user."""

    __slots__ = ("_passwords", "expires_ms", "name", "user")

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self.name = "PLAIN"
        self.user: str | None = None
        self.expires_ms: int | None = None
        self._passwords = passwords

    def respond(self, token: bytes, now_ms: int) -> bytes:  # noqa: ARG002 - nothing here expires
        # Kafka splits into at most four tokens.
        parts = token.decode("utf-8", "replace").split("\0")[:4]
        if len(parts) != 3:
            raise denied_with_reason(
                f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}"
            )
        authorization_id, user, password = parts
        if not user:
            raise denied_with_reason("Authentication failed: username not specified")
        if not password:
            raise denied_with_reason("Authentication failed: password not specified")
        # Unknown users and wrong passwords take the same time.
        expected = self._passwords.get(user)
        right = hmac.compare_digest((expected or password).encode(), password.encode())
        if expected is None or not right:
            raise denied_with_reason("Authentication failed: Invalid username or password")
        if authorization_id not in ("", user):
            raise denied_with_reason(
                "Authentication failed: Client requested an authorization id that is different"
                " from username"
            )
        self.user = user
        return b""
