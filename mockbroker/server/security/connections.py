"""Connections that authenticate: by TLS before the first request, by SASL around each."""

from __future__ import annotations

import logging
import ssl
import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mockbroker.core.security.principals import (
    NoMatchingRuleError,
    PrincipalMapper,
    distinguished_name,
    user,
)
from mockbroker.core.security.sasl.authenticator import Authenticator
from mockbroker.core.security.sasl.states import Admission
from mockbroker.handlers.authentication import delayed_failure
from mockbroker.handlers.base import ConnectionInfo, EncodedResponse, RequestContext
from mockbroker.handlers.error_responses import error_response
from mockbroker.server.network.connection import Connection, undecodable
from mockbroker.server.network.frame_reader import REQUEST_BYTES_MAX, InvalidReceiveError
from mockbroker.server.network.pending_exchange import PendingExchange
from mockbroker.server.network.routes import Route
from mockbroker.server.network.transport import Buffer, Transport
from mockbroker.server.security.tls_transport import TlsTransport
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.exceptions import DecodeError
from mockbroker_protocol.headers import decode_request_header

if TYPE_CHECKING:
    from mockbroker.server.network.acceptor import AcceptedTransport
    from mockbroker.server.network.socket_server import SocketServer

log = logging.getLogger("mockbroker")

_API_KEY = struct.Struct(">h").unpack_from
_SIZE = struct.Struct(">i").pack
_API_VERSIONS = int(ApiKey.API_VERSIONS)
UNAUTHENTICATED_BYTES_MAX = "sasl.server.max.receive.size"


class SecureConnection(Connection):
    """A connection over TLS; the client's certificate, if it has one, is its principal."""

    __slots__ = ("_mapper", "_tls")

    def __init__(
        self,
        transport: Transport,
        server: SocketServer,
        listener: str,
        info: ConnectionInfo,
        accepted: AcceptedTransport,
        tls: TlsTransport | None,
        mapper: PrincipalMapper,
    ) -> None:
        """As `Connection`; `tls` is the part of `transport` that performs the handshake."""
        super().__init__(transport, server, listener, info, accepted)
        self._tls = tls
        self._mapper = mapper

    async def _serve_all(self) -> str:
        if self._tls is not None:
            await self.gate.wait()
            await self._shake_hands(self._tls)
        return await super()._serve_all()

    async def _shake_hands(self, tls: TlsTransport) -> None:
        try:
            await tls.handshake()
        except ssl.SSLError as error:
            reason = str(error.reason or error).replace("_", " ").lower()
            raise InvalidReceiveError(f"TLS handshake failed: {reason}") from None
        subject = tls.peer_subject()
        if subject:
            try:
                name = self._mapper.name(distinguished_name(subject))
            except NoMatchingRuleError as error:
                raise InvalidReceiveError(str(error)) from None
            self._info.principal = user(name)


class SaslConnection(SecureConnection):
    """A connection whose client authenticates by SASL, over TLS or not."""

    __slots__ = ("_refusal", "_request_bytes_authenticated", "_sasl")

    def __init__(
        self,
        transport: Transport,
        server: SocketServer,
        listener: str,
        info: ConnectionInfo,
        accepted: AcceptedTransport,
        tls: TlsTransport | None,
        mapper: PrincipalMapper,
        sasl: Authenticator,
    ) -> None:
        super().__init__(transport, server, listener, info, accepted, tls, mapper)
        self._sasl = sasl
        self._refusal = ""  # why authentication has failed
        info.sasl = sasl
        # An unauthenticated client must not make the broker hold a large frame.
        self._request_bytes_authenticated = self._request_bytes_max
        self._request_bytes_max = self._cluster.config_int(UNAUTHENTICATED_BYTES_MAX)
        self._request_bytes_limit = UNAUTHENTICATED_BYTES_MAX

    async def _shake_hands(self, tls: TlsTransport) -> None:
        await super()._shake_hands(tls)
        self._info.principal = self._sasl.principal  # only SASL counts here

    async def _serve_all(self) -> str:
        why = await super()._serve_all()
        return self._refusal or why

    # -- frames in ---------------------------------------------------------------------------------

    def _next_frame(self) -> bytearray | None:
        return None if self.is_over else super()._next_frame()

    async def _read_frame(self) -> bytearray | None:
        return None if self.is_over else await super()._read_frame()

    # -- one request -------------------------------------------------------------------------------

    def serve(self, frame: bytearray) -> Sequence[Buffer] | PendingExchange | None:
        sasl = self._sasl
        if sasl.speaks_raw and sasl.expects_token:
            return self._serve_raw_token(frame)
        if len(frame) < 2:
            raise InvalidReceiveError("request header: a frame without an API key")
        admission = sasl.admit(_API_KEY(frame)[0], self._now_ms())
        if admission is Admission.ADMIT:
            return super().serve(frame)
        if admission is Admission.CLOSE:
            raise InvalidReceiveError(sasl.reason)
        return self._refuse(frame)

    def _answer(
        self,
        context: RequestContext,
        request: object,
        route: Route,
        started_ns: int,
        response: object,
    ) -> Sequence[Buffer] | None:
        rest = super()._answer(context, request, route, started_ns, response)
        return rest or None if self.is_over else rest

    def frame(
        self,
        context: RequestContext,
        request: object,
        route: Route,
        started_ns: int,
        response: object,
    ) -> Sequence[Buffer] | None:
        """As `Connection.frame`. A refused client gets this response and no other."""
        parts = super().frame(context, request, route, started_ns, response)
        sasl = self._sasl
        if sasl.failed:
            self._refused()
        elif context.header.api_key == _API_VERSIONS:
            encoded = isinstance(response, EncodedResponse)
            sasl.versions_answered(0 if encoded else int(getattr(response, "error_code", 0)))
        elif sasl.complete:
            self._authenticated()
        return parts

    def _serve_raw_token(self, frame: bytearray) -> Sequence[Buffer] | PendingExchange | None:
        """A token without a header, as before Kafka 1.0: a refused client gets no response."""
        sasl = self._sasl
        now_ms = self.active_ms = self._now_ms()
        answer = sasl.token(bytes(frame), now_ms)
        if sasl.failed:
            waiting = delayed_failure(self._cluster, now_ms, None)
            return PendingExchange(waiting, lambda _: self._refused(), self.gate)
        if sasl.complete:
            self._info.principal = sasl.principal
            self._authenticated()
        self._stats.bytes_out += len(answer.token) + 4
        return self._transport.send((_SIZE(len(answer.token)), answer.token))

    def _refuse(self, frame: bytearray) -> Sequence[Buffer] | PendingExchange | None:
        """Answer ILLEGAL_SASL_STATE in the response of the request's API; then close."""
        view = memoryview(frame)
        try:
            header, position = decode_request_header(view)
            route = self._routes.get((header.api_key, header.api_version)) or self._route(
                (header.api_key, header.api_version)
            )
            if route is None:
                raise InvalidReceiveError(self._sasl.reason)
            request, _ = route.request.decode_untrusted(view, position, self._elements_max)
        except DecodeError as error:
            raise undecodable(self._sasl.reason, error) from None
        context = RequestContext(
            self._cluster, self._broker, self._listener, header, self._info, self._now_ms()
        )
        response = error_response(
            route.api.key, header.api_version, request, ErrorCode.ILLEGAL_SASL_STATE
        )
        parked = delayed_failure(self._cluster, context.now_ms, response)
        if parked.done:
            return self._answer(context, request, route, 0, parked.response)
        context.is_late = True
        return PendingExchange(
            parked, lambda late: self._answer(context, request, route, 0, late), self.gate
        )

    def _authenticated(self) -> None:
        """Allow the client to send large frames."""
        self._request_bytes_max = self._request_bytes_authenticated
        self._request_bytes_limit = REQUEST_BYTES_MAX

    def _refused(self) -> None:
        """Close the connection after the present response: authentication has failed."""
        sasl = self._sasl
        if not self.is_over:
            self._stats.failed_authentications += 1
            mechanism = sasl.mechanism_name or "no mechanism yet"
            self._refusal = f"failed authentication ({mechanism}): {sasl.reason}"
            log.warning("%s: %s; connection closed", self.peer, self._refusal)
        self.is_over = True
