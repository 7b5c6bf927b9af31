"""A realm makes the mechanisms it offers, from one seed."""

from __future__ import annotations

import pytest

from mockbroker.core.ids import IdSource
from mockbroker.core.security.sasl.realm import Realm, scram_credentials, server_nonce
from mockbroker.core.security.sasl.scram_credential import ScramMechanism, from_password
from tests.core.security.sasl.scram_client import ScramClient

NAMES = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


def realm(seed: int = 1) -> Realm:
    ids = IdSource(seed)
    return Realm(
        mechanisms=lambda: NAMES,
        max_reauth_ms=lambda _: 0,
        passwords={"alice": "secret"},
        scram=scram_credentials({"alice": "secret"}, ids),
        ids=ids,
    )


@pytest.mark.parametrize("name", NAMES)
def test_each_mechanism_is_made_afresh(name):
    shared = realm()
    first, second = shared.mechanism(name), shared.mechanism(name)
    assert first is not second
    assert (first.name, first.user) == (name, None)


def test_users_have_a_credential_of_each_scram_mechanism():
    credentials = scram_credentials({"alice": "a", "bob": "b"}, IdSource(1))
    assert set(credentials) == {"alice", "bob"}
    salts = set()
    for name, of_user in credentials.items():
        assert set(of_user) == {1, 2}
        for mechanism, credential in of_user.items():
            again = from_password(ScramMechanism(mechanism), name[0], credential.salt)
            assert again.stored_key == credential.stored_key
            salts.add(credential.salt)
    assert len(salts) == 4
    assert {len(salt) for salt in salts} == {16}


def test_equal_seeds_give_equal_exchanges():
    def exchange(seed: int) -> bytes:
        client = ScramClient("alice", "secret")
        return realm(seed).mechanism("SCRAM-SHA-256").respond(client.first(), 0)

    assert exchange(1) == exchange(1)
    assert exchange(1) != exchange(2)


def test_every_nonce_is_another():
    ids = IdSource(1)
    nonces = {server_nonce(ids) for _ in range(100)}
    assert len(nonces) == 100
    assert {len(nonce) for nonce in nonces} == {32}


def test_without_keys_no_signed_token_holds():
    assert (
        realm()
        .mechanism("OAUTHBEARER")
        .respond(b"n,,\x01auth=Bearer eyJhbGciOiJFUzI1NiJ9.e30.AA\x01\x01", 0)
    )
