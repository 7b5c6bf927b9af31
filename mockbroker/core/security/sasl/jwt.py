"""Signed tokens (JWT, RFC 7519) as a broker takes them: which claims must be there and hold.

Follows Kafka's BrokerJwtValidator: the signature is right, `exp` and `iat` are there, the clock
lies between `nbf` and `exp` give or take a skew, issuer and audience are the expected ones if any
are configured. Unsigned tokens (`alg: none`) are accepted only if the cluster is configured so, and
then need no `iat` (OAuthBearerUnsecuredValidatorCallbackHandler). Keys are the caller's: signatures
are checked by a function that is handed in.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from mockbroker.core.security.sasl.mechanism import DeniedError

ALGORITHMS = ("RS256", "ES256")

# (algorithm, key id, signed bytes, signature) -> whether a known key made that signature.
Verify = Callable[[str, str | None, bytes, bytes], bool]


def knows_no_key(algorithm: str, key_id: str | None, signed: bytes, signature: bytes) -> bool:  # noqa: ARG001
    """No signature is right."""
    return False


@dataclass(frozen=True)
class TokenRules:
    """What a listener asks of tokens; times in ms. Named after the `sasl.oauthbearer.*` configs."""

    clock_skew_ms: int = 30_000
    expected_audience: Sequence[str] = ()
    expected_issuer: str | None = None
    sub_claim_name: str = "sub"
    allow_unsigned: bool = False


@dataclass(frozen=True)
class Bearer:
    """Who a valid token speaks for, and until when."""

    user: str
    expires_ms: int


def validate(token: str, rules: TokenRules, verify: Verify, now_ms: int) -> Bearer:
    """The bearer of a token. Raises DeniedError that says, for the log, what is wrong with it."""
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
            raise DeniedError("the token says that it is not signed, but bears a signature")
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
        raise DeniedError(f"the token holds from {not_before_ms} ms, it is {now_ms}")
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
        raise DeniedError(f"the token names nobody in its claim {rules.sub_claim_name!r}")
    return Bearer(user, expires_ms)


def _time(claims: Mapping[str, object], name: str, *, required: bool) -> int | None:
    """A claim in seconds since the epoch, as ms."""
    value = claims.get(name)
    if value is None and not required:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DeniedError(f"the token's claim {name!r} is no time")
    return int(value * 1000)


def _object(part: str, name: str) -> dict[str, object]:
    try:
        found = json.loads(_decoded(part, name))
    except ValueError:
        raise DeniedError(f"the token's {name} is no JSON") from None
    if not isinstance(found, dict):
        raise DeniedError(f"the token's {name} is no JSON object")
    return found


def _decoded(part: str, name: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except (binascii.Error, ValueError):
        raise DeniedError(f"the token's {name} is not base64url") from None


def encoded(data: bytes) -> str:
    """Base64url without padding, as the parts of a token are written."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unsigned_token(header: Mapping[str, object], claims: Mapping[str, object]) -> str:
    """`header.claims` of a token, which is what gets signed."""
    return ".".join(
        encoded(json.dumps(part, separators=(",", ":")).encode()) for part in (header, claims)
    )
