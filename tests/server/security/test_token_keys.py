"""Tokens that a cluster signs are accepted, and no others."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from mockbroker.core.security.sasl.jwt import Bearer, TokenRules, validate
from mockbroker.core.security.sasl.mechanism import DeniedError
from mockbroker.server.security.token_keys import TokenKeys

NOW_MS = 1_700_000_000_250


@pytest.fixture(scope="module")
def keys() -> TokenKeys:
    return TokenKeys(lambda: NOW_MS)


def check(keys: TokenKeys, token: str, **rules: object) -> Bearer:
    return validate(token, TokenRules(**rules), keys.verify, NOW_MS)  # type: ignore[arg-type]


@pytest.mark.parametrize("algorithm", ["ES256", "RS256"])
def test_a_token_of_these_keys_holds_for_its_lifetime(keys, algorithm):
    token = keys.sign("alice", algorithm=algorithm, lifetime_s=5)
    assert check(keys, token, expected_issuer="mockbroker") == Bearer("alice", NOW_MS + 5000)


@pytest.mark.parametrize("algorithm", ["ES256", "RS256"])
def test_a_token_of_other_keys_does_not(keys, algorithm):
    other = TokenKeys(lambda: NOW_MS).sign("alice", algorithm=algorithm)
    with pytest.raises(DeniedError, match="known key"):
        check(keys, other)


@pytest.mark.parametrize("algorithm", ["ES256", "RS256"])
def test_a_changed_token_does_not(keys, algorithm):
    head, _, signature = keys.sign("alice", algorithm=algorithm).split(".")
    body = keys.sign("mallory", algorithm=algorithm).split(".")[1]
    for text in (f"{head}.{body}.{signature}", f"{head}.{body}.{signature[:-4]}"):
        with pytest.raises(DeniedError, match="known key"):
            check(keys, text)


def test_claims_can_be_added_and_replaced(keys):
    token = keys.sign("alice", claims={"iss": "elsewhere", "aud": ["kafka"]})
    assert check(keys, token, expected_issuer="elsewhere", expected_audience=("kafka",))


def test_a_token_may_be_unsigned(keys):
    assert keys.sign("alice", algorithm="none").endswith(".")
    assert check(keys, keys.sign("alice", algorithm="none"), allow_unsigned=True).user == "alice"


def test_another_algorithm_is_refused(keys):
    with pytest.raises(ValueError, match="HS256"):
        keys.sign("alice", algorithm="HS256")
    assert not keys.verify("HS256", None, b"", b"")


@pytest.mark.parametrize("algorithm", ["ES256", "RS256"])
def test_the_private_key_can_be_had(keys, algorithm):
    assert load_pem_private_key(keys.private_pem(algorithm), None)
