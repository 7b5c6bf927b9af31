"""SASL spoken request by request over our own blocking client."""

from __future__ import annotations

import ssl
import struct
from typing import Any

from mockbroker import Cluster
from mockbroker.client.connection import Connection
from mockbroker_protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from mockbroker_protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.core.security.sasl.scram_client import ScramClient

TIMEOUT_S = 15.0


class SaslConnection(Connection):
    """A connection that says what it is told to, in any order; over TLS with a `context`.

    Raises `ssl.SSLError` when the TLS handshake fails on this side.
    """

    def __init__(
        self,
        kafka: Cluster,
        node_id: int = 1,
        listener: str | None = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        host, port = kafka.endpoint(node_id, listener)
        super().__init__(host, port, "sasl-test", timeout_s=TIMEOUT_S)
        if context is not None:
            self._socket = context.wrap_socket(self._socket, server_hostname=host)

    def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> Any:
        return self.send(SaslHandshakeRequest(mechanism), version)

    def token(self, token: bytes, version: int = 2) -> Any:
        return self.send(SaslAuthenticateRequest(token), version)

    def raw_token(self, token: bytes) -> bytes:
        """A token as it travels after a handshake of version 0."""
        self.send_raw(struct.pack(">i", len(token)) + token)
        return bytes(self.read_frame())

    def plain(self, user: str, password: str) -> Any:
        """Handshake and the one token of PLAIN; the answer to the token."""
        self.handshake("PLAIN")
        return self.token(f"\0{user}\0{password}".encode())

    def scram(self, user: str, password: str, digest: str = "sha256") -> Any:
        """Handshake and both tokens of SCRAM; the answer to the last one that was answered 0."""
        self.handshake(f"SCRAM-SHA-{digest.removeprefix('sha')}")
        client = ScramClient(user, password, digest)
        first = self.token(client.first())
        if first.error_code:
            return first
        final = self.token(client.final(bytes(first.auth_bytes)))
        assert final.error_code or client.trusts(bytes(final.auth_bytes))
        return final
