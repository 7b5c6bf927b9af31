"""Effects on connections and on who is behind them."""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from mockbroker.core.validation import Ms


class RefuseConnection(msgspec.Struct, frozen=True):
    """The connection is accepted and ended at once; a broker that is stopped refuses for good."""

    SHORT: ClassVar[str] = "how"

    how: Literal["fin", "rst"] = "rst"


class StallHandshake(msgspec.Struct, frozen=True, kw_only=True):
    """The connection is accepted, and then nothing is said: neither TLS, nor SASL, nor Kafka.

    `at` the TLS handshake (on a listener without TLS: at the first byte) or the SASL one; for a
    time, after which it goes on, or for ever.
    """

    SHORT: ClassVar[str] = "for"

    at: Literal["tls", "sasl"] = "tls"
    for_: Ms | None = msgspec.field(default=None, name="for")


class CutOff(msgspec.Struct, frozen=True):
    """The way between a client and a broker is cut: what is sent is not there before it is healed.

    `cut_network` makes it, with `clients`. One way: only answers are lost on the way.
    """

    both_ways: bool = True


class FailReauthentication(msgspec.Struct, frozen=True):
    """The next time the client proves itself on an open connection (KIP-368), it is refused."""

    SHORT: ClassVar[str] = "message"

    message: str = "Authentication failed during re-authentication"


class ExpireCredential(msgspec.Struct, frozen=True):
    """A SASL `session` has run out: the connection's next request is refused by its close, unless
    it renews the session. Or a broker's `certificate` has: new TLS connections see an old one.
    """

    SHORT: ClassVar[str] = "what"

    what: Literal["session", "certificate"] = "session"


class Observe(msgspec.Struct, frozen=True):
    """Nothing but a hit, to be counted and waited for."""


def is_at_accept(effect: object) -> bool:
    """Whether an effect is for connections that are just being accepted, not for requests."""
    match effect:
        case RefuseConnection():
            return True
        case StallHandshake():
            return effect.at == "tls"
        case ExpireCredential():
            return effect.what == "certificate"
    return False
