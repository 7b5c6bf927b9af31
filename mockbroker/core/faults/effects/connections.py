"""Effects on connections and their clients."""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from mockbroker.core.faults.effects.wire_values import check_text
from mockbroker.core.validation import Ms


class RefuseConnection(msgspec.Struct, frozen=True):
    """The connection is accepted and closed at once. A stopped broker refuses them instead."""

    SHORT: ClassVar[str] = "how"

    how: Literal["fin", "rst"] = "rst"


class StallHandshake(msgspec.Struct, frozen=True, kw_only=True):
    """The connection is accepted, and the broker sends nothing: no TLS, no SASL, no Kafka.

    `at` is the TLS handshake (on a listener without TLS: the first byte) or the SASL handshake.
    Without a time this lasts until the client closes the connection or the rule is removed.
    """

    SHORT: ClassVar[str] = "for"

    at: Literal["tls", "sasl"] = "tls"
    for_: Ms | None = msgspec.field(default=None, name="for")


class CutOff(msgspec.Struct, frozen=True):
    """The link between a client and a broker is cut: nothing arrives until it is healed.

    `cut_network` with `clients` makes it. One way: only answers are lost.
    """

    both_ways: bool = True


class FailReauthentication(msgspec.Struct, frozen=True):
    """The next reauthentication on an open connection (KIP-368) is refused."""

    SHORT: ClassVar[str] = "message"

    message: str = "Authentication failed during re-authentication"

    def __post_init__(self) -> None:
        check_text("message", self.message)


class ExpireCredential(msgspec.Struct, frozen=True):
    """A SASL `session` expires: the connection is closed at its next request, unless that is a
    reauthentication. Or a broker's `certificate` expires: new TLS connections get an expired one.
    """

    SHORT: ClassVar[str] = "what"

    what: Literal["session", "certificate"] = "session"


class Observe(msgspec.Struct, frozen=True):
    """No effect but the hit, which can be counted and waited for."""


def is_at_accept(effect: object) -> bool:
    """Whether an effect is for connections at accept, not for requests."""
    match effect:
        case RefuseConnection():
            return True
        case StallHandshake():
            return effect.at == "tls"
        case ExpireCredential():
            return effect.what == "certificate"
    return False
