"""The client's side of SCRAM, written from RFC 5802 for the tests alone."""

from __future__ import annotations

import base64
import hashlib
import hmac


class ScramClient:
    """One exchange; `digest` is sha256 or sha512."""

    def __init__(
        self,
        user: str,
        password: str,
        digest: str = "sha256",
        nonce: str = "abc",
        *,
        authzid: str = "",
        extensions: str = "",
    ) -> None:
        self.password = password
        self.digest = digest
        self.header = f"n,{authzid},"
        self.bare = f"n={user},r={nonce}{extensions}"
        self.signature = b""

    def first(self) -> bytes:
        return f"{self.header}{self.bare}".encode()

    def final(
        self, server_first: bytes, *, nonce: str | None = None, binding: str | None = None
    ) -> bytes:
        fields = dict(part.split("=", 1) for part in server_first.decode().split(","))
        channel = base64.b64encode(self.header.encode()).decode() if binding is None else binding
        without_proof = f"c={channel},r={fields['r'] if nonce is None else nonce}"
        signed = f"{self.bare},{server_first.decode()},{without_proof}".encode()
        salted = hashlib.pbkdf2_hmac(
            self.digest,
            self.password.encode(),
            base64.b64decode(fields["s"]),
            int(fields["i"]),
        )
        client_key = hmac.digest(salted, b"Client Key", self.digest)
        stored_key = hashlib.new(self.digest, client_key).digest()
        signature = hmac.digest(stored_key, signed, self.digest)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        server_key = hmac.digest(salted, b"Server Key", self.digest)
        self.signature = hmac.digest(server_key, signed, self.digest)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def trusts(self, server_final: bytes) -> bool:
        return server_final == b"v=" + base64.b64encode(self.signature)
