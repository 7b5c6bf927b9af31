"""What every SASL mechanism's server side is to its authenticator."""

from __future__ import annotations

from typing import Protocol


class DeniedError(Exception):
    """The client did not prove itself.

    `reason` is for the log. `told` is for the client, None where Kafka keeps the reason to itself
    and tells only the mechanism.
    """

    def __init__(self, reason: str, *, told: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.told = told


def denied_aloud(reason: str) -> DeniedError:
    """A denial whose reason the client is told (Java's SaslAuthenticationException)."""
    return DeniedError(reason, told=reason)


class Mechanism(Protocol):
    """The server side of one exchange of tokens.

    `user` is None until the client has proved to be that user. `expires_ms` is when its credential
    ends (ms since the epoch), None if it does not.
    """

    name: str
    user: str | None
    expires_ms: int | None

    def respond(self, token: bytes, now_ms: int) -> bytes:
        """Take a token, give the answer to it, which may be empty. Raises DeniedError."""
        ...
