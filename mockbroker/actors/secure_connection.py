"""Connections that ask who is there before they serve: TLS first, then SASL.

They serve as any other connection does, so a plain one knows nothing of them: what a listener asks
for on top is done before the first request (the TLS handshake) or around each one (SASL).
"""

from __future__ import annotations

import logging
import ssl
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from mockbroker.actors.broker_host import Gate
from mockbroker.actors.connection import Connection, Trace
from mockbroker.actors.inbox import ProtocolError
from mockbroker.actors.routes import Route
from mockbroker.actors.stats import Stats
from mockbroker.actors.tls import TlsTransport
from mockbroker.actors.transport import Buffer, Transport
from mockbroker.actors.unanswered import Unanswered
from mockbroker.core.security.principals import (
    NoMatchingRuleError,
    PrincipalMapper,
    distinguished_name,
    user,
)
from mockbroker.core.security.sasl.authenticator import Authenticator
from mockbroker.core.security.sasl.states import Verdict
from mockbroker.handlers.authentication import told_late
from mockbroker.handlers.base import ConnectionInfo, EncodedResponse, RequestContext
from mockbroker.handlers.error_responses import error_response
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.exceptions import DecodeError
from mockbroker_protocol.headers import decode_request_header

if TYPE_CHECKING:
    from mockbroker.core.broker import Broker
    from mockbroker.core.cluster import Cluster

log = logging.getLogger("mockbroker")

_API_KEY = struct.Struct(">h").unpack_from
_SIZE = struct.Struct(">i").pack
_API_VERSIONS = int(ApiKey.API_VERSIONS)


class SecureConnection(Connection):
    """A connection over TLS; the client's certificate, if it has one, is its principal."""

    __slots__ = ("_mapper", "_tls")

    def __init__(
        self,
        transport: Transport,
        cluster: Cluster,
        broker: Broker,
        listener: str,
        info: ConnectionInfo,
        stats: Stats,
        trace: Trace | None,
        gate: Gate,
        mapper: PrincipalMapper,
    ) -> None:
        super().__init__(transport, cluster, broker, listener, info, stats, trace, gate)
        self._tls = transport if isinstance(transport, TlsTransport) else None
        self._mapper = mapper

    def wrap_transport(self, wrap: Callable[[Transport], Transport]) -> None:
        """Let what is sent and received go through something."""
        self._transport = wrap(self._transport)

    async def _serve_all(self) -> str:
        if self._tls is not None:
            await self._gate.wait()  # a stopped process shakes no hands
            await self._shake_hands(self._tls)
        return await super()._serve_all()

    async def _shake_hands(self, tls: TlsTransport) -> None:
        try:
            await tls.handshake()
        except ssl.SSLError as error:
            reason = str(error.reason or error).replace("_", " ").lower()
            raise ProtocolError(f"TLS handshake failed: {reason}") from None
        subject = tls.peer_subject()
        if subject:
            try:
                name = self._mapper.name(distinguished_name(subject))
            except NoMatchingRuleError as error:
                raise ProtocolError(str(error)) from None
            self._info.principal = user(name)


class SaslConnection(SecureConnection):
    """A connection whose client has to prove who it is, over TLS or not."""

    __slots__ = ("_over", "_request_bytes_proved", "_sasl")

    def __init__(
        self,
        transport: Transport,
        cluster: Cluster,
        broker: Broker,
        listener: str,
        info: ConnectionInfo,
        stats: Stats,
        trace: Trace | None,
        gate: Gate,
        mapper: PrincipalMapper,
        sasl: Authenticator,
    ) -> None:
        super().__init__(transport, cluster, broker, listener, info, stats, trace, gate, mapper)
        self._sasl = sasl
        info.sasl = sasl
        self._over = False  # the refusal is sent; nothing more is read
        # Nobody unproved may make the broker hold a large frame.
        self._request_bytes_proved = self._request_bytes_max
        self._request_bytes_max = cluster.config_int("sasl.server.max.receive.size")

    async def _shake_hands(self, tls: TlsTransport) -> None:
        await super()._shake_hands(tls)
        self._info.principal = self._sasl.principal  # only SASL counts here

    # -- frames in ---------------------------------------------------------------------------------

    def _next_frame(self) -> bytearray | None:
        return None if self._over else super()._next_frame()

    async def _read_frame(self) -> bytearray | None:
        return None if self._over else await super()._read_frame()

    # -- one request -------------------------------------------------------------------------------

    def _serve(self, frame: bytearray) -> Sequence[Buffer] | Unanswered | None:
        sasl = self._sasl
        if sasl.speaks_raw and sasl.takes_token:
            return self._serve_raw_token(frame)
        if len(frame) < 2:
            raise ProtocolError("request header: a frame without an API key")
        verdict = sasl.admit(_API_KEY(frame)[0], self._now_ms())
        if verdict is Verdict.ADMIT:
            return super()._serve(frame)
        if verdict is Verdict.CLOSE:
            raise ProtocolError(sasl.reason)
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
        sasl = self._sasl
        if sasl.failed:
            return self._end(rest)
        if context.header.api_key == _API_VERSIONS:
            encoded = isinstance(response, EncodedResponse)
            sasl.versions_answered(0 if encoded else int(getattr(response, "error_code", 0)))
        elif sasl.complete:
            self._request_bytes_max = self._request_bytes_proved
        return rest

    def _serve_raw_token(self, frame: bytearray) -> Sequence[Buffer] | Unanswered | None:
        """A token without a header, as before Kafka 1.0: a refusal is nothing but the close."""
        sasl = self._sasl
        now_ms = self.active_ms = self._now_ms()
        answer = sasl.token(bytes(frame), now_ms)
        if sasl.failed:
            waiting = told_late(self._cluster, now_ms, None)
            return Unanswered(waiting, lambda _: self._end(()), self._gate)
        if sasl.complete:
            self._info.principal = sasl.principal
            self._request_bytes_max = self._request_bytes_proved
        self._stats.bytes_out += len(answer.token) + 4
        return self._transport.send((_SIZE(len(answer.token)), answer.token))

    def _refuse(self, frame: bytearray) -> Sequence[Buffer] | Unanswered | None:
        """Answer, in the request's own shape, that this is no time for it; then close."""
        view = memoryview(frame)
        try:
            header, position = decode_request_header(view)
            route = self._routes.get((header.api_key, header.api_version)) or self._route(
                (header.api_key, header.api_version)
            )
            if route is None:
                raise ProtocolError(self._sasl.reason)
            request, _ = route.request.decode(view, position)
        except DecodeError as error:
            raise ProtocolError(f"{self._sasl.reason}: {error}") from None
        context = RequestContext(
            self._cluster, self._broker, self._listener, header, self._info, self._now_ms()
        )
        response = error_response(
            route.api.key, header.api_version, request, ErrorCode.ILLEGAL_SASL_STATE
        )
        parked = told_late(self._cluster, context.now_ms, response)
        if parked.done:
            return self._answer(context, request, route, 0, parked.response)
        context.is_late = True
        return Unanswered(
            parked, lambda late: self._answer(context, request, route, 0, late), self._gate
        )

    def _end(self, rest: Sequence[Buffer] | None) -> Sequence[Buffer] | None:
        """The client has been told, or will be once `rest` is sent; then the connection closes."""
        sasl = self._sasl
        if not self._over:
            self._stats.failed_authentications += 1
            mechanism = sasl.mechanism_name or "no mechanism yet"
            log.warning(
                "%s: failed authentication (%s): %s; connection closed",
                self._peer(),
                mechanism,
                sasl.reason,
            )
        self._over = True
        return rest or None
