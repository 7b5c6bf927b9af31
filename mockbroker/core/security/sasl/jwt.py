"""The validation of signed tokens (JWT, RFC 7519).

A valid token has a valid signature and the claims `exp` and `iat`. The time is between `nbf` and
`exp`, with a clock skew. Issuer and audience are the expected ones, if any are configured. Unsigned
tokens (`alg: none`) are valid only by config, and need no `iat`
(OAuthBearerUnsecuredValidatorCallbackHandler). The caller passes a function that checks signatures.

Source: BrokerJwtValidator.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mockbroker.core.security.sasl.mechanism import DeniedError

ALGORITHMS = ("RS256", "ES256")
# JSON can name half of a character, which no encoding has.
_SURROGATE = re.compile("[\ud800-\udfff]")
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1

# (algorithm, key id, signed bytes, signature) -> whether the signature is that of a known key.
Verify = Callable[[str, str | None, bytes, bytes], bool]


def rejects_all(algorithm: str, key_id: str | None, signed: bytes, signature: bytes) -> bool:  # noqa: ARG001
    """The check without keys: no signature is valid."""
    return False


@dataclass(frozen=True)
class TokenRules:
    """The requirements of a listener; times in ms. The names are those of `sasl.oauthbearer.*`."""

    clock_skew_ms: int = 30_000
    expected_audience: Sequence[str] = ()
    expected_issuer: str | None = None
    sub_claim_name: str = "sub"
    allow_unsigned: bool = False


@dataclass(frozen=True)
class Bearer:
    """The user of a valid token, and its expiry time."""

    user: str
    expires_ms: int


def validate(token: str, rules: TokenRules, verify: Verify, now_ms: int) -> Bearer:
    """The bearer of a token. Raises DeniedError with the reason for the log."""
    parts = token.split(".")
    if len(parts) != 3:
        raise DeniedError(f"a token has three parts, this one {len(parts)}")
    header = _object(parts[0], "header")
    algorithm = header.get("alg")
    unsigned = algorithm == "none"
    if unsigned:
        if not rules.allow_unsigned:
            raise DeniedError("the token is not signed")
        if parts[2]:
            raise DeniedError("the token is unsigned by its header, but has a signature")
    elif algorithm not in ALGORITHMS:
        raise DeniedError(f"tokens are signed with {' or '.join(ALGORITHMS)}, not {algorithm!r}")
    else:
        key_id = header.get("kid")
        signed = f"{parts[0]}.{parts[1]}".encode()
        known = key_id if isinstance(key_id, str) else None
        if not verify(str(algorithm), known, signed, _decoded(parts[2], "signature")):
            raise DeniedError("the token's signature is not that of a known key")
    return _bearer(_object(parts[1], "claims"), rules, now_ms, unsigned=unsigned)


def _bearer(
    claims: Mapping[str, object], rules: TokenRules, now_ms: int, *, unsigned: bool
) -> Bearer:
    expires_ms = _time(claims, "exp", required=True)
    issued_ms = _time(claims, "iat", required=not unsigned)
    not_before_ms = _time(claims, "nbf", required=False)
    assert expires_ms is not None
    if now_ms - rules.clock_skew_ms >= expires_ms:
        raise DeniedError(f"the token expired at {expires_ms} ms, it is {now_ms}")
    if not_before_ms is not None and now_ms + rules.clock_skew_ms < not_before_ms:
        raise DeniedError(f"the token is valid from {not_before_ms} ms, it is {now_ms}")
    if issued_ms is not None and issued_ms > expires_ms:
        raise DeniedError("the token expired before it was issued")
    if rules.expected_issuer is not None and claims.get("iss") != rules.expected_issuer:
        raise DeniedError(f"the token's issuer is {claims.get('iss')!r}")
    audience = claims.get("aud")
    audiences = audience if isinstance(audience, list) else [audience]
    if rules.expected_audience and not set(rules.expected_audience) & {
        each for each in audiences if isinstance(each, str)
    }:
        raise DeniedError(f"the token's audience is {audience!r}")
    user = claims.get(rules.sub_claim_name)
    if not isinstance(user, str) or not user.strip():
        raise DeniedError(f"the token has no user in its claim {rules.sub_claim_name!r}")
    if _SURROGATE.search(user):
        raise DeniedError(f"the token's claim {rules.sub_claim_name!r} is not text")
    return Bearer(user, expires_ms)


def _time(claims: Mapping[str, object], name: str, *, required: bool) -> int | None:
    """A claim in seconds since the epoch, as ms."""
    value = claims.get(name)
    if value is None and not required:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value:  # noqa: PLR0124
        raise DeniedError(f"the token's claim {name!r} is not a time")
    # Java's Math.round ends at the bounds of a long.
    return int(max(LONG_MIN, min(LONG_MAX, value * 1000)))


def _object(part: str, name: str) -> dict[str, object]:
    try:
        found = json.loads(_decoded(part, name))
    except (ValueError, RecursionError):
        raise DeniedError(f"the token's {name} is not JSON") from None
    if not isinstance(found, dict):
        raise DeniedError(f"the token's {name} is not a JSON object")
    return found


def _decoded(part: str, name: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except (binascii.Error, ValueError):
        raise DeniedError(f"the token's {name} is not base64url") from None


def encoded(data: bytes) -> str:
    """Base64url without padding, the encoding of a token's parts."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unsigned_token(header: Mapping[str, object], claims: Mapping[str, object]) -> str:
    """`header.claims` of a token: the signed part."""
    return ".".join(
        encoded(json.dumps(part, separators=(",", ":")).encode()) for part in (header, claims)
    )
