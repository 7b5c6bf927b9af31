"""The part of an exchange that the context of a served request has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mockbroker.core.brokers.broker import Broker
    from mockbroker.core.runtime import Runtime
    from mockbroker.handlers.base import ConnectionInfo, Marks, RequestContext
    from mockbroker_protocol.headers import RequestHeader


class ServedExchange:
    """The properties of `Exchange` that come from the request's context."""

    __slots__ = ()

    _context: RequestContext
    _request: Any

    @property
    def broker(self) -> Broker:
        return self._context.broker

    @property
    def listener(self) -> str:
        return self._context.listener

    @property
    def header(self) -> RequestHeader:
        return self._context.header

    @property
    def connection(self) -> ConnectionInfo:
        return self._context.connection

    @property
    def seq(self) -> int:
        return self._context.seq

    @property
    def request(self) -> Any:
        return self._request

    @property
    def arrived_ms(self) -> int:
        return self._context.now_ms

    @property
    def runtime(self) -> Runtime:
        return self._context.cluster.runtime

    def mark(self, marks: Marks) -> None:
        self._context.marks = marks
        self._context.is_late = True
