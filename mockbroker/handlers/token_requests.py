"""What the four delegation token APIs have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.security.principals import ANONYMOUS

if TYPE_CHECKING:
    from mockbroker.handlers.base import RequestContext


def may_ask(ctx: RequestContext) -> bool:
    """Whether the client has proved who it is, and otherwise than by a token (KIP-48)."""
    connection = ctx.connection
    if connection.sasl is not None and connection.sasl.by_token:
        return False
    if connection.security_protocol == "SSL":
        return connection.principal != ANONYMOUS
    return connection.security_protocol != "PLAINTEXT"


def parts_of(principal: str) -> tuple[str, str]:
    """(type, name) of a principal."""
    kind, _, name = principal.partition(":")
    return kind, name
