"""What is kept of a password: keys from which it cannot be told, and that text does not show."""

from __future__ import annotations

import base64
import hashlib

import pytest

from mockbroker.core.security.sasl.scram_credential import (
    ScramMechanism,
    from_password,
    from_salted_password,
)

# The credential of RFC 7677's example (user "user", password "pencil").
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
STORED_KEY = "WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
SERVER_KEY = "wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="


def test_the_keys_are_those_of_the_rfc():
    credential = from_password(ScramMechanism.SCRAM_SHA_256, "pencil", SALT)
    assert base64.b64encode(credential.stored_key).decode() == STORED_KEY
    assert base64.b64encode(credential.server_key).decode() == SERVER_KEY
    assert (credential.salt, credential.iterations) == (SALT, 4096)


@pytest.mark.parametrize("mechanism", ScramMechanism)
def test_a_password_salted_by_the_client_gives_the_same_keys(mechanism):
    salted = hashlib.pbkdf2_hmac(mechanism.digest, b"pencil", SALT, 5000)
    ours = from_password(mechanism, "pencil", SALT, 5000)
    theirs = from_salted_password(mechanism, salted, SALT, 5000)
    assert (ours.stored_key, ours.server_key) == (theirs.stored_key, theirs.server_key)
    assert len(ours.stored_key) == hashlib.new(mechanism.digest).digest_size


def test_its_text_shows_no_key():
    credential = from_password(ScramMechanism.SCRAM_SHA_512, "pencil", SALT)
    assert repr(credential) == "ScramCredential(iterations=4096)"


def test_mechanisms_have_the_codes_and_names_of_kafka():
    assert {int(m): m.sasl_name for m in ScramMechanism} == {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
