"""The server side of a SASL mechanism (Java's SaslServer)."""

from __future__ import annotations

from typing import Protocol


class DeniedError(Exception):
    """The client did not prove itself.

    `reason` is for the log. `message` is for the client, None where Kafka names only the mechanism.
    """

    def __init__(self, reason: str, *, message: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.message = message


def denied_with_reason(reason: str) -> DeniedError:
    """A denial whose reason is in the response (Java's SaslAuthenticationException)."""
    return DeniedError(reason, message=reason)


class Mechanism(Protocol):
    """The server side of one exchange of tokens.

    `user` is None until the client has proved to be that user. `expires_ms` is when its credential
    ends (ms since the epoch), None if it does not.
    """

    name: str
    user: str | None
    expires_ms: int | None

    def respond(self, token: bytes, now_ms: int) -> bytes:
        """The response to a token; it may be empty. Raises DeniedError."""
        ...
