"""Delegation tokens."""

from __future__ import annotations

import base64
from typing import Any

from mockbroker.core.security.acls import AclOperation, ResourceType
from mockbroker_protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from mockbroker_protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from mockbroker_protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from mockbroker_protocol.messages.metadata import MetadataRequest
from mockbroker_protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from tests.core.security.sasl.scram_client import ScramClient
from tests.differential.secured.session import AclSession, case
from tests.support.sasl import SaslConnection
from tests.support.waiting import wait_until

O, R = AclOperation, ResourceType  # noqa: E741
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
ALICE, BOB = ("User", "alice"), ("User", "bob")


def create(
    *renewers: tuple[str, str], owner: tuple[Any, Any] = (None, None), life: int = -1
) -> Any:
    return CreateDelegationTokenRequest(*owner, [CreatableRenewers(*r) for r in renewers], life)


def describe(*owners: tuple[str, str]) -> DescribeDelegationTokenRequest:
    return DescribeDelegationTokenRequest([DescribeDelegationTokenOwner(*o) for o in owners])


def timeless(answer: Any) -> Any:
    """Times as they stand to each other, and secrets by their length."""
    if hasattr(answer, "tokens"):
        for token in answer.tokens:
            _relative(token, "issue_timestamp", "expiry_timestamp", "max_timestamp")
        answer.tokens.sort(key=repr)
    elif hasattr(answer, "issue_timestamp_ms"):
        _relative(answer, "issue_timestamp_ms", "expiry_timestamp_ms", "max_timestamp_ms")
    elif answer.expiry_timestamp_ms > 0:
        answer.expiry_timestamp_ms = 1
    return answer


def _relative(token: Any, issued: str, expires: str, latest: str) -> None:
    start = getattr(token, issued)
    if start > 0:
        for name in (expires, latest):
            setattr(token, name, getattr(token, name) - start)
        setattr(token, issued, 1)
    token.hmac = b"secret" * bool(token.hmac) + bytes([len(token.hmac)])
    token.token_id = "id" * bool(token.token_id)


class Tokens:
    """Phrases about tokens in one case; every token that it makes goes at its end."""

    def __init__(self, session: AclSession) -> None:
        self.session = session
        self.made: list[bytes] = []

    def create(self, request: Any, version: int = 3, who: str = "alice") -> bytes:
        """Ask for a token; its HMAC, once it is known to the broker as well."""
        secret = b""

        def note(answer: Any) -> Any:
            nonlocal secret
            secret = bytes(answer.hmac)
            return timeless(answer)

        self.session.ask(request, version, who, edit=note)
        if secret:
            self.made.append(secret)
            self.wait(secret, lambda token: token is not None)
        return secret

    def wait(self, secret: bytes, ready: Any) -> None:
        """Ask the administrator until a token is as it should be; None when it is gone."""
        everything = DescribeDelegationTokenRequest(None)

        def is_ready() -> bool:
            found = self.session.quietly(everything, 3, "admin").tokens
            return bool(ready(next((t for t in found if bytes(t.hmac) == secret), None)))

        wait_until(is_ready, what=f"{self.session.name}: the token")

    def ask(self, request: Any, version: int, who: str = "alice") -> Any:
        return self.session.ask(request, version, who, edit=timeless)

    def clear(self) -> None:
        for secret in self.made:
            for who in ("alice", "bob", "admin"):
                self.session.quietly(ExpireDelegationTokenRequest(secret, -1), 2, who)
            self.wait(secret, lambda token: token is None)


@case
def tokens_are_made_and_described(session: AclSession) -> None:
    tokens = Tokens(session)
    for version in (1, 2, 3):
        tokens.create(create(BOB), version)
    tokens.create(create(life=HOUR_MS))
    tokens.create(create(life=100 * DAY_MS))
    tokens.create(create(owner=("User", "")))
    tokens.ask(create(("Group", "staff")), 3)
    tokens.ask(create(owner=BOB), 3)
    for version in (1, 2, 3):
        tokens.ask(DescribeDelegationTokenRequest(None), version)
        tokens.ask(DescribeDelegationTokenRequest(None), version, "bob")
    tokens.ask(describe(), 3)
    tokens.ask(describe(BOB), 3)
    tokens.ask(describe(ALICE), 3, "bob")
    tokens.ask(describe(("User", "nobody")), 3)
    tokens.clear()


@case
def tokens_of_others_are_for_who_may(session: AclSession) -> None:
    tokens = Tokens(session)
    tokens.create(create())
    tokens.ask(describe(ALICE), 3, "bob")
    session.allow(O.DESCRIBE_TOKENS, R.USER, "User:alice", user="bob")
    tokens.ask(describe(ALICE), 3, "bob")
    session.clear()
    session.allow(O.DESCRIBE, R.DELEGATION_TOKEN, "*", user="bob")
    tokens.ask(describe(ALICE), 3, "bob")
    session.allow(O.CREATE_TOKENS, R.USER, "User:alice", user="bob")
    tokens.create(create(owner=ALICE), who="bob")
    tokens.ask(describe(ALICE), 3)
    tokens.clear()


@case
def tokens_are_renewed_and_expired(session: AclSession) -> None:
    tokens = Tokens(session)
    secret = tokens.create(create(BOB))
    tokens.ask(RenewDelegationTokenRequest(b"nothing", -1), 2)
    tokens.ask(ExpireDelegationTokenRequest(b"nothing", -1), 2)
    tokens.ask(RenewDelegationTokenRequest(secret, -1), 2, "admin")
    tokens.ask(ExpireDelegationTokenRequest(secret, HOUR_MS), 2, "admin")
    tokens.ask(RenewDelegationTokenRequest(secret, HOUR_MS), 1)
    tokens.wait(secret, lambda t: t.expiry_timestamp - t.issue_timestamp < 2 * HOUR_MS)
    tokens.ask(RenewDelegationTokenRequest(secret, 100 * DAY_MS), 2, "bob")
    tokens.wait(secret, lambda t: t.expiry_timestamp - t.issue_timestamp >= DAY_MS)
    tokens.ask(ExpireDelegationTokenRequest(secret, 2 * HOUR_MS), 1)
    tokens.wait(secret, lambda t: t.expiry_timestamp - t.issue_timestamp < 3 * HOUR_MS)
    tokens.ask(ExpireDelegationTokenRequest(secret, -1), 2, "bob")
    tokens.wait(secret, lambda t: t is None)
    tokens.ask(ExpireDelegationTokenRequest(secret, -1), 2)
    tokens.ask(RenewDelegationTokenRequest(secret, -1), 2)
    tokens.clear()


@case
def tokens_let_their_holders_in(session: AclSession) -> None:
    tokens = Tokens(session)
    secret = tokens.create(create(life=HOUR_MS))
    found = session.quietly(DescribeDelegationTokenRequest(None), 3).tokens
    (token_id,) = (t.token_id for t in found if bytes(t.hmac) == secret)
    password = base64.b64encode(secret).decode()
    session.note(_log_in(session, token_id, password, tokens), "with the token")
    session.note(_log_in(session, token_id, "wrong", tokens), "with a wrong secret")
    tokens.ask(ExpireDelegationTokenRequest(secret, -1), 2)
    tokens.wait(secret, lambda t: t is None)
    session.note(_log_in(session, token_id, password, tokens), "when it is gone")
    tokens.clear()


def _log_in(session: AclSession, token_id: str, password: str, tokens: Tokens) -> list[object]:
    """Log in by SCRAM with a token, and what may be done then."""
    said: list[object] = []
    with SaslConnection(session) as connection:  # type: ignore[arg-type]
        connection.handshake("SCRAM-SHA-256")
        client = ScramClient(token_id, password, extensions=",tokenauth=true")
        first = connection.token(client.first())
        said.append(first.error_code)
        if first.error_code:
            return said
        final = connection.token(client.final(bytes(first.auth_bytes)))
        said += [final.error_code, 0 < final.session_lifetime_ms <= HOUR_MS]
        if final.error_code:
            return said
        said.append(connection.send(MetadataRequest([]), 9).topics)
        said.append(timeless(connection.send(create(), 3)).error_code)
        said.append(connection.send(DescribeDelegationTokenRequest(None), 3).error_code)
    return said
