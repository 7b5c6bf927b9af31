"""Which tokens hold: signature, times, issuer, audience, and who they name."""

from __future__ import annotations

import json
import math

import pytest

from mockbroker.core.security.sasl.jwt import Bearer, TokenRules, encoded, unsigned_token, validate
from mockbroker.core.security.sasl.mechanism import DeniedError

NOW_MS = 1_700_000_000_000
NOW_S = NOW_MS // 1000
GOOD: dict[str, object] = {"sub": "alice", "iat": NOW_S, "exp": NOW_S + 60}
SIGNATURE = b"right"


def verify(algorithm: str, key_id: str | None, signed: bytes, signature: bytes) -> bool:
    assert signed.count(b".") == 1
    return (algorithm, key_id, signature) in (
        ("ES256", "k", SIGNATURE),
        ("RS256", None, SIGNATURE),
    )


def token(
    claims: dict[str, object] | None = None, header: object = None, signature: bytes = SIGNATURE
) -> str:
    head = {"alg": "ES256", "kid": "k"} if header is None else header
    assert isinstance(head, dict)
    return f"{unsigned_token(head, {**GOOD, **(claims or {})})}.{encoded(signature)}"


def check(text: str, now_ms: int = NOW_MS, **rules: object) -> Bearer:
    return validate(text, TokenRules(**rules), verify, now_ms)  # type: ignore[arg-type]


def reason(text: str, now_ms: int = NOW_MS, **rules: object) -> str:
    with pytest.raises(DeniedError) as denied:
        check(text, now_ms, **rules)
    assert denied.value.message is None
    return denied.value.reason


@pytest.mark.parametrize("header", [{"alg": "ES256", "kid": "k"}, {"alg": "RS256", "typ": "JWT"}])
def test_a_signed_token_speaks_for_its_subject(header):
    assert check(token(header=header)) == Bearer("alice", NOW_MS + 60_000)


def test_times_may_have_fractions():
    assert check(token({"exp": NOW_S + 0.5})).expires_ms == NOW_MS + 500


@pytest.mark.parametrize(
    "text",
    [
        token(signature=b"wrong"),
        token(header={"alg": "ES256", "kid": "other"}),
        token(header={"alg": "ES256", "kid": 7}),
    ],
)
def test_a_signature_of_no_known_key_is_denied(text):
    assert "not that of a known key" in reason(text)


@pytest.mark.parametrize("algorithm", ["HS256", "None", "", None, 1])
def test_other_algorithms_are_denied(algorithm):
    assert "ES256" in reason(token(header={"alg": algorithm}))


def test_unsigned_tokens_need_permission():
    unsigned = token(header={"alg": "none"}, signature=b"")
    assert reason(unsigned) == "the token is not signed"
    assert check(unsigned, allow_unsigned=True).user == "alice"
    no_iat = f"{unsigned_token({'alg': 'none'}, {'sub': 'a', 'exp': NOW_S + 1})}."
    assert check(no_iat, allow_unsigned=True).user == "a"
    both = token(header={"alg": "none"})
    assert "but has a signature" in reason(both, allow_unsigned=True)


def test_permission_for_unsigned_tokens_lets_no_wrong_signature_in():
    assert "known key" in reason(token(signature=b"wrong"), allow_unsigned=True)


@pytest.mark.parametrize(
    ("exp", "skew_ms", "holds"),
    [(1, 0, True), (0, 0, False), (0, 1, True), (-30, 30_000, False), (-29, 30_000, True)],
)
def test_a_token_holds_until_it_expires_give_or_take_the_skew(exp, skew_ms, holds):
    text = token({"exp": NOW_S + exp, "iat": NOW_S - 60})
    if holds:
        assert check(text, clock_skew_ms=skew_ms).user == "alice"
    else:
        assert "expired" in reason(text, clock_skew_ms=skew_ms)


def test_a_token_holds_from_its_not_before_on():
    text = token({"nbf": NOW_S + 31})
    assert "valid from" in reason(text)
    assert check(text, NOW_MS + 1000).user == "alice"


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": None},
        {"exp": "soon"},
        {"exp": True},
        {"iat": None},
        {"nbf": "now"},
        {"iat": NOW_S + 61},
        {"nbf": math.nan},
        {"sub": None},
        {"sub": " "},
        {"sub": 7},
        {"sub": "half a \ud800"},
    ],
)
def test_claims_that_are_missing_or_make_no_sense_are_denied(claims):
    assert reason(token(claims))


@pytest.mark.parametrize("exp", [math.inf, 1e300, 10**400], ids=["infinite", "float", "integer"])
def test_a_time_beyond_a_long_is_the_last_one(exp):
    assert check(token({"exp": exp})).user == "alice"


def test_the_user_may_stand_in_another_claim():
    assert check(token({"name": "bob"}), sub_claim_name="name").user == "bob"
    assert "'name'" in reason(token(), sub_claim_name="name")


def test_the_issuer_is_the_expected_one():
    assert check(token({"iss": "us"}), expected_issuer="us").user == "alice"
    assert "issuer" in reason(token({"iss": "them"}), expected_issuer="us")
    assert "issuer" in reason(token(), expected_issuer="us")


@pytest.mark.parametrize("audience", ["kafka", ["x", "kafka"]])
def test_one_of_the_audience_is_expected(audience):
    assert check(token({"aud": audience}), expected_audience=("kafka", "b")).user == "alice"
    assert "audience" in reason(token({"aud": audience}), expected_audience=("other",))


def test_a_token_without_audience_is_denied_where_one_is_expected():
    assert "audience" in reason(token(), expected_audience=("kafka",))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a.b",
        "a.b.c.d",
        "!.!.!",
        f"{encoded(b'[]')}.{encoded(b'{}')}.",
        f"{encoded(b'{')}.{encoded(b'{}')}.",
        f"{encoded(b'7')}.{encoded(b'{}')}.",
        f"{encoded(json.dumps({'alg': 'ES256', 'kid': 'k'}).encode())}.{encoded(b'[]')}.cmlnaHQ",
        f"{encoded(b'[' * 100_000)}.{encoded(b'{}')}.",
        "_w.e30.",  # a header that is no UTF-8
    ],
)
def test_what_is_no_token_is_denied(text):
    assert reason(text)
