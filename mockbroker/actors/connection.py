"""One client's connection: frames in, one request in flight, answers in order.

As in Kafka's SocketServer, the next request is not looked at before the last answer has been
written, so pipelined requests wait in the socket and a parked JoinGroup holds up what is behind
it. Unlike there, a parked Fetch does not (see `next_requests`). Handlers run synchronously on this
task: there is one thread, so a handler call is atomic, and an answer that is ready costs no task
switch.

Requests that Kafka would not answer (unknown API, version out of range, bytes that do not parse)
close the connection with one log line that names the peer, the API and the byte.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Sequence
from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING

import trio

from mockbroker.actors.broker_host import Gate
from mockbroker.actors.inbox import Inbox, ProtocolError
from mockbroker.actors.muting import left_alone, refused_ms
from mockbroker.actors.routes import API_VERSIONS, Route, route_of
from mockbroker.actors.stats import Stats
from mockbroker.actors.transport import Buffer, Transport
from mockbroker.actors.unanswered import Unanswered
from mockbroker.core.errors import ApiError
from mockbroker.handlers.api_versions import unsupported_version_response
from mockbroker.handlers.authorization import guarded
from mockbroker.handlers.base import (
    NO_RESPONSE,
    ConnectionInfo,
    EncodedResponse,
    Outcome,
    Parked,
    RequestContext,
)
from mockbroker.handlers.throttling import Bill, charge
from mockbroker_protocol import ApiKey
from mockbroker_protocol.codec import response_codec
from mockbroker_protocol.exceptions import DecodeError, EncodeError
from mockbroker_protocol.headers import decode_request_header

if TYPE_CHECKING:
    from mockbroker.actors.network import Link
    from mockbroker.core.broker import Broker
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.faults.engine import Asked
    from mockbroker.core.journal.journal import Journal

log = logging.getLogger("mockbroker")

# A client that never pauses must still let others run: yield after this many answers without a
# wait for the next request.
ANSWERS_BETWEEN_YIELDS = 16
_HEAD = struct.Struct(">ii").pack  # size and correlation id: response header v0
_FLEXIBLE_HEAD = struct.Struct(">iix").pack  # and no tagged fields: v1

# Called with (context, request, response or outcome, nanoseconds) after each answer, when tracing.
Trace = Callable[[RequestContext, object, object, int], None]


class Connection(Inbox):
    """Serves one client until either side closes. `run()` returns when the connection is over."""

    __slots__ = (
        "_broker",
        "_cluster",
        "_gate",
        "_info",
        "_journal",
        "_link",
        "_listener",
        "_mute_ms",
        "_now_ms",
        "_routes",
        "_scope",
        "_trace",
        "active_ms",
        "parked",
    )

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
    ) -> None:
        super().__init__(transport, stats, cluster.config("socket.request.max.bytes"))
        self._cluster = cluster
        self._broker = broker
        self._listener = listener
        self._info = info
        self._trace = trace
        self._gate = gate
        self._journal = cluster.journal
        self._scope = trio.CancelScope()
        self._now_ms = cluster.now_ms
        # When the client was last heard or answered, and whether it waits for us just now.
        self.active_ms = cluster.now_ms()
        self.parked = False
        self._routes: dict[tuple[int, int], Route] = {}
        # How long not to read after the answer that goes out now, or before a refused connection
        # is closed.
        self._mute_ms = refused_ms(cluster, broker, info)
        self._link: Link | None = None

    def notice_next_requests(self, link: Link) -> None:
        """Let a Fetch that waits be answered once the client has asked for something else."""
        self._link = link

    @property
    def info(self) -> ConnectionInfo:
        """Who is at the other end."""
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
                    await self._stay_mute()
                else:
                    why = await self._serve_all()
        except (OSError, trio.ClosedResourceError) as error:
            if isinstance(error, OSError):
                why = f"the client went away: {error.strerror}"
            log.debug("%s went away: %s", self._peer(), error)
        except ProtocolError as error:
            why = str(error)
            self._stats.protocol_errors += 1
            log.warning("%s: %s; connection closed", self._peer(), error)
        except Exception as error:  # a fault of ours must not end the cluster
            why = f"{type(error).__name__}: {error}"
            log.exception("%s: serving failed; connection closed", self._peer())
        finally:
            self._transport.close()
            self._info.closed = True
            self._stats.connections_closed += 1
            if self._journal is not None:
                self._journal.closed(self._now_ms(), self._broker.node_id, self._info, why)

    def abort(self, *, reset: bool) -> None:
        """Close at once, with RST when `reset`; a request that is parked stays unanswered."""
        self._transport.close(reset=reset)
        self._scope.cancel()

    async def _serve_all(self) -> str:
        """Serve until the connection is over; says who ended it."""
        while True:
            frame = self._next_frame()
            if frame is None and (frame := await self._read_frame()) is None:
                return "closed by the client"
            if self._gate.shut:
                await self._gate.wait()
            if self._journal is not None and self._journal.readers.full:
                await self._wait_for_room(self._journal)
            answer = self._serve(frame)
            rest = await self._wait_for(answer) if isinstance(answer, Unanswered) else answer
            if rest is None:
                return "closed by the broker"
            if rest:
                await self._transport.send_rest(rest)
            if self._mute_ms:
                await self._stay_mute()
            self._answers += 1
            if self._answers >= ANSWERS_BETWEEN_YIELDS:
                self._answers = 0
                await trio.lowlevel.checkpoint()

    async def _wait_for(self, answer: Unanswered) -> Sequence[Buffer] | None:
        self.parked = True
        link, hurry = self._link, answer.hurry
        if link is None or hurry is None:
            rest = await answer.sent()
        else:
            link.expect(hurry)
            try:
                rest = await answer.sent()
            finally:
                link.forget()
        self.parked = False
        self.active_ms = self._now_ms()
        return rest

    async def _wait_for_room(self, journal: Journal) -> None:
        """The request has to wait for those who read the journal."""
        from mockbroker.actors.journal_room import room_in

        self.parked = True
        await room_in(journal)
        self.parked = False
        self.active_ms = self._now_ms()

    async def _stay_mute(self) -> None:
        wait_ms, self._mute_ms = self._mute_ms, 0
        self.parked = True
        await left_alone(self._cluster, wait_ms)
        self.parked = False
        self.active_ms = self._now_ms()

    def _peer(self) -> str:
        return (
            f"broker {self._broker.node_id} client {self._info.client_host}:"
            f"{self._info.client_port}"
        )

    # -- one request -------------------------------------------------------------------------------

    def _serve(self, frame: bytearray) -> Sequence[Buffer] | Unanswered | None:
        """Answer one request: what the socket did not take of it, or None to close instead."""
        throttling = self._cluster.quotas.throttling
        started_ns = perf_counter_ns() if self._trace is not None else 0
        view = memoryview(frame)
        try:
            header, position = decode_request_header(view)
        except DecodeError as error:
            raise ProtocolError(f"request header: {error}") from None
        now_ms = self.active_ms = self._now_ms()
        context = RequestContext(
            self._cluster, self._broker, self._listener, header, self._info, now_ms
        )
        if throttling is not None:
            context.bill = Bill(throttling, len(frame))
        if self._journal is not None:
            context.seq = self._journal.request(now_ms, self._broker.node_id, self._info.id, frame)
        version = (header.api_key, header.api_version)
        route = self._routes.get(version) or self._route(version)
        if route is None:
            return self._serve_unsupported(context)
        try:
            # Bytes left over are ignored: a 4.3 broker does, and librdkafka's Metadata has some.
            request, _ = route.request.decode(view, position)
        except DecodeError as error:
            raise ProtocolError(f"{route.api.key.name} v{header.api_version}: {error}") from None
        faults = self._cluster.faults
        if faults is not None:
            asked = faults.ask(context.cluster, context, request)
            if asked is not None:
                return self._watched(asked, context, route, started_ns)
        response = self._handle(context, request, route)
        if isinstance(response, Parked):
            if response.hurry and not response.done and self._filled > self._start:
                response.hurry()  # the next request is here already
            if not response.done:
                context.is_late = True
                answer = partial(self._answer, context, request, route, started_ns)
                return Unanswered(response, answer, self._gate)
            response = response.response
        return self._answer(context, request, route, started_ns, response)

    def _handle(self, context: RequestContext, request: object, route: Route) -> object:
        """What the handler answers, or what is answered in its place when it cannot."""
        started_ns = 0 if context.bill is None else perf_counter_ns()
        try:
            if self._cluster.authorizer is None:
                return route.api.handle(context, request)
            return guarded(route.api, context, request)
        except Exception as error:
            return self._failed(context, request, route, error)
        finally:
            if context.bill is not None:
                context.bill.spent_ns = perf_counter_ns() - started_ns

    def _watched(
        self, asked: Asked, context: RequestContext, route: Route, started_ns: int
    ) -> Unanswered:
        """The request as one that rules have a say in."""
        from mockbroker.actors.watched import Watched

        assert self._cluster.faults is not None
        return Watched(self, self._cluster.faults, asked, context, route, started_ns)

    def _route(self, version: tuple[int, int]) -> Route | None:
        """The route of a request, or None where this cluster does not serve such a request."""
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
        """Count, trace and send an answer; what the socket did not take, or None to close."""
        header = context.header
        requests = self._stats.requests
        requests[header.api_key] = requests.get(header.api_key, 0) + 1
        if context.bill is not None:
            response, self._mute_ms = charge(context, response, context.bill)
        if self._trace is not None:
            self._trace(context, request, response, perf_counter_ns() - started_ns)
        if isinstance(response, Outcome):
            if self._journal is not None:
                self._note(context, None, response.value)
            return () if response is NO_RESPONSE else None
        if type(response) is EncodedResponse:
            body = response.parts
        else:
            try:
                body = route.response.encode(response)
            except EncodeError as error:
                body = route.response.encode(self._failed(context, request, route, error))
        size = 0
        for part in body:
            size += len(part)
        journal = self._journal
        if journal is not None:
            if context.is_late:
                self._note(context, body, "")
            else:
                node_id, connection_id, seq = self._broker.node_id, self._info.id, context.seq
                journal.answer(context.now_ms, node_id, connection_id, seq, header, body, size)
        return self._send(header.correlation_id, body, size, route.flexible_response_header)

    def note_unanswered(self, context: RequestContext, fate: str) -> None:
        """Write down that a rule has seen to it that a request is not answered."""
        if self._journal is not None:
            self._note(context, None, fate)

    def _note(
        self,
        context: RequestContext,
        body: Sequence[Buffer] | None,
        outcome: str,
        version: int | None = None,
    ) -> None:
        """Write down what became of a request; `version` is the answer's where it is another."""
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
            outcome if marks is None else marks.fate or outcome,
            () if marks is None else marks.rules,
        )

    def _failed(
        self, context: RequestContext, request: object, route: Route, error: Exception
    ) -> object:
        """What is answered when no handler could: Kafka's error, or UNKNOWN_SERVER_ERROR."""
        from mockbroker.handlers.error_responses import failure_response

        if not isinstance(error, ApiError):
            log.error("%s: handling %s failed", self._peer(), route.api.key.name, exc_info=error)
        return failure_response(route.api.key, context.api_version, request, error)

    def _serve_unsupported(self, context: RequestContext) -> Sequence[Buffer]:
        """ApiVersions of an unknown version is answered in v0's shape; anything else closes."""
        header = context.header
        if header.api_key != API_VERSIONS:
            raise ProtocolError(
                f"API key {header.api_key} version {header.api_version} is not served"
            )
        body = response_codec(ApiKey.API_VERSIONS, 0).encode(
            unsupported_version_response(self._cluster)
        )
        if self._journal is not None:
            self._note(context, body, "", 0)
        return self._send(header.correlation_id, body, sum(map(len, body)), flexible=False)

    def _send(
        self, correlation_id: int, body: Sequence[Buffer], size: int, flexible: bool
    ) -> Sequence[Buffer]:
        """Put size and header before a body of so many bytes and send; returns what the socket did
        not take.
        """
        size += 5 if flexible else 4
        self._stats.bytes_out += size + 4
        head = (_FLEXIBLE_HEAD if flexible else _HEAD)(size, correlation_id)
        return self._transport.send((head, *body))
