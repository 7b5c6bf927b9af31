"""Delegation tokens (KIP-48): credentials that a user gives to its jobs.

A token has an *owner*, whose principal it authenticates, a *requester*, and *renewers*, who may
renew it like the owner. Its *HMAC* is the id signed with `delegation.token.secret.key`. A client
authenticates by SCRAM with `tokenauth=true`, the id as name and the HMAC in base64 as password.
Without a secret key there are no tokens.

A token expires at its expiry time, which can be renewed up to a maximum. As in Kafka an expired
token is removed by the next check (`delegation.token.expiry.check.interval.ms`). Until then it is
described, and a session with it has lifetime 0.

Source: DelegationTokenControlManager, DelegationTokenManager. Times are the cluster's, in ms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from mockbroker.core.errors import ApiError
from mockbroker.core.ids import uuid_text
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.configs.values import ClusterConfigs
    from mockbroker.core.runtime import Runtime
    from mockbroker.core.security.sasl.scram import DelegatedCredential
    from mockbroker.core.security.sasl.scram_credential import ScramCredential, ScramMechanism

SECRET_KEY = "delegation.token.secret.key"  # noqa: S105 - a name
USER_TYPE = "User"
_TIMESTAMP_MAX = 2**63 - 1
_SALT_WORDS = 2  # of 8 bytes


class DelegationToken(Struct, frozen=True):
    """One token without its HMAC. Principals are `User:name`."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    max_ms: int

    @property
    def principals(self) -> frozenset[str]:
        """The owner and the renewers."""
        return frozenset((self.owner, *self.renewers))

    def is_of(self, principal: str) -> bool:
        """Whether a principal owns the token or may renew it."""
        return principal in self.principals

    def expired(self, now_ms: int) -> bool:
        return min(self.expires_ms, self.max_ms) < now_ms


class DelegationTokens:
    """The tokens of a cluster by id. Its methods raise ApiError without a message."""

    __slots__ = ("_by_hmac", "_check_scheduled", "_configs", "_credentials", "_runtime", "tokens")

    def __init__(self, runtime: Runtime, configs: ClusterConfigs) -> None:
        self.tokens: dict[str, DelegationToken] = {}
        self._runtime, self._configs = runtime, configs
        self._by_hmac: dict[bytes, str] = {}
        # SCRAM credentials, computed at the first authentication, because that is slow.
        self._credentials: dict[tuple[str, ScramMechanism], ScramCredential] = {}
        self._check_scheduled = False

    @property
    def enabled(self) -> bool:
        """Whether there is a secret key."""
        return bool(self._configs.get(SECRET_KEY))

    def hmac(self, token_id: str) -> bytes:
        """The token's HMAC."""
        import hmac  # imported here for a fast start, because few clusters have tokens

        key = str(self._configs.get(SECRET_KEY))
        return hmac.digest(key.encode(), token_id.encode(), "sha512")

    def create(
        self, owner: str, requester: str, renewers: Iterable[str], max_lifetime_ms: int
    ) -> DelegationToken:
        """A new token. A lifetime that is not positive means the longest possible one."""
        self._check_enabled()
        now_ms = self._runtime.now_ms()
        names = tuple(renewers)
        if any(name.partition(":")[0] != USER_TYPE for name in names):
            raise ApiError(ErrorCode.INVALID_PRINCIPAL_TYPE)
        lifetime_ms = self._configs.get_int("delegation.token.max.lifetime.ms")
        if max_lifetime_ms > 0:
            lifetime_ms = min(lifetime_ms, max_lifetime_ms)
        max_ms = min(now_ms + lifetime_ms, _TIMESTAMP_MAX)
        renewal_ms = self._configs.get_int("delegation.token.expiry.time.ms")
        token = DelegationToken(
            token_id=uuid_text(self._runtime.ids.uuid()),
            owner=owner,
            requester=requester,
            renewers=names,
            issued_ms=now_ms,
            expires_ms=min(max_ms, now_ms + renewal_ms),
            max_ms=max_ms,
        )
        self._put(token)
        return token

    def renew(self, secret: bytes, principal: str, period_ms: int) -> int:
        """Renew a token by at most the configured time; returns its new expiry time."""
        token = self._find(secret)
        now_ms = self._runtime.now_ms()
        if token.expired(now_ms):
            raise ApiError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        if not token.is_of(principal):
            raise ApiError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
        renewal_ms = self._configs.get_int("delegation.token.expiry.time.ms")
        if period_ms > 0:
            renewal_ms = min(renewal_ms, period_ms)
        return self._expire_at(token, now_ms + renewal_ms)

    def expire(self, secret: bytes, principal: str, period_ms: int) -> int:
        """Expire a token in `period_ms`, now if that is negative; returns its new expiry time."""
        token = self._find(secret)
        if not token.is_of(principal):
            raise ApiError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)
        now_ms = self._runtime.now_ms()
        if period_ms < 0:
            self._drop(token)
            return now_ms
        if token.expired(now_ms):
            raise ApiError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
        return self._expire_at(token, min(now_ms + period_ms, _TIMESTAMP_MAX))

    def find(self, wanted: Callable[[DelegationToken], bool]) -> list[DelegationToken]:
        """The tokens of which `wanted` is true."""
        return [token for token in self.tokens.values() if wanted(token)]

    def credential(self, token_id: str, mechanism: ScramMechanism) -> DelegatedCredential | None:
        """The SCRAM credential of a token; None if the token does not exist."""
        token = self.tokens.get(token_id)
        if token is None:
            return None
        from base64 import b64encode

        from mockbroker.core.security.sasl.scram import DelegatedCredential
        from mockbroker.core.security.sasl.scram_credential import from_password

        found = self._credentials.get((token_id, mechanism))
        if found is None:
            ids = self._runtime.ids
            salt = b"".join(ids.bits64().to_bytes(8, "big") for _ in range(_SALT_WORDS))
            password = b64encode(self.hmac(token_id)).decode()
            found = from_password(mechanism, password, salt)
            self._credentials[token_id, mechanism] = found
        owner = token.owner.partition(":")[2]
        return DelegatedCredential(owner, found, token.expires_ms)

    def replace(self, tokens: Iterable[DelegationToken]) -> None:
        """Replace all tokens, as after a restore of a snapshot."""
        for token in list(self.tokens.values()):
            self._drop(token)
        for token in tokens:
            self._put(token)

    def remove_expired(self) -> list[DelegationToken]:
        """Remove the expired tokens; returns them."""
        now_ms = self._runtime.now_ms()
        expired = self.find(lambda token: token.expired(now_ms))
        for token in expired:
            self._drop(token)
        return expired

    # -- the table of tokens -----------------------------------------------------------------------

    def _check_enabled(self) -> None:
        if not self.enabled:
            raise ApiError(ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED)

    def _find(self, secret: bytes) -> DelegationToken:
        self._check_enabled()
        token_id = self._by_hmac.get(secret)
        if token_id is None:
            raise ApiError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        return self.tokens[token_id]

    def _expire_at(self, token: DelegationToken, at_ms: int) -> int:
        token = replace(token, expires_ms=min(token.max_ms, at_ms))
        self.tokens[token.token_id] = token
        return token.expires_ms

    def _put(self, token: DelegationToken) -> None:
        self.tokens[token.token_id] = token
        if self.enabled:
            self._by_hmac[self.hmac(token.token_id)] = token.token_id
        if not self._check_scheduled:
            self._schedule_check()

    def _drop(self, token: DelegationToken) -> None:
        del self.tokens[token.token_id]
        self._by_hmac = {h: i for h, i in self._by_hmac.items() if i != token.token_id}
        for key in [key for key in self._credentials if key[0] == token.token_id]:
            del self._credentials[key]

    def _schedule_check(self) -> None:
        self._check_scheduled = True
        interval_ms = self._configs.get_int("delegation.token.expiry.check.interval.ms")
        self._runtime.timers.call_at(self._runtime.now_ms() + interval_ms, self._check)

    def _check(self) -> None:
        self._check_scheduled = False
        self.remove_expired()
        if self.tokens:
            self._schedule_check()
