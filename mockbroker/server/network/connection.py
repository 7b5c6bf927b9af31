"""One client's connection: requests in, one in flight, responses in their order.

As in Kafka's SocketServer, the next request is read after the response is sent. Pipelined requests
wait in the socket, and a parked JoinGroup delays the requests behind it. Unlike in Kafka, a parked
Fetch does not (see `watched_sockets`). Handlers run on the connection's task: there is one
thread, so a handler call is atomic, and a response that is ready costs no task switch.

A request that Kafka would not answer (unknown API, version out of range, malformed bytes) closes
the connection. One log line names the client, the API and the byte.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING

import trio

from mockbroker.core.limits import REQUEST_ELEMENTS_MAX, RESPONSE_BYTES_MAX
from mockbroker.handlers.api_versions import unsupported_version_response
from mockbroker.handlers.base import (
    NO_RESPONSE,
    ConnectionInfo,
    EncodedResponse,
    Outcome,
    Parked,
    RequestContext,
)
from mockbroker.handlers.rows import perform
from mockbroker.handlers.throttling import RequestUsage, record_and_throttle
from mockbroker.server.network.frame_reader import (
    REQUEST_BYTES_MAX,
    FrameReader,
    InvalidReceiveError,
    LimitExceededError,
)
from mockbroker.server.network.pending_exchange import PendingExchange
from mockbroker.server.network.routes import API_VERSIONS, Route, route_of
from mockbroker.server.network.throttling import connection_throttle_ms, sleep_ms
from mockbroker.server.network.transport import Buffer, Transport
from mockbroker_protocol import ApiKey
from mockbroker_protocol.codec import response_codec
from mockbroker_protocol.exceptions import (
    DecodeError,
    EncodeError,
    TooManyElementsError,
)
from mockbroker_protocol.headers import decode_request_header

if TYPE_CHECKING:
    from mockbroker.core.faults.engine import Fired
    from mockbroker.core.journal.journal import Journal
    from mockbroker.server.network.acceptor import AcceptedTransport
    from mockbroker.server.network.socket_server import SocketServer

log = logging.getLogger("mockbroker")

# The task yields after this many responses without a wait for the next request. Others wait for as
# many tiny requests of a client that floods; to yield costs a twentieth of four of them.
ANSWERS_BETWEEN_YIELDS = 4
# Each waiting connection runs so many due timers in a turn, until none is due.
LATE_TIMERS_PER_TURN = 20
_HEAD = struct.Struct(">ii").pack  # size and correlation id: response header v0
_FLEXIBLE_HEAD = struct.Struct(">iix").pack  # and no tagged fields: v1


def undecodable(what: str, error: DecodeError) -> InvalidReceiveError:
    """Why the connection closes whose request does not parse; `what` precedes the reason."""
    reason = f"{what}: {error}"
    if isinstance(error, TooManyElementsError):
        return LimitExceededError(REQUEST_ELEMENTS_MAX, reason)
    return InvalidReceiveError(reason)


class Connection(FrameReader):
    """Serves one client until either side closes. `run()` returns at the end of the connection."""

    __slots__ = (
        "_accepted",
        "_broker",
        "_closed_by_client",
        "_cluster",
        "_elements_max",
        "_info",
        "_journal",
        "_listener",
        "_mute_ms",
        "_now_ms",
        "_requests",
        "_response_bytes_max",
        "_routes",
        "_scope",
        "_timers",
        "_trace",
        "active_ms",
        "gate",
        "is_over",
        "parked",
    )

    def __init__(
        self,
        transport: Transport,
        server: SocketServer,
        listener: str,
        info: ConnectionInfo,
        accepted: AcceptedTransport,
    ) -> None:
        """`transport` uses `accepted`, which reports the next request during a waiting Fetch."""
        cluster = server.cluster
        request_bytes_max = cluster.config_int(REQUEST_BYTES_MAX)
        super().__init__(transport, server.stats, request_bytes_max, server.request_memory)
        self._elements_max = cluster.config_int(REQUEST_ELEMENTS_MAX)
        self._response_bytes_max = cluster.config_int(RESPONSE_BYTES_MAX)
        self._cluster = cluster
        self._broker = server.broker
        self._listener = info.listener = listener
        self._info = info
        self._accepted = accepted
        self._trace = server.trace
        self.gate = server.gate
        self._requests = server.requests
        self._closed_by_client = False  # while nothing was read
        self.is_over = False  # the last response is sent; nothing more is read
        self._journal = cluster.runtime.journal
        self._scope = trio.CancelScope()
        self._now_ms = cluster.runtime.now_ms
        self._timers = cluster.runtime.timers
        self.active_ms = cluster.runtime.now_ms()
        self.parked = False
        self._routes: dict[tuple[int, int], Route] = {}
        # The ms without reading after the present response, or before a refused connection is
        # closed.
        self._mute_ms = connection_throttle_ms(cluster, server.broker, info)

    @property
    def info(self) -> ConnectionInfo:
        """The client: its address, principal and software."""
        return self._info

    async def run(self) -> None:
        """Serve until the client or the server closes."""
        self._stats.connections_opened += 1
        if self._journal is not None:
            self._journal.opened(self.active_ms, self._broker.node_id, self._info)
        why = "closed by the broker"
        try:
            with self._scope:
                if self._mute_ms:
                    await self._stay_muted()
                else:
                    why = await self._serve_all()
        except (OSError, trio.ClosedResourceError) as error:
            if isinstance(error, OSError):
                why = f"the client went away: {error.strerror}"
            log.debug("%s went away: %s", self.peer, error)
        except InvalidReceiveError as error:
            why = str(error)
            self._stats.protocol_errors += 1
            if isinstance(error, LimitExceededError):
                self._stats.exceeded(error.limit)
            log.warning("%s: %s; connection closed", self.peer, error)
        except Exception as error:  # a defect of a handler must not end the cluster
            why = f"{type(error).__name__}: {error}"
            log.exception("%s: serving failed; connection closed", self.peer)
        finally:
            self._give_memory()
            self._transport.close()
            self._broker.connection_closed(self._info)
            self._stats.connections_closed += 1
            if self._closed_by_client:
                why = "closed by the client"
            if self._journal is not None:
                self._journal.closed(self._now_ms(), self._broker.node_id, self._info, why)

    def abort(self, *, reset: bool) -> None:
        """Close at once, with RST if `reset`; a parked request stays unanswered."""
        self._transport.close(reset=reset)
        self._scope.cancel()

    def when_closed_by_client(self, call: Callable[[], None]) -> Callable[[], None]:
        """Call `call` once if the client closes while nothing is read; returns the function that
        ends this.
        """

        def closed() -> None:
            self._closed_by_client = True
            call()

        self._accepted.expect_close(closed)
        return self._accepted.forget

    async def _serve_all(self) -> str:
        """Serve until the connection ends; returns the reason."""
        while True:
            frame = self._next_frame()
            if frame is None and (frame := await self._read_frame()) is None:
                return "closed by the client"
            if self.gate.shut or self._requests.shut:
                await self._wait_at_gates()
            if self._journal is not None and self._journal.readers.full:
                await self._wait_for_room(self._journal)
            now_ms = self.active_ms = self._now_ms()
            if self._timers.are_due(now_ms):
                await self._run_late_timers()
            answer = self.serve(frame)
            if self._taken:
                self._give_memory()
            rest = await self._wait_for(answer) if isinstance(answer, PendingExchange) else answer
            if rest is None:
                return "closed by the broker"
            if rest:
                await self._transport.send_rest(rest)
            if self._mute_ms:
                await self._stay_muted()
            self._answers += 1
            if self._answers >= ANSWERS_BETWEEN_YIELDS:
                self._answers = 0
                await trio.lowlevel.checkpoint()

    async def _wait_for(self, answer: PendingExchange) -> Sequence[Buffer] | None:
        self.parked = True
        force_complete = answer.force_complete
        if force_complete is None:
            rest = await answer.sent()
        else:
            self._accepted.expect(force_complete)
            try:
                rest = await answer.sent()
            finally:
                self._accepted.forget()
        self.parked = False
        self.active_ms = self._now_ms()
        return rest

    async def _wait_at_gates(self) -> None:
        while self.gate.shut or self._requests.shut:
            await self.gate.wait()
            await self._requests.wait()

    async def _wait_for_room(self, journal: Journal) -> None:
        """Delay the request until the journal's readers have made room."""
        from mockbroker.server.network.journal_backpressure import room_in

        self.parked = True
        await room_in(journal)
        self.parked = False
        self.active_ms = self._now_ms()

    async def _run_late_timers(self) -> None:
        """After a stall of the process, due timers run before requests that waited."""
        while self._timers.run_timers(self._now_ms(), LATE_TIMERS_PER_TURN) == LATE_TIMERS_PER_TURN:
            await trio.lowlevel.checkpoint()
        self.active_ms = self._now_ms()

    async def _stay_muted(self) -> None:
        wait_ms, self._mute_ms = self._mute_ms, 0
        self.parked = True
        await sleep_ms(self._cluster.runtime, wait_ms)
        self.parked = False
        self.active_ms = self._now_ms()

    @property
    def peer(self) -> str:
        """The broker and the client's address, for log lines."""
        return self._info.peer_at(self._broker.node_id)

    # -- one request -------------------------------------------------------------------------------

    def serve(self, frame: bytearray) -> Sequence[Buffer] | PendingExchange | None:
        """Serve one request at `active_ms`; returns the bytes that the socket did not accept, None
        to close the connection, or a pending exchange.

        `frame` is the request without its size. Raises InvalidReceiveError if Kafka would close.
        """
        throttling = self._cluster.quotas.throttling
        started_ns = perf_counter_ns() if self._trace is not None else 0
        view = memoryview(frame)
        try:
            header, position = decode_request_header(view)
        except DecodeError as error:
            raise InvalidReceiveError(f"request header: {error}") from None
        now_ms = self.active_ms
        context = RequestContext(
            self._cluster, self._broker, self._listener, header, self._info, now_ms
        )
        if throttling is not None:
            context.usage = RequestUsage(throttling, len(frame), perf_counter_ns)
        if self._journal is not None:
            context.seq = self._journal.request(now_ms, self._broker.node_id, self._info.id, frame)
        version = (header.api_key, header.api_version)
        route = self._routes.get(version) or self._route(version)
        if route is None:
            return self._serve_unsupported(context)
        try:
            # Trailing bytes are ignored: a 4.3 broker does so, and librdkafka's Metadata has some.
            request, _ = route.request.decode_untrusted(view, position, self._elements_max)
        except DecodeError as error:
            name = f"{route.api.key.name} v{header.api_version}"
            raise undecodable(name, error) from None
        faults = self._cluster.faults
        if faults is not None:
            fired = faults.evaluate(context, request)
            if fired is not None:
                if self._journal is not None:
                    self._journal.cause_seq = 0
                return self._faulted(fired, context, route, started_ns)
        response = self.handle(context, request, route)
        if isinstance(response, Parked):
            if response.force_complete and not response.done and self._has_bytes:
                response.force_complete()  # the next request has arrived
            if not response.done:
                if response.unanswered and self._trace is not None:
                    elapsed_ns = perf_counter_ns() - started_ns
                    self._trace(context, request, response, elapsed_ns)
                context.is_late = True
                if self._journal is not None:
                    self._journal.cause_seq = 0
                answer = partial(self._answer, context, request, route, started_ns)
                return PendingExchange(response, answer, self.gate)
            response = response.response
        return self._answer(context, request, route, started_ns, response)

    def handle(self, context: RequestContext, request: object, route: Route) -> object:
        """The handler's response, a parked one or an `Outcome`; an error response if it fails."""
        if context.usage is not None:
            context.usage.begin()
        try:
            return perform(route.api, context, request)
        except Exception as error:
            return context.failure(request, error)
        finally:
            if context.usage is not None:
                context.usage.end()

    def handle_late(self, context: RequestContext, request: object, route: Route) -> object:
        """As `handle`, for a request that rules have kept: others were handled meanwhile."""
        with context.as_cause():
            return self.handle(context, request, route)

    def _faulted(
        self, fired: Fired, context: RequestContext, route: Route, started_ns: int
    ) -> PendingExchange:
        """The request as an exchange that rules act on."""
        from mockbroker.server.network.connection_exchange import ConnectionExchange

        assert self._cluster.faults is not None
        return ConnectionExchange(self, self._cluster.faults, fired, context, route, started_ns)

    def _route(self, version: tuple[int, int]) -> Route | None:
        """The route of a request, None if the cluster does not serve it."""
        route = route_of(version) if self._cluster.serves(*version) else None
        if route is not None:
            self._routes[version] = route
        return route

    def _answer(
        self,
        context: RequestContext,
        request: object,
        route: Route,
        started_ns: int,
        response: object,
    ) -> Sequence[Buffer] | None:
        """Frame and send a response; returns the bytes that the socket did not accept, None to
        close.
        """
        parts = self.frame(context, request, route, started_ns, response)
        return self._transport.send(parts) if parts else parts

    def frame(
        self,
        context: RequestContext,
        request: object,
        route: Route,
        started_ns: int,
        response: object,
    ) -> Sequence[Buffer] | None:
        """Count, trace and journal a response; returns its frame in pieces, to be sent at once.

        Empty without a response, None to close the connection. `started_ns` is the arrival of the
        request by `perf_counter_ns`; 0 without a trace.
        """
        header = context.header
        requests = self._stats.requests
        requests[header.api_key] = requests.get(header.api_key, 0) + 1
        if context.usage is not None:
            response, self._mute_ms = record_and_throttle(context, response, context.usage)
        if self._trace is not None:
            self._trace(context, request, response, perf_counter_ns() - started_ns)
        if isinstance(response, Outcome):
            if self._journal is not None:
                self._journal_response(context, None, response.value)
            return () if response is NO_RESPONSE else None
        if type(response) is EncodedResponse:
            body = response.parts
        else:
            try:
                body = route.response.encode(response)
            except EncodeError as error:
                body = route.response.encode(context.failure(request, error))
        size = 0
        for part in body:
            size += len(part)
        if size > self._response_bytes_max:
            reason = f"{route.api.key.name} v{header.api_version}: a response of {size} bytes"
            raise LimitExceededError(RESPONSE_BYTES_MAX, reason)
        journal = self._journal
        if journal is not None:
            if context.is_late:
                self._journal_response(context, body, "")
            else:
                node_id, connection_id, seq = self._broker.node_id, self._info.id, context.seq
                journal.answer(context.now_ms, node_id, connection_id, seq, header, body, size)
        flexible = route.flexible_response_header
        size += 5 if flexible else 4
        self._stats.bytes_out += size + 4
        return ((_FLEXIBLE_HEAD if flexible else _HEAD)(size, header.correlation_id), *body)

    def journal_unanswered(self, context: RequestContext, outcome: str) -> None:
        """Journal a request that a rule leaves without a response."""
        if self._journal is not None:
            self._journal_response(context, None, outcome)

    def _journal_response(
        self,
        context: RequestContext,
        body: Sequence[Buffer] | None,
        outcome: str,
        version: int | None = None,
    ) -> None:
        """Journal the response to a request; `version` is the response's if it differs."""
        header, marks = context.header, context.marks
        assert self._journal is not None
        self._journal.response(
            self._now_ms() if context.is_late else context.now_ms,
            self._broker.node_id,
            context.connection.id,
            context.seq,
            header.api_key,
            header.api_version if version is None else version,
            header.correlation_id,
            body,
            outcome if marks is None else marks.outcome or outcome,
            () if marks is None else marks.rules,
        )

    def _serve_unsupported(self, context: RequestContext) -> Sequence[Buffer]:
        """Answer ApiVersions of an unknown version as v0 (KIP-511); any other request closes."""
        header = context.header
        if header.api_key != API_VERSIONS:
            raise InvalidReceiveError(
                f"API key {header.api_key} version {header.api_version} is not served"
            )
        body = response_codec(ApiKey.API_VERSIONS, 0).encode(
            unsupported_version_response(self._cluster)
        )
        if self._journal is not None:
            self._journal_response(context, body, "", 0)
        size = sum(map(len, body)) + 4
        self._stats.bytes_out += size + 4
        return self._transport.send((_HEAD(size, header.correlation_id), *body))

    # -- for exchanges that rules act on -----------------------------------------------------------

    async def send_all(self, parts: Sequence[Buffer]) -> None:
        """Send all bytes of all parts. Raises OSError if the connection broke."""
        rest = self._transport.send(parts)
        if rest:
            await self._transport.send_rest(rest)

    async def serve_next(self, within_ms: int) -> bool:
        """Serve the next request and send its response, if its first bytes come within `within_ms`.
        Returns whether the connection stays open. Raises as `serve`.
        """
        frame = await self._frame_within(within_ms)
        if frame is None:
            return True
        if self.gate.shut or self._requests.shut:
            await self._wait_at_gates()
        await self._run_late_timers()
        answer = self.serve(frame)
        self._give_memory()
        rest = await answer.sent() if isinstance(answer, PendingExchange) else answer
        if rest:
            await self._transport.send_rest(rest)
        return rest is not None

    async def _frame_within(self, within_ms: int) -> bytearray | None:
        frame = self._next_frame()
        if frame is not None:
            return frame
        gone: Exception | None = None
        async with trio.open_nursery() as nursery:

            async def give_up() -> None:
                if within_ms > 0:
                    await sleep_ms(self._cluster.runtime, within_ms)
                nursery.cancel_scope.cancel()

            nursery.start_soon(give_up)
            try:
                await self._receive()
            except (OSError, trio.ClosedResourceError) as error:
                gone = error  # the nursery would put it into a group
            nursery.cancel_scope.cancel()
        if gone is not None:
            raise gone
        return await self._read_frame() if self._has_bytes else None

    def mute(self, wait_ms: int) -> None:
        """Read no request for another `wait_ms` after the present response (KIP-219)."""
        self._mute_ms += wait_ms

    def reset(self) -> None:
        """Close at once, with RST."""
        self._transport.close(reset=True)
