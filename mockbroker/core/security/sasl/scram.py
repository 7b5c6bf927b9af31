"""SCRAM (RFC 5802, RFC 7677): client and server prove to each other that they have the password.

    client first   n,,n=alice,r=<client nonce>
    server first   r=<client nonce><server nonce>,s=<salt>,i=<iterations>
    client final   c=biws,r=<both nonces>,p=<proof>
    server final   v=<signature>

The proof covers all of these texts, so none can be replayed or changed. As in Kafka, the client
does not get the reason of a failure. Unlike Kafka, the server compares the repeated channel binding
with the first one, as the RFC requires.

Source: ScramSaslServer.
"""

from __future__ import annotations

import base64
import hmac
import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from mockbroker.core.security.sasl.mechanism import DeniedError, denied_with_reason
from mockbroker.core.security.sasl.scram_credential import (
    ITERATIONS_MIN,
    ScramCredential,
    ScramMechanism,
)

_SASL_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_VALUE = r"[\x01-\x2b\x2d-\x7f]+"
_PRINTABLE = r"[\x21-\x2b\x2d-\x7e]+"
_BASE64 = r"(?:[a-zA-Z0-9/+]{4})*(?:[a-zA-Z0-9/+]{3}=|[a-zA-Z0-9/+]{2}==)?"
_EXTENSIONS = rf"(?:,[A-Za-z]+={_VALUE})*"

# Kafka has no channel binding: the header is "n".
_CLIENT_FIRST = (
    rf"(?P<header>n,(?:a=(?P<authzid>{_SASL_NAME}))?,)"
    rf"(?P<bare>(?:m={_VALUE},)?n=(?P<name>{_SASL_NAME}),r=(?P<nonce>{_PRINTABLE})"
    rf"(?P<extensions>{_EXTENSIONS}))"
)
_CLIENT_FINAL = (
    rf"(?P<without_proof>c=(?P<binding>{_BASE64}),r=(?P<nonce>{_PRINTABLE}){_EXTENSIONS})"
    rf",p=(?P<proof>{_BASE64})"
)

Credentials = Mapping[str, Mapping[int, ScramCredential]]
"""By user and mechanism code."""


class DelegatedCredential(NamedTuple):
    """The credential of a delegation token (KIP-48), with its owner and expiry time."""

    owner: str
    credential: ScramCredential
    expires_ms: int


# (token id, mechanism) -> the credential of the delegation token, or None.
FindToken = Callable[[str, ScramMechanism], DelegatedCredential | None]


def no_tokens(token_id: str, mechanism: ScramMechanism) -> DelegatedCredential | None:  # noqa: ARG001
    """There are no delegation tokens."""
    return None


class ScramState(Enum):
    """The state of the exchange: the next message of the client."""

    CLIENT_FIRST = "client first"
    CLIENT_FINAL = "client final"
    COMPLETE = "complete"
    FAILED = "failed"


class Scram:
    """The server side of one SCRAM exchange. `nonce` draws the server's part of the nonce.

    With the extension `tokenauth=true` the name is the id of a delegation token; then `by_token` is
    set and `user` is the token's owner.
    """

    __slots__ = (
        "_authentication",
        "_credential",
        "_credentials",
        "_find_token",
        "_header",
        "_mechanism",
        "_nonce",
        "_owner",
        "by_token",
        "expires_ms",
        "name",
        "state",
        "user",
    )

    def __init__(
        self,
        mechanism: ScramMechanism,
        credentials: Credentials,
        nonce: Callable[[], str],
        find_token: FindToken = no_tokens,
    ) -> None:
        self.name = mechanism.sasl_name
        self.user: str | None = None
        self.expires_ms: int | None = None
        self.state = ScramState.CLIENT_FIRST
        self._mechanism = mechanism
        self._credentials = credentials
        self._nonce: Callable[[], str] | str = nonce
        self._credential: ScramCredential | None = None
        self._owner = ""
        self._find_token = find_token
        self.by_token = False
        self._header = b""
        self._authentication = ""  # the AuthMessage of RFC 5802, so far

    def respond(self, token: bytes, now_ms: int) -> bytes:  # noqa: ARG002 - nothing here expires
        text = token.decode("utf-8", "replace")
        try:
            match self.state:
                case ScramState.CLIENT_FIRST:
                    answer = self._first(text)
                    self.state = ScramState.CLIENT_FINAL
                case ScramState.CLIENT_FINAL:
                    answer = self._final(text)
                    self.state = ScramState.COMPLETE
                    self.user = self._owner
                case _:
                    raise DeniedError(f"a token arrived in the state {self.state.value!r}")
        except DeniedError:
            self.state = ScramState.FAILED
            self._credential = None
            raise
        return answer.encode()

    def _first(self, text: str) -> str:
        message = re.fullmatch(_CLIENT_FIRST, text)
        if message is None:
            raise DeniedError("the client's first message is not a SCRAM message")
        name = message["name"].replace("=2C", ",").replace("=3D", "=")
        credential = self._look_up(name, message["extensions"].split(","))
        if message["authzid"] not in (None, name):
            raise denied_with_reason(
                "Authentication failed: Client requested an authorization id that is different"
                " from username"
            )
        if credential.iterations < ITERATIONS_MIN:
            raise DeniedError(f"{credential.iterations} iterations are fewer than {ITERATIONS_MIN}")
        assert callable(self._nonce)
        self._nonce = message["nonce"] + self._nonce()
        salt = base64.b64encode(credential.salt).decode()
        answer = f"r={self._nonce},s={salt},i={credential.iterations}"
        self._credential = credential
        self._header = message["header"].encode()
        self._authentication = f"{message['bare']},{answer}"
        return answer

    def _look_up(self, name: str, extensions: Sequence[str]) -> ScramCredential:
        """The credential of the user or of the delegation token `name`."""
        if "tokenauth=true" in extensions:
            token = self._find_token(name, self._mechanism)
            if token is None:
                raise DeniedError(f"there is no delegation token {name!r}")
            self._owner, credential, self.expires_ms = token
            self.by_token = True
            return credential
        found = self._credentials.get(name, {}).get(self._mechanism)
        if found is None:
            raise DeniedError(f"user {name!r} has no {self.name} credential")
        self._owner = name
        return found

    def _final(self, text: str) -> str:
        message = re.fullmatch(_CLIENT_FINAL, text)
        if message is None:
            raise DeniedError("the client's final message is not a SCRAM message")
        credential = self._credential
        assert credential is not None
        assert isinstance(self._nonce, str)
        if not hmac.compare_digest(message["nonce"], self._nonce):
            raise DeniedError("the client's final message has another nonce")
        if base64.b64decode(message["binding"]) != self._header:
            raise DeniedError("the client's final message has another channel binding")
        mechanism = self._mechanism
        signed = f"{self._authentication},{message['without_proof']}".encode()
        signature = mechanism.hmac(credential.stored_key, signed)
        proof = base64.b64decode(message["proof"])
        client_key = bytes(a ^ b for a, b in zip(signature, proof, strict=False))
        right = hmac.compare_digest(mechanism.hash(client_key), credential.stored_key)
        if len(proof) != len(signature) or not right:
            raise DeniedError("the password is wrong")
        return f"v={base64.b64encode(mechanism.hmac(credential.server_key, signed)).decode()}"
