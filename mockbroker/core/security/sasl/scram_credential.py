"""SCRAM credentials (RFC 5802, section 3): the server does not store the password."""

from __future__ import annotations

import hashlib
import hmac
from enum import IntEnum

ITERATIONS_MIN = 4096
ITERATIONS_MAX = 16384


class ScramMechanism(IntEnum):
    """SCRAM mechanisms by their code in the SCRAM credential APIs (KIP-554)."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def sasl_name(self) -> str:
        return self.name.replace("_", "-")

    @property
    def digest(self) -> str:
        """The name of the hash function in `hashlib`."""
        return {1: "sha256", 2: "sha512"}[self.value]

    def hash(self, data: bytes) -> bytes:
        return hashlib.new(self.digest, data).digest()

    def hmac(self, key: bytes, data: bytes) -> bytes:
        return hmac.digest(key, data, self.digest)


class ScramCredential:
    """One user's credential for one mechanism. Its `repr` has no secret."""

    __slots__ = ("iterations", "salt", "server_key", "stored_key")

    def __init__(self, salt: bytes, iterations: int, stored_key: bytes, server_key: bytes) -> None:
        self.salt = salt
        self.iterations = iterations
        self.stored_key = stored_key
        self.server_key = server_key

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations})"


def from_password(
    mechanism: ScramMechanism, password: str, salt: bytes, iterations: int = ITERATIONS_MIN
) -> ScramCredential:
    """The credential of a password, encoded as UTF-8 (ScramFormatter.normalize)."""
    salted = hashlib.pbkdf2_hmac(mechanism.digest, password.encode(), salt, iterations)
    return from_salted_password(mechanism, salted, salt, iterations)


def from_salted_password(
    mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    """The credential of a salted password, for AlterUserScramCredentials.

    The client must have salted it with this mechanism's hash; that cannot be checked.
    """
    stored_key = mechanism.hash(mechanism.hmac(salted, b"Client Key"))
    return ScramCredential(salt, iterations, stored_key, mechanism.hmac(salted, b"Server Key"))
