"""Shared parts of the four delegation token APIs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.security.principals import ANONYMOUS

if TYPE_CHECKING:
    from mockbroker.handlers.base import RequestContext


def allow_token_requests(ctx: RequestContext) -> bool:
    """Whether the client is authenticated, and not by a token (KafkaApis.allowTokenRequests)."""
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
