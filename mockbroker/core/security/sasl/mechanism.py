"""The server side of a SASL mechanism (Java's SaslServer)."""

from __future__ import annotations

from typing import Protocol


class DeniedError(Exception):
    """The client is not authenticated.

    `reason` is for the log. `message` is for the client, None if Kafka's has only the mechanism.
    """

    def __init__(self, reason: str, *, message: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.message = message


def denied_with_reason(reason: str) -> DeniedError:
    """An error with its reason in the response (SaslAuthenticationException)."""
    return DeniedError(reason, message=reason)


class Mechanism(Protocol):
    """The server side of one exchange of tokens.

    `user` is None until the client is authenticated. `expires_ms` is the expiry time of its
    credential (ms since the epoch), or None.
    """

    name: str
    user: str | None
    expires_ms: int | None

    def respond(self, token: bytes, now_ms: int) -> bytes:
        """The response to a token; it may be empty. Raises DeniedError."""
        ...
