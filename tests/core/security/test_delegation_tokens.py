"""Delegation tokens on the cluster's clock (KIP-48)."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable

import pytest

from mockbroker.core.errors import ApiError
from mockbroker.core.security.delegation_tokens import DelegationToken, DelegationTokens
from mockbroker.core.security.sasl.scram_credential import ScramMechanism, from_password
from mockbroker_protocol import ErrorCode
from tests.support.requests import Node

SECRET = "the secret of the tokens"
HOUR_MS, DAY_MS = 3_600_000, 86_400_000
ALICE, BOB, CAROL = "User:alice", "User:bob", "User:carol"


def node_with(**configs: str) -> Node:
    return Node(
        configs={
            "delegation.token.secret.key": SECRET,
            **{name.replace("_", "."): value for name, value in configs.items()},
        }
    )


@pytest.fixture
def node() -> Node:
    return node_with()


@pytest.fixture
def tokens(node: Node) -> DelegationTokens:
    return node.cluster.delegation_tokens


def made(tokens: DelegationTokens, life_ms: int = -1) -> tuple[DelegationToken, bytes]:
    token = tokens.create(ALICE, ALICE, [BOB], life_ms)
    return token, tokens.hmac(token.token_id)


def refused(act: Callable[[], object]) -> ErrorCode:
    with pytest.raises(ApiError) as refusal:
        act()
    return refusal.value.error


def test_a_token_lives_a_day_and_a_week_at_most(node: Node, tokens: DelegationTokens) -> None:
    token, secret = made(tokens)
    assert token.issued_ms == node.now_ms
    assert token.expires_ms == node.now_ms + DAY_MS
    assert token.max_ms == node.now_ms + 7 * DAY_MS
    assert secret == hmac.digest(SECRET.encode(), token.token_id.encode(), "sha512")


@pytest.mark.parametrize(
    ("asked_ms", "given_ms"),
    [(-1, 7 * DAY_MS), (0, 7 * DAY_MS), (HOUR_MS, HOUR_MS), (99 * DAY_MS, 7 * DAY_MS)],
)
def test_a_life_may_be_shorter_than_the_longest(
    node: Node, tokens: DelegationTokens, asked_ms: int, given_ms: int
) -> None:
    token, _ = made(tokens, asked_ms)
    assert token.max_ms == node.now_ms + given_ms
    assert token.expires_ms == node.now_ms + min(DAY_MS, given_ms)


def test_renewers_are_users(tokens: DelegationTokens) -> None:
    code = refused(lambda: tokens.create(ALICE, ALICE, ["Group:staff"], -1))
    assert code is ErrorCode.INVALID_PRINCIPAL_TYPE
    assert tokens.tokens == {}


@pytest.mark.parametrize("who", [ALICE, BOB])
def test_owner_and_renewers_renew(node: Node, tokens: DelegationTokens, who: str) -> None:
    token, secret = made(tokens)
    node.advance(HOUR_MS)
    assert tokens.renew(secret, who, 2 * HOUR_MS) == node.now_ms + 2 * HOUR_MS
    assert tokens.renew(secret, who, -1) == node.now_ms + DAY_MS
    assert tokens.renew(secret, who, 99 * DAY_MS) == node.now_ms + DAY_MS
    for _ in range(8):
        node.advance(DAY_MS - HOUR_MS)
        if tokens.tokens:
            tokens.renew(secret, who, -1)
    assert tokens.tokens == {}, "never past the maximum"
    assert token.max_ms < node.now_ms


def test_others_neither_renew_nor_expire(tokens: DelegationTokens) -> None:
    _, secret = made(tokens)
    mismatch = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert refused(lambda: tokens.renew(secret, CAROL, -1)) is mismatch
    assert refused(lambda: tokens.expire(secret, CAROL, -1)) is mismatch


def test_a_token_that_is_not_there_is_not_found(tokens: DelegationTokens) -> None:
    missing = ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    assert refused(lambda: tokens.renew(b"x", ALICE, -1)) is missing
    assert refused(lambda: tokens.expire(b"x", ALICE, -1)) is missing


def test_a_token_expires_sooner_or_at_once(node: Node, tokens: DelegationTokens) -> None:
    token, secret = made(tokens)
    assert tokens.expire(secret, BOB, HOUR_MS) == node.now_ms + HOUR_MS
    assert tokens.expire(secret, BOB, 99 * DAY_MS) == token.max_ms
    assert tokens.expire(secret, ALICE, -1) == node.now_ms
    assert tokens.tokens == {}
    assert refused(lambda: tokens.expire(secret, ALICE, -1)) is ErrorCode.DELEGATION_TOKEN_NOT_FOUND


def test_an_expired_token_is_gone_after_the_next_check(
    node: Node, tokens: DelegationTokens
) -> None:
    token, secret = made(tokens, HOUR_MS // 2)
    node.advance(HOUR_MS // 2)
    assert tokens.renew(secret, ALICE, -1) == token.max_ms, "it expires after that moment"
    node.advance(1)
    expired = ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert refused(lambda: tokens.renew(secret, ALICE, -1)) is expired
    assert refused(lambda: tokens.expire(secret, ALICE, 5)) is expired
    assert tokens.credential(token.token_id, ScramMechanism.SCRAM_SHA_256) is not None
    node.advance(HOUR_MS // 2)
    assert tokens.tokens == {}
    assert tokens.credential(token.token_id, ScramMechanism.SCRAM_SHA_256) is None


def test_the_check_comes_again_while_there_are_tokens() -> None:
    node = node_with(delegation_token_expiry_check_interval_ms="1000")
    tokens = node.cluster.delegation_tokens
    first, _ = made(tokens, 1500)
    second, _ = made(tokens, 3500)
    node.advance(1000)
    node.advance(1000)
    assert list(tokens.tokens) == [second.token_id]
    node.advance(1000)
    node.advance(1000)
    assert tokens.tokens == {}
    third, _ = made(tokens, 500)
    assert third.token_id not in (first.token_id, second.token_id)
    node.advance(1000)
    assert tokens.tokens == {}


@pytest.mark.parametrize("mechanism", list(ScramMechanism))
def test_a_token_is_a_password_by_scram(
    tokens: DelegationTokens, mechanism: ScramMechanism
) -> None:
    token, secret = made(tokens)
    found = tokens.credential(token.token_id, mechanism)
    assert found is not None
    assert (found.owner, found.expires_ms) == ("alice", token.expires_ms)
    password = base64.b64encode(secret).decode()
    right = from_password(mechanism, password, found.credential.salt)
    assert found.credential.stored_key == right.stored_key
    assert tokens.credential(token.token_id, mechanism) == found, "the salt stays"


def test_without_a_secret_key_there_are_no_tokens() -> None:
    for configs in ({}, {"delegation.token.secret.key": ""}):
        tokens = Node(configs=configs).cluster.delegation_tokens
        disabled = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        assert not tokens.enabled
        assert refused(lambda t=tokens: t.create(ALICE, ALICE, [], -1)) is disabled  # type: ignore[misc]
        assert refused(lambda t=tokens: t.renew(b"x", ALICE, -1)) is disabled  # type: ignore[misc]
        assert refused(lambda t=tokens: t.expire(b"x", ALICE, -1)) is disabled  # type: ignore[misc]


def test_tokens_are_taken_up_again(node: Node, tokens: DelegationTokens) -> None:
    token, secret = made(tokens)
    kept = list(tokens.tokens.values())
    tokens.replace([])
    assert refused(lambda: tokens.renew(secret, ALICE, -1)) is ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    tokens.replace(kept)
    assert tokens.renew(secret, ALICE, HOUR_MS) == node.now_ms + HOUR_MS
    assert list(tokens.tokens) == [token.token_id]
