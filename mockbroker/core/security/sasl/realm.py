"""The realm of a listener: its enabled mechanisms, users, keys and nonces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from mockbroker.core.ids import IdSource
from mockbroker.core.security.sasl.jwt import TokenRules, Verify, rejects_all, validate
from mockbroker.core.security.sasl.mechanism import Mechanism
from mockbroker.core.security.sasl.oauthbearer import OAuthBearer
from mockbroker.core.security.sasl.plain import Plain
from mockbroker.core.security.sasl.scram import Credentials, FindToken, Scram, no_tokens
from mockbroker.core.security.sasl.scram_credential import (
    ScramCredential,
    ScramMechanism,
    from_password,
)

SALT_BYTES = 16


class Realm:
    """One listener's users and keys.

    `mechanisms()` returns the enabled mechanisms, and `max_reauth_ms(mechanism)` the longest
    lifetime of a session (0: no limit). Both are called for each connection, because configs may
    change. `passwords` are for PLAIN, `scram` are the cluster's SCRAM credentials, `ids` is the
    source of server nonces.
    """

    def __init__(
        self,
        *,
        mechanisms: Callable[[], Sequence[str]],
        max_reauth_ms: Callable[[str], int],
        passwords: Mapping[str, str],
        scram: Credentials,
        ids: IdSource,
        token_rules: Callable[[], TokenRules] = TokenRules,
        verify: Verify = rejects_all,
        find_token: FindToken = no_tokens,
    ) -> None:
        self.mechanisms = mechanisms
        self.max_reauth_ms = max_reauth_ms
        self._makers: dict[str, Callable[[], Mechanism]] = {
            "PLAIN": lambda: Plain(passwords),
            "OAUTHBEARER": lambda: OAuthBearer(
                lambda token, now_ms: validate(token, token_rules(), verify, now_ms)
            ),
        }
        for mechanism in ScramMechanism:
            self._makers[mechanism.sasl_name] = partial(
                Scram, mechanism, scram, lambda: server_nonce(ids), find_token
            )

    def mechanism(self, name: str) -> Mechanism:
        """The server side of a new exchange. Raises KeyError for an unknown mechanism."""
        return self._makers[name]()


def server_nonce(ids: IdSource) -> str:
    """128 random bits from the cluster's ids, so that runs repeat."""
    return f"{ids.bits64():016x}{ids.bits64():016x}"


def scram_credentials(
    passwords: Mapping[str, str], ids: IdSource
) -> dict[str, dict[int, ScramCredential]]:
    """The SCRAM credentials of users with passwords, for each mechanism."""
    return {
        name: {
            int(mechanism): from_password(mechanism, password, _salt(ids))
            for mechanism in ScramMechanism
        }
        for name, password in passwords.items()
    }


def _salt(ids: IdSource) -> bytes:
    return b"".join(ids.bits64().to_bytes(8, "big") for _ in range(SALT_BYTES // 8))
