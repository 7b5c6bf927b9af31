"""SCRAM: the example of RFC 7677, and everything that is not quite it."""

from __future__ import annotations

import base64

import pytest

from mockbroker.core.security.sasl.mechanism import DeniedError
from mockbroker.core.security.sasl.scram import DelegatedCredential, Scram, ScramState
from mockbroker.core.security.sasl.scram_credential import (
    ScramCredential,
    ScramMechanism,
    from_password,
)
from tests.core.security.sasl.scram_client import ScramClient

SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
NAMES = ("user", "a,b=c")


def credentials(iterations: int = 4096) -> dict[str, dict[int, ScramCredential]]:
    return {
        name: {int(m): from_password(m, "pencil", SALT, iterations) for m in ScramMechanism}
        for name in NAMES
    }


CREDENTIALS = credentials()


def server(mechanism: ScramMechanism = SHA_256, nonce: str = "%server") -> Scram:
    return Scram(mechanism, CREDENTIALS, lambda: nonce)


def denial(scram: Scram, token: bytes) -> DeniedError:
    with pytest.raises(DeniedError) as denied:
        scram.respond(token, 0)
    assert scram.state is ScramState.FAILED
    assert scram.user is None
    return denied.value


def test_the_exchange_of_rfc_7677():
    scram = server(nonce="%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0")
    first = scram.respond(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO", 0)
    assert first == (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    assert scram.user is None
    final = scram.respond(
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
        0,
    )
    assert final == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert (scram.user, scram.state) == ("user", ScramState.COMPLETE)


@pytest.mark.parametrize("mechanism", ScramMechanism)
@pytest.mark.parametrize(
    "options",
    [{}, {"authzid": "a=user"}, {"extensions": ",x=y,z=1"}],
    ids=["bare", "authorization id", "extensions"],
)
def test_both_sides_prove_that_they_know_the_password(mechanism, options):
    scram = server(mechanism)
    client = ScramClient("user", "pencil", mechanism.digest, **options)
    assert client.trusts(scram.respond(client.final(scram.respond(client.first(), 0)), 0))
    assert scram.user == "user"


def test_commas_and_equal_signs_of_a_name_are_escaped():
    scram = server()
    client = ScramClient("a=2Cb=3Dc", "pencil")
    scram.respond(client.final(scram.respond(client.first(), 0)), 0)
    assert scram.user == "a,b=c"


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_a_wrong_password_is_denied_without_a_word(mechanism):
    scram = server(mechanism)
    client = ScramClient("user", "wrong", mechanism.digest)
    error = denial(scram, client.final(scram.respond(client.first(), 0)))
    assert (error.reason, error.message) == ("the password is wrong", None)


def test_a_password_of_the_other_mechanism_is_denied():
    scram = server(SHA_512)
    client = ScramClient("user", "pencil", "sha256")
    assert denial(scram, client.final(scram.respond(client.first(), 0))).message is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"nonce": "abc"}, "another nonce"),
        ({"nonce": "abc%serverx"}, "another nonce"),
        ({"nonce": "%server"}, "another nonce"),
        ({"binding": base64.b64encode(b"y,,").decode()}, "another channel binding"),
        ({"binding": ""}, "another channel binding"),
    ],
)
def test_the_final_message_has_to_repeat_what_was_said_first(changes, reason):
    scram = server()
    client = ScramClient("user", "pencil")
    assert reason in denial(scram, client.final(scram.respond(client.first(), 0), **changes)).reason


@pytest.mark.parametrize(
    "token",
    [
        b"",
        b"user",
        b"n,,n=user",
        b"n,,r=abc,n=user",
        b"y,,n=user,r=abc",
        b"p=tls-unique,,n=user,r=abc",
        b"n,,n=us=er,r=abc",
        b"n,,n=user,r=a b",
        b"n,,n=user,r=abc,",
        b"n,,n=\xc3\xa9,r=abc",
        b"n,,n=user,r=abc\xff",
    ],
)
def test_what_is_no_first_message_is_denied(token):
    assert "not a SCRAM message" in denial(server(), token).reason


@pytest.mark.parametrize(
    "token", [b"", b"c=biws", b"c=biws,r=abc%server", b"c=b!,r=abc,p=AAAA", b"r=x,c=biws,p=AAAA"]
)
def test_what_is_no_final_message_is_denied(token):
    scram = server()
    scram.respond(b"n,,n=user,r=abc", 0)
    assert "not a SCRAM message" in denial(scram, token).reason


@pytest.mark.parametrize("proof", [b"", b"AAAA", base64.b64encode(bytes(32)), b"A" * 4000])
def test_a_proof_of_another_length_or_content_is_denied(proof):
    scram = server()
    scram.respond(b"n,,n=user,r=abc", 0)
    assert denial(scram, b"c=biws,r=abc%server,p=" + proof).reason == "the password is wrong"


def test_an_unknown_user_is_denied_without_a_word():
    assert denial(server(), b"n,,n=nobody,r=abc").message is None


def test_a_foreign_authorization_id_is_denied():
    assert "authorization id" in (denial(server(), b"n,a=bob,n=user,r=abc").message or "")


def test_too_few_iterations_are_denied():
    scram = Scram(SHA_256, credentials(4095), lambda: "x")
    assert "4095 iterations" in denial(scram, b"n,,n=user,r=abc").reason


def test_nothing_more_is_taken_after_the_end():
    scram = server()
    client = ScramClient("user", "pencil")
    final = client.final(scram.respond(client.first(), 0))
    scram.respond(final, 0)
    with pytest.raises(DeniedError, match="complete"):
        scram.respond(final, 0)


def test_a_credential_that_goes_away_meanwhile_still_serves_its_exchange():
    """As in Kafka, the credential is looked up once, with the first message."""
    store = credentials()
    scram = Scram(SHA_256, store, lambda: "x")
    client = ScramClient("user", "pencil")
    first = scram.respond(client.first(), 0)
    del store["user"]
    assert client.trusts(scram.respond(client.final(first), 0))


def test_a_delegation_token_speaks_for_its_owner():
    key = from_password(SHA_256, "hmac", SALT)
    asked = []

    def find(token_id: str, mechanism: ScramMechanism) -> DelegatedCredential | None:
        asked.append((token_id, mechanism))
        return DelegatedCredential("owner", key, 77) if token_id == "id7" else None

    scram = Scram(SHA_256, {}, lambda: "x", find)
    client = ScramClient("id7", "hmac", extensions=",tokenauth=true")
    assert client.trusts(scram.respond(client.final(scram.respond(client.first(), 0)), 0))
    assert (scram.user, scram.by_token, scram.expires_ms) == ("owner", True, 77)
    unknown = Scram(SHA_256, CREDENTIALS, lambda: "x", find)
    assert "no delegation token" in denial(unknown, b"n,,n=user,r=a,tokenauth=true").reason
    assert asked == [("id7", SHA_256), ("user", SHA_256)]


def test_without_delegation_tokens_nobody_has_one():
    assert "no delegation token" in denial(server(), b"n,,n=user,r=a,tokenauth=true").reason
