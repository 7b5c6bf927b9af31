"""Forwards requests for the controller from other brokers.

If the controller is reachable without delay, the handler is called directly. If the link is slow,
or hops are observed, the request goes to the controller in an Envelope, and the response returns in
one. An envelope is sent again if it is lost, if its receiver is no longer the controller, or if the
connection breaks, until the client has waited for a minute.

Source: ForwardingManagerImpl, NodeToControllerChannelManagerImpl (KIP-590).
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from mockbroker.core.brokers.broker_life import PAUSED, RUNNING
from mockbroker.core.replication.network import Hop
from mockbroker.handlers.base import FORWARDING_TIMEOUT_MS, Parked, RequestContext
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.codec import request_codec, response_codec
from mockbroker_protocol.headers import (
    ResponseHeader,
    encode_request_header,
    encode_response_header,
)
from mockbroker_protocol.runtime import uvarint

if TYPE_CHECKING:
    from mockbroker.core.timing.timers import Timer
    from mockbroker_protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse

_RETRY_MS = 100  # of the channel to the controller


class Forwarded:
    """A request that is forwarded to the controller."""

    __slots__ = ("_broker_epoch", "_handle", "_retry", "_timer", "ctx", "key", "parked", "request")

    def __init__(self, ctx: RequestContext, request: Any, handle: Callable[[], object]) -> None:
        self.key = ApiKey(ctx.header.api_key)
        self.ctx = ctx
        self.request = request
        self._broker_epoch = ctx.broker.epoch
        self._handle = handle
        self.parked: Parked[Any] = Parked()
        runtime = ctx.cluster.runtime
        due_ms = runtime.now_ms() + FORWARDING_TIMEOUT_MS
        self._timer = runtime.timers.call_at(due_ms, self._time_out)
        self._retry: Timer | None = None
        self.send()

    def send(self) -> None:
        """Send the request, or wait until the broker has a session with the controller. It is lost
        with the broker's process.
        """
        cluster, broker = self.ctx.cluster, self.ctx.broker
        if self.parked.done:
            return
        if broker.epoch != self._broker_epoch or broker.state not in (RUNNING, PAUSED):
            self._cancel_timers()
        elif not broker.has_newest_image:
            broker.awaiting_controller[self.send] = None
        elif is_direct(self.ctx):
            self.carry_out(self._complete)
        else:
            self._retry_after(cluster.config_int("controller.socket.timeout.ms"))
            cluster.replication.network.send(EnvelopeHop(self, cluster.controller_id))

    def _retry_after(self, delay_ms: int) -> None:
        if self._retry is not None:
            self._retry.cancel()
        runtime = self.ctx.cluster.runtime
        self._retry = runtime.timers.call_at(runtime.now_ms() + delay_ms, self.send)

    def carry_out(self, answered: Callable[[Any], None]) -> None:
        """Call the handler; `answered` gets the response, now or later."""
        self.ctx.is_forwarded = True
        try:
            answer = self._handle()
        except Exception as error:
            answer = self.ctx.failure(self.request, error)
        if not isinstance(answer, Parked):
            answered(answer)
        elif answer.done:
            answered(answer.response)
        else:
            answer.on_complete = lambda: answered(answer.response)

    def answered(self, error: ErrorCode, response: Any) -> None:
        """Handle the response to the envelope. After NOT_CONTROLLER the envelope is sent again."""
        if error is ErrorCode.NOT_CONTROLLER:
            self._retry_after(_RETRY_MS)
        elif error is ErrorCode.NONE:
            self._complete(response)
        else:
            self._fail(ErrorCode.UNKNOWN_SERVER_ERROR)

    def disconnected(self) -> None:
        """The connection to the controller is broken; the next one carries the envelope again."""
        if not self.parked.done:
            self._retry_after(_RETRY_MS)

    def _time_out(self) -> None:
        self.ctx.broker.awaiting_controller.pop(self.send, None)
        self._fail(ErrorCode.REQUEST_TIMED_OUT)

    def _fail(self, error: ErrorCode) -> None:
        self._complete(self.ctx.refusal(self.request, error))

    def _cancel_timers(self) -> None:
        for timer in (self._timer, self._retry):
            if timer is not None:
                timer.cancel()

    def _complete(self, response: Any) -> None:
        self._cancel_timers()
        self.parked.complete(response)


def is_direct(ctx: RequestContext) -> bool:
    """Whether the controller is this broker, or reachable without delay."""
    node_id, controller_id = ctx.broker.node_id, ctx.cluster.controller_id
    return node_id == controller_id or ctx.cluster.replication.network.is_direct(
        node_id, controller_id, ApiKey.ENVELOPE
    )


class EnvelopeHop(Hop):
    """A request in its envelope. The answer is the envelope's error and the response."""

    __slots__ = ("_forwarded",)

    API = ApiKey.ENVELOPE

    def __init__(self, forwarded: Forwarded, controller_id: int) -> None:
        super().__init__(forwarded.ctx.broker.node_id, controller_id)
        self._forwarded = forwarded

    def handle_request(self) -> None:
        cluster = self._forwarded.ctx.cluster
        network = cluster.replication.network
        if cluster.controller_id != self.receiver:
            network.answer(self, self.error_answer(ErrorCode.NOT_CONTROLLER))
        elif not self._forwarded.parked.done:
            self._forwarded.carry_out(
                lambda response: network.answer(self, (ErrorCode.NONE, response))
            )

    def handle_answer(self, answer: tuple[ErrorCode, Any]) -> None:
        self._forwarded.answered(*answer)

    def disconnected(self) -> None:
        self._forwarded.disconnected()

    def error_answer(self, error: ErrorCode) -> tuple[ErrorCode, Any]:
        return error, None

    def request(self) -> EnvelopeRequest:
        from mockbroker_protocol.messages.envelope import EnvelopeRequest

        forwarded, ctx = self._forwarded, self._forwarded.ctx
        body = request_codec(forwarded.key, ctx.api_version).encode(forwarded.request)
        return EnvelopeRequest(
            request_data=encode_request_header(ctx.header) + b"".join(body),
            request_principal=_principal(ctx.connection.principal),
            client_host_address=_address(ctx.connection.client_host),
        )

    def response(self, answer: tuple[ErrorCode, Any]) -> EnvelopeResponse:
        from mockbroker_protocol.messages.envelope import EnvelopeResponse

        error, response = answer
        data = None if response is None else self._response_data(response)
        return EnvelopeResponse(response_data=data, error_code=int(error))

    def _response_data(self, response: Any) -> bytes:
        forwarded, header = self._forwarded, self._forwarded.ctx.header
        parts = getattr(response, "parts", None)
        if parts is None:
            parts = response_codec(forwarded.key, header.api_version).encode(response)
        head = ResponseHeader(correlation_id=header.correlation_id)
        return encode_response_header(head, forwarded.key, header.api_version) + b"".join(parts)


def _principal(principal: str) -> bytes:
    """A principal as DefaultPrincipalData, version 0, which is flexible."""
    kind, _, name = principal.partition(":")
    return b"\0\0" + _compact(kind) + _compact(name) + b"\0\0"


def _compact(text: str) -> bytes:
    data = text.encode()
    return uvarint(len(data) + 1) + data


def _address(host: str) -> bytes:
    try:
        return ip_address(host).packed
    except ValueError:  # a client in memory has a name
        return host.encode()
