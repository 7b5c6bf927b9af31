"""One client's connection: frames in, one request in flight, answers in order.

As in Kafka's SocketServer, the next request is not looked at before the last answer has been
written, so pipelined requests wait in the socket and a parked Fetch or JoinGroup holds up what is
behind it. Handlers run synchronously on this task: there is one thread, so a handler call is
atomic, and an answer that is ready costs no task switch.

Requests that Kafka would not answer (unknown API, version out of range, bytes that do not parse)
close the connection with one log line that names the peer, the API and the byte.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import outcome
import trio

from mockbroker.actors.stats import Stats
from mockbroker.actors.transport import Buffer, Transport
from mockbroker.handlers.api_versions import unsupported_version_response
from mockbroker.handlers.base import (
    APIS,
    CLOSE_CONNECTION,
    NO_RESPONSE,
    Api,
    ConnectionInfo,
    EncodedResponse,
    Parked,
    RequestContext,
)
from mockbroker_protocol import ApiKey
from mockbroker_protocol.codec import Codec, request_codec, response_codec
from mockbroker_protocol.exceptions import DecodeError
from mockbroker_protocol.headers import RequestHeader, decode_request_header

if TYPE_CHECKING:
    from mockbroker.core.broker import Broker
    from mockbroker.core.cluster import Cluster

log = logging.getLogger("mockbroker")

# What one read may bring of small frames. A larger frame is read into a buffer of its own size, so
# this only costs memory: it is what an idle connection holds.
INBOX_BYTES = 16 * 1024
# A client that never pauses must still let others run: yield after this many answers without a
# wait for the next request.
ANSWERS_BETWEEN_YIELDS = 16
API_VERSIONS = int(ApiKey.API_VERSIONS)

_HEAD = struct.Struct(">ii").pack  # size and correlation id: response header v0
_FLEXIBLE_HEAD = struct.Struct(">iix").pack  # and no tagged fields: v1

# Called with (context, request, response or outcome, nanoseconds) after each answer, when tracing.
Trace = Callable[[RequestContext, object, object, int], None]


class ProtocolError(Exception):
    """The client broke the protocol; Kafka closes such a connection without an answer."""


class _Route:
    """A (handler, request codec, response codec) of one API version, resolved once per process."""

    __slots__ = ("api", "flexible_response_header", "request", "response")

    def __init__(self, api: Api, version: int) -> None:
        self.api = api
        self.request: Codec = request_codec(api.key, version)
        self.response: Codec = response_codec(api.key, version)
        # ApiVersions answers with header v0 always, so that any client can read the answer
        # (KIP-511).
        self.flexible_response_header = self.response.flexible and api.key != API_VERSIONS


_ROUTES: dict[tuple[int, int], _Route] = {}


def _route(api_key: int, version: int) -> _Route | None:
    """The route of a request, or None where no such API or version is served."""
    api = APIS.get(api_key)
    if api is None or not api.min_version <= version <= api.max_version:
        return None
    route = _ROUTES[api_key, version] = _Route(api, version)
    return route


class Connection:
    """Serves one client until either side closes. `run()` returns when the connection is over."""

    __slots__ = (
        "_answers",
        "_broker",
        "_cluster",
        "_filled",
        "_inbox",
        "_info",
        "_listener",
        "_now_ms",
        "_request_bytes_max",
        "_start",
        "_stats",
        "_trace",
        "_transport",
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
    ) -> None:
        self._transport = transport
        self._cluster = cluster
        self._broker = broker
        self._listener = listener
        self._info = info
        self._stats = stats
        self._trace = trace
        self._now_ms = cluster.now_ms
        self._request_bytes_max: int = cluster.config("socket.request.max.bytes")
        self._inbox = memoryview(bytearray(INBOX_BYTES))
        self._start = 0  # the inbox holds bytes [start, filled)
        self._filled = 0
        self._answers = 0

    async def run(self) -> None:
        """Serve until the client or the server closes."""
        try:
            while (frame := await self._read_frame()) is not None:
                if not await self._serve(frame):
                    break
        except OSError as error:
            log.debug("%s went away: %s", self._peer(), error)
        except ProtocolError as error:
            self._stats.protocol_errors += 1
            log.warning("%s: %s; connection closed", self._peer(), error)
        finally:
            self._transport.close()

    def _peer(self) -> str:
        return (
            f"broker {self._broker.node_id} client {self._info.client_host}:"
            f"{self._info.client_port}"
        )

    # -- frames in ---------------------------------------------------------------------------------

    async def _read_frame(self) -> bytearray | None:
        """The next frame without its size, in a buffer of exactly its size; None at end of
        stream.
        """
        inbox = self._inbox
        while self._filled - self._start < 4:
            if self._start:
                self._compact()
            received = await self._transport.receive_into(inbox[self._filled :])
            self._answers = 0
            if received == 0:
                if self._filled:
                    raise ProtocolError("stream ended inside a frame's size")
                return None
            self._filled += received
        start = self._start
        size = int.from_bytes(inbox[start : start + 4], "big", signed=True)
        if not 0 <= size <= self._request_bytes_max:
            raise ProtocolError(
                f"frame size {size} at byte 0 is outside 0..{self._request_bytes_max}"
            )
        start += 4
        end = start + size
        self._stats.bytes_in += size + 4
        if end <= self._filled:
            frame = bytearray(inbox[start:end])
            if end == self._filled:
                self._start = self._filled = 0
            else:
                self._start = end
            return frame
        return await self._read_large(start, size)

    def _compact(self) -> None:
        rest = bytes(self._inbox[self._start : self._filled])
        self._inbox[: len(rest)] = rest
        self._start, self._filled = 0, len(rest)

    async def _read_large(self, start: int, size: int) -> bytearray:
        """The rest of a frame goes straight into the buffer it will be kept in."""
        have = self._filled - start
        frame = bytearray(size)
        view = memoryview(frame)
        view[:have] = self._inbox[start : self._filled]
        self._start = self._filled = 0
        while have < size:
            received = await self._transport.receive_into(view[have:], expect_data=True)
            if received == 0:
                raise ProtocolError(f"stream ended after {have} of {size} bytes of a frame")
            have += received
        view.release()
        return frame

    # -- one request -------------------------------------------------------------------------------

    async def _serve(self, frame: bytearray) -> bool:
        """Answer one request; False closes the connection."""
        started_ns = perf_counter_ns() if self._trace is not None else 0
        view = memoryview(frame)
        try:
            header, position = decode_request_header(view)
        except DecodeError as error:
            raise ProtocolError(f"request header: {error}") from None
        route = _ROUTES.get((header.api_key, header.api_version)) or _route(
            header.api_key, header.api_version
        )
        context = RequestContext(
            self._cluster, self._broker, self._listener, header, self._info, self._now_ms()
        )
        if route is None or not self._cluster.serves(header.api_key, header.api_version):
            return await self._serve_unsupported(header)
        try:
            # Bytes left over are ignored: a 4.3 broker does, and librdkafka's Metadata has some.
            request, _ = route.request.decode(view, position)
        except DecodeError as error:
            raise ProtocolError(f"{route.api.key.name} v{header.api_version}: {error}") from None
        try:
            response = route.api.handle(context, request)
        except Exception:
            log.exception("%s: handling %s failed", self._peer(), route.api.key.name)
            return False
        if type(response) is Parked:
            if not response.done:
                rest = await self._wait_and_answer(response, context, request, route, started_ns)
                return await self._finish(rest)
            response = response.response
        return await self._finish(self._answer(context, request, response, route, started_ns))

    def _answer(
        self,
        context: RequestContext,
        request: object,
        response: object,
        route: _Route,
        started_ns: int,
    ) -> Sequence[Buffer] | None:
        """Count, trace and send an answer; what the socket did not take, or None to close."""
        header = context.header
        requests = self._stats.requests
        requests[header.api_key] = requests.get(header.api_key, 0) + 1
        if self._trace is not None:
            self._trace(context, request, response, perf_counter_ns() - started_ns)
        if response is NO_RESPONSE:
            return ()
        if response is CLOSE_CONNECTION:
            return None
        if type(response) is EncodedResponse:
            body = response.parts
        else:
            body = route.response.encode(response)
        return self._send(header.correlation_id, body, route.flexible_response_header)

    async def _wait_and_answer(
        self,
        parked: Parked[Any],
        context: RequestContext,
        request: object,
        route: _Route,
        started_ns: int,
    ) -> Sequence[Buffer] | None:
        """Sleep until the reply is there and has been sent; returns what `_answer` does.

        It is sent by whoever completes it, before this task runs again: a consumer that waits gets
        its records while their Produce is still being handled, one turn of the event loop earlier.
        What goes wrong then belongs to this connection, so it is raised here.
        """
        task = trio.lowlevel.current_task()

        def answer() -> None:
            parked.on_complete = None
            trio.lowlevel.reschedule(
                task,
                outcome.capture(self._answer, context, request, parked.response, route, started_ns),
            )

        def abort(_raise_cancel: object) -> trio.lowlevel.Abort:
            parked.on_complete = None
            return trio.lowlevel.Abort.SUCCEEDED

        parked.on_complete = answer
        rest: Sequence[Buffer] | None = await trio.lowlevel.wait_task_rescheduled(abort)
        return rest

    async def _finish(self, rest: Sequence[Buffer] | None) -> bool:
        """Send what an answer left over; False if the connection is to be closed instead."""
        if rest is None:
            return False
        if rest:
            await self._transport.send_rest(rest)
        self._answers += 1
        if self._answers >= ANSWERS_BETWEEN_YIELDS:
            self._answers = 0
            await trio.lowlevel.checkpoint()
        return True

    async def _serve_unsupported(self, header: RequestHeader) -> bool:
        """ApiVersions of an unknown version is answered in v0's shape; anything else closes."""
        if header.api_key != API_VERSIONS:
            raise ProtocolError(
                f"API key {header.api_key} version {header.api_version} is not served"
            )
        body = response_codec(ApiKey.API_VERSIONS, 0).encode(
            unsupported_version_response(self._cluster)
        )
        return await self._finish(self._send(header.correlation_id, body, flexible=False))

    def _send(
        self, correlation_id: int, body: Sequence[Buffer], flexible: bool
    ) -> Sequence[Buffer]:
        """Put size and header before the body and send; returns what the socket did not take."""
        size = 5 if flexible else 4
        for part in body:
            size += len(part)
        self._stats.bytes_out += size + 4
        head = (_FLEXIBLE_HEAD if flexible else _HEAD)(size, correlation_id)
        return self._transport.send((head, *body))
