"""Keys that sign and check OAUTHBEARER tokens, made on demand. Needs `cryptography`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
    from cryptography.hazmat.primitives.asymmetric.utils import (
        decode_dss_signature,
        encode_dss_signature,
    )
except ImportError as error:  # pragma: no cover - the test environment has it
    from mockbroker.extras import missing
    from mockbroker.server.config import ServerError

    raise ServerError(missing("signed tokens need", "cryptography")) from error

from mockbroker.core.security.sasl.jwt import encoded, unsigned_token

ISSUER = "mockbroker"
LIFETIME_S = 3600
RSA_BITS = 2048
_COORDINATE_BYTES = 32  # of a point on P-256


class TokenKeys:
    """One key pair for each algorithm, made at its first use. `now_ms` dates the tokens.

    `private_pem` is a key to use instead. Raises ValueError if it cannot sign tokens.
    """

    def __init__(self, now_ms: Callable[[], int], private_pem: bytes | None = None) -> None:
        self._now_ms = now_ms
        self.algorithm = "ES256"
        """The default algorithm of `sign`."""
        if private_pem is None:
            return
        key = serialization.load_pem_private_key(private_pem, None)
        if isinstance(key, rsa.RSAPrivateKey):
            self.algorithm = "RS256"
            self._rsa = key
        elif isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1):
            self._ec = key
        else:
            raise ValueError("tokens are signed with an RSA key or one on the curve P-256")

    @cached_property
    def _rsa(self) -> rsa.RSAPrivateKey:
        return rsa.generate_private_key(public_exponent=65537, key_size=RSA_BITS)

    @cached_property
    def _ec(self) -> ec.EllipticCurvePrivateKey:
        return ec.generate_private_key(ec.SECP256R1())

    def sign(
        self,
        user: str,
        *,
        algorithm: str | None = None,
        lifetime_s: float = LIFETIME_S,
        claims: Mapping[str, object] | None = None,
    ) -> str:
        """A token of `user`, valid for `lifetime_s`; `claims` outrank the default ones.

        `algorithm` is ES256, RS256, or `none` for an unsigned token. Raises ValueError for another.
        """
        algorithm = algorithm or self.algorithm
        now_s = self._now_ms() / 1000
        body = {
            "sub": user,
            "iss": ISSUER,
            "iat": int(now_s),
            "exp": now_s + lifetime_s,
            **(claims or {}),
        }
        header = {"alg": algorithm, "typ": "JWT"}
        if algorithm != "none":
            header["kid"] = algorithm.lower()
        token = unsigned_token(header, body)
        return f"{token}.{encoded(self._signature(algorithm, token.encode()))}"

    def _signature(self, algorithm: str, signed: bytes) -> bytes:
        match algorithm:
            case "none":
                return b""
            case "RS256":
                return self._rsa.sign(signed, padding.PKCS1v15(), hashes.SHA256())
            case "ES256":
                r, s = decode_dss_signature(self._ec.sign(signed, ec.ECDSA(hashes.SHA256())))
                return r.to_bytes(_COORDINATE_BYTES, "big") + s.to_bytes(_COORDINATE_BYTES, "big")
            case _:
                raise ValueError(f"tokens are signed with ES256 or RS256, not {algorithm}")

    def verify(self, algorithm: str, key_id: str | None, signed: bytes, signature: bytes) -> bool:
        """Whether one of these keys made the signature; the key id is ignored."""
        del key_id
        try:
            if algorithm == "RS256":
                self._rsa.public_key().verify(
                    signature, signed, padding.PKCS1v15(), hashes.SHA256()
                )
                return True
            if algorithm == "ES256" and len(signature) == 2 * _COORDINATE_BYTES:
                r = int.from_bytes(signature[:_COORDINATE_BYTES], "big")
                s = int.from_bytes(signature[_COORDINATE_BYTES:], "big")
                self._ec.public_key().verify(
                    encode_dss_signature(r, s), signed, ec.ECDSA(hashes.SHA256())
                )
                return True
        except InvalidSignature:
            return False
        return False

    def private_pem(self, algorithm: str | None = None) -> bytes:
        """The private key as PEM, for programs that sign tokens of their own."""
        key = self._rsa if (algorithm or self.algorithm) == "RS256" else self._ec
        return key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
