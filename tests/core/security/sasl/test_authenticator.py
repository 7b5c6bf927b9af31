"""One connection's way to a proved user, and to proving it again."""

from __future__ import annotations

import pytest

from mockbroker.core.ids import IdSource
from mockbroker.core.security.sasl.authenticator import Authenticator, SaslResponse
from mockbroker.core.security.sasl.jwt import TokenRules, unsigned_token
from mockbroker.core.security.sasl.realm import Realm, scram_credentials
from mockbroker.core.security.sasl.states import Admission, SaslState
from mockbroker_protocol import ApiKey, ErrorCode
from tests.core.security.sasl.scram_client import ScramClient

USERS = {"alice": "secret", "bob": "hunter2"}
ALICE = b"\0alice\0secret"
BOB = b"\0bob\0hunter2"
METADATA, VERSIONS = int(ApiKey.METADATA), int(ApiKey.API_VERSIONS)
HANDSHAKE, TOKEN = int(ApiKey.SASL_HANDSHAKE), int(ApiKey.SASL_AUTHENTICATE)
DENIED = "Authentication failed during {} due to invalid credentials with SASL mechanism {}"


def authenticator(reauth_ms: int = 0, mechanisms: tuple[str, ...] = ()) -> Authenticator:
    ids = IdSource(1)
    realm = Realm(
        mechanisms=lambda: mechanisms or ("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"),
        max_reauth_ms=lambda _: reauth_ms,
        passwords=USERS,
        scram=scram_credentials(USERS, ids),
        ids=ids,
        token_rules=lambda: TokenRules(allow_unsigned=True, clock_skew_ms=0),
    )
    return Authenticator(realm)


def shake(
    sasl: Authenticator, mechanism: str = "PLAIN", version: int = 1, at: int = 0
) -> SaslResponse:
    assert sasl.admit(HANDSHAKE, at) is Admission.ADMIT
    return sasl.handshake(mechanism, version)


def show(sasl: Authenticator, token: bytes, at: int = 0) -> SaslResponse:
    assert sasl.admit(TOKEN, at) is Admission.ADMIT
    return sasl.token(token, at)


def proved(reauth_ms: int = 0, at: int = 0) -> Authenticator:
    sasl = authenticator(reauth_ms)
    shake(sasl, at=at)
    show(sasl, ALICE, at)
    assert sasl.complete
    return sasl


def test_a_client_asks_for_versions_names_a_mechanism_and_proves_itself():
    sasl = authenticator()
    assert sasl.admit(VERSIONS, 0) is Admission.ADMIT
    sasl.versions_answered(0)
    assert sasl.state is SaslState.HANDSHAKE
    assert shake(sasl) == SaslResponse()
    assert (sasl.expects_token, sasl.expects_handshake) == (True, False)
    assert show(sasl, ALICE) == SaslResponse()
    assert (sasl.complete, sasl.principal, sasl.expires_ms) == (True, "User:alice", None)
    assert sasl.admit(METADATA, 10**15) is Admission.ADMIT


def test_a_mechanism_of_several_tokens_is_challenged_in_between():
    sasl = authenticator()
    shake(sasl, "SCRAM-SHA-256")
    client = ScramClient("alice", "secret")
    first = show(sasl, client.first())
    assert first.token.startswith(b"r=abc")
    assert not sasl.complete
    assert client.trusts(show(sasl, client.final(first.token)).token)
    assert (sasl.complete, sasl.principal) == (True, "User:alice")


def test_after_refused_versions_a_client_may_ask_again():
    sasl = authenticator()
    sasl.admit(VERSIONS, 0)
    sasl.versions_answered(ErrorCode.UNSUPPORTED_VERSION)
    assert sasl.admit(VERSIONS, 0) is Admission.ADMIT


@pytest.mark.parametrize("api_key", [METADATA, TOKEN, 9999])
@pytest.mark.parametrize("asked", [False, True], ids=["at once", "after ApiVersions"])
def test_nothing_else_is_served_before_the_handshake(api_key, asked):
    sasl = authenticator()
    if asked:
        sasl.admit(VERSIONS, 0)
        sasl.versions_answered(0)
    assert sasl.admit(api_key, 0) is Admission.CLOSE
    assert "the client has to authenticate" in sasl.reason


def test_versions_are_answered_once():
    sasl = authenticator()
    sasl.admit(VERSIONS, 0)
    sasl.versions_answered(0)
    assert sasl.admit(VERSIONS, 0) is Admission.CLOSE


@pytest.mark.parametrize("api_key", [METADATA, VERSIONS, HANDSHAKE])
def test_only_tokens_are_taken_after_the_handshake(api_key):
    sasl = authenticator()
    shake(sasl)
    assert sasl.admit(api_key, 0) is Admission.REFUSE
    assert sasl.failed
    assert sasl.admit(TOKEN, 0) is Admission.CLOSE


def test_an_unknown_mechanism_fails_and_the_others_are_named():
    sasl = authenticator(mechanisms=("PLAIN",))
    assert shake(sasl, "SCRAM-SHA-256") == SaslResponse(ErrorCode.UNSUPPORTED_SASL_MECHANISM)
    assert (sasl.failed, sasl.mechanisms) == (True, ["PLAIN"])


@pytest.mark.parametrize(
    ("mechanism", "token", "message"),
    [
        ("PLAIN", b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        ("PLAIN", b"\0\0", "Authentication failed: username not specified"),
        ("SCRAM-SHA-256", b"x", DENIED.format("authentication", "SCRAM-SHA-256")),
        ("OAUTHBEARER", b"x", DENIED.format("authentication", "OAUTHBEARER")),
    ],
)
def test_a_denied_client_is_told_what_kafka_tells(mechanism, token, message):
    sasl = authenticator()
    shake(sasl, mechanism)
    assert show(sasl, token) == SaslResponse(ErrorCode.SASL_AUTHENTICATION_FAILED, message)
    assert (sasl.failed, sasl.principal) == (True, "User:ANONYMOUS")
    assert sasl.reason


def test_the_version_of_the_handshake_says_how_tokens_come():
    for version, raw in ((0, True), (1, False)):
        sasl = authenticator()
        shake(sasl, version=version)
        assert sasl.speaks_raw is raw


def test_a_handshake_without_a_lifetime_is_an_ordinary_request():
    sasl = proved()
    assert sasl.admit(HANDSHAKE, 5) is Admission.ADMIT
    assert (sasl.complete, sasl.expects_handshake, sasl.expects_token) == (True, False, False)


def test_a_session_lasts_as_long_as_the_broker_says():
    sasl = authenticator(reauth_ms=5000)
    shake(sasl, at=100)
    assert show(sasl, ALICE, at=100).session_lifetime_ms == 5000
    assert sasl.admit(METADATA, 5100) is Admission.ADMIT
    assert sasl.admit(METADATA, 5101) is Admission.CLOSE
    assert sasl.reason == "the session has expired and was not renewed"


@pytest.mark.parametrize(
    ("reauth_ms", "expires_s", "lifetime_ms"),
    [(0, 8, 7000), (5000, 8, 5000), (9000, 8, 7000)],
)
def test_a_session_ends_with_its_token(reauth_ms, expires_s, lifetime_ms):
    sasl = authenticator(reauth_ms)
    shake(sasl, "OAUTHBEARER")
    token = unsigned_token({"alg": "none"}, {"sub": "alice", "exp": expires_s})
    answer = show(sasl, b"n,,\x01auth=Bearer %s.\x01\x01" % token.encode(), at=1000)
    assert answer.session_lifetime_ms == lifetime_ms
    assert sasl.expires_ms == 1000 + lifetime_ms


@pytest.mark.parametrize("at", [4000, 9000], ids=["in time", "too late"])
def test_a_session_is_renewed_by_the_same_proof(at):
    sasl = proved(reauth_ms=5000)
    assert shake(sasl, at=at) == SaslResponse()
    assert show(sasl, ALICE, at=at + 1) == SaslResponse(session_lifetime_ms=5000)
    assert (sasl.complete, sasl.expires_ms) == (True, at + 5001)


def test_an_expired_session_is_not_renewed_twice_within_a_second():
    sasl = proved(reauth_ms=100)
    shake(sasl, at=50)
    show(sasl, ALICE, at=50)
    assert sasl.admit(HANDSHAKE, 140) is Admission.ADMIT  # an ordinary request, to be told 34
    assert not sasl.expects_handshake
    assert sasl.admit(HANDSHAKE, 151) is Admission.CLOSE
    assert sasl.admit(HANDSHAKE, 1050) is Admission.ADMIT
    assert sasl.expects_handshake


def test_a_renewed_session_keeps_its_user():
    sasl = proved(reauth_ms=5000)
    shake(sasl, at=10)
    assert show(sasl, BOB, at=10) == SaslResponse(
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        "Cannot change principals during re-authentication from User.alice: User.bob",
    )
    assert (sasl.failed, sasl.principal) == (True, "User:alice")


def test_a_renewed_session_keeps_its_mechanism():
    sasl = proved(reauth_ms=5000)
    assert shake(sasl, "SCRAM-SHA-256", at=10) == SaslResponse()
    assert not sasl.expects_token
    for api_key in (TOKEN, METADATA, VERSIONS, HANDSHAKE):
        assert sasl.admit(api_key, 10) is Admission.CLOSE
    assert sasl.reason == (
        "SASL mechanism 'SCRAM-SHA-256' requested by client is not supported for"
        " re-authentication of mechanism 'PLAIN'"
    )


def test_an_unknown_mechanism_ends_a_renewal():
    sasl = proved(reauth_ms=5000)
    assert shake(sasl, "GSSAPI", at=10).error is ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert (sasl.failed, sasl.is_reauthenticating) == (True, True)


def test_a_failed_renewal_is_called_so():
    sasl = authenticator(5000)
    shake(sasl, "SCRAM-SHA-256")
    client = ScramClient("alice", "secret")
    show(sasl, client.final(show(sasl, client.first()).token))
    shake(sasl, "SCRAM-SHA-256", at=10)
    answer = show(sasl, b"nonsense", at=10)
    assert answer.message == DENIED.format("re-authentication", "SCRAM-SHA-256")
    assert sasl.failed


def test_nothing_but_tokens_is_served_during_a_renewal():
    sasl = proved(reauth_ms=5000)
    shake(sasl, at=10)
    assert sasl.admit(METADATA, 10) is Admission.REFUSE


def test_an_established_session_may_ask_for_versions_at_any_time():
    sasl = proved()
    assert sasl.admit(VERSIONS, 0) is Admission.ADMIT
    sasl.versions_answered(0)
    sasl.versions_answered(ErrorCode.INVALID_REQUEST)
    assert sasl.complete


def test_no_secret_is_left_in_the_reason():
    sasl = authenticator()
    shake(sasl)
    show(sasl, b"\0alice\0hunter2")
    assert "hunter2" not in sasl.reason
    assert "secret" not in sasl.reason
