"""OAUTHBEARER (RFC 7628, KIP-255): the client sends a bearer token (OAuthBearerSaslServer).

An invalid token is answered with a JSON error as a challenge. The client acknowledges it with the
byte 0x01; then the authentication fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from mockbroker.core.security.sasl.jwt import Bearer
from mockbroker.core.security.sasl.mechanism import DeniedError, denied_with_reason

_SASL_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PAIR = r"[A-Za-z]+=[\x21-\x7e \t\r\n]+\x01"
_CLIENT_FIRST = rf"n,(?:a=(?P<authzid>{_SASL_NAME}))?,\x01(?P<pairs>(?:{_PAIR})*)\x01"
_BEARER = r"(?i:bearer) +(?P<token>[-_.a-zA-Z0-9]+)"

ERROR = '{"status":"invalid_token"}'
ACKNOWLEDGED = b"\x01"

Validate = Callable[[str, int], Bearer]
"""(token, now in ms) to its bearer; raises DeniedError."""


class OAuthBearer:
    """The server side of OAUTHBEARER."""

    __slots__ = ("_refused", "_validate", "expires_ms", "name", "user")

    def __init__(self, validate: Validate) -> None:
        self.name = "OAUTHBEARER"
        self.user: str | None = None
        self.expires_ms: int | None = None
        self._validate = validate
        self._refused: str | None = None  # the reason of an invalid token

    def respond(self, token: bytes, now_ms: int) -> bytes:
        if self._refused is not None and token == ACKNOWLEDGED:
            raise DeniedError(self._refused, message=ERROR)
        message = re.fullmatch(_CLIENT_FIRST, token.decode("utf-8", "replace"))
        if message is None:
            raise DeniedError("the client's message is not an OAUTHBEARER message")
        pairs = dict(pair.split("=", 1) for pair in message["pairs"].split("\x01") if pair)
        bearer = re.fullmatch(_BEARER, pairs.get("auth", ""))
        if bearer is None:
            raise DeniedError("the client's message has no token")
        try:
            found = self._validate(bearer["token"], now_ms)
        except DeniedError as error:
            self._refused = error.reason
            return ERROR.encode()
        if message["authzid"] not in (None, found.user):
            raise denied_with_reason(
                f"Authentication failed: Client requested an authorization id"
                f" ({message['authzid']}) that is different from the token's principal name"
                f" ({found.user})"
            )
        self.user = found.user
        self.expires_ms = found.expires_ms
        return b""
