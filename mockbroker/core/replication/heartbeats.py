"""Sessions of brokers with the controller, by their heartbeats.

A broker sends a heartbeat every `broker.heartbeat.interval.ms`, and repeats it after half a session
without a response. The controller fences a broker without a heartbeat for
`broker.session.timeout.ms`, and unfences it with its next heartbeat.

Heartbeats are sent only where an interceptor of the network wants them. Any other broker keeps its
session while it runs and reaches the controller (see `controller`).

Source: BrokerLifecycleManager, BrokerHeartbeatManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Protocol

from mockbroker.core.replication.network import Hop
from mockbroker_protocol import ApiKey, ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.brokers.broker import Broker
    from mockbroker.core.services import Services
    from mockbroker.core.timing.timers import Timer
    from mockbroker_protocol.messages.broker_heartbeat import (
        BrokerHeartbeatRequest,
        BrokerHeartbeatResponse,
    )

_API = ApiKey.BROKER_HEARTBEAT


class HeartbeatHop(Hop):
    """One heartbeat; the response is an error code."""

    __slots__ = ("_heartbeats",)

    API = _API

    def __init__(self, heartbeats: Heartbeats, node_id: int, controller_id: int) -> None:
        super().__init__(node_id, controller_id)
        self._heartbeats = heartbeats

    def handle_request(self) -> None:
        self._heartbeats.handle_request(self)

    def handle_answer(self, answer: ErrorCode) -> None:
        self._heartbeats.handle_answer(self.sender, answer)

    def request(self) -> BrokerHeartbeatRequest:
        from mockbroker_protocol.messages.broker_heartbeat import BrokerHeartbeatRequest

        broker = self._heartbeats.processes[self.sender]
        return BrokerHeartbeatRequest(
            broker_id=self.sender,
            broker_epoch=broker.epoch,
            current_metadata_offset=broker.image.epoch,
            want_shut_down=broker.shutting_down,
            cordoned_log_dirs=[],  # null only from a broker that has not recovered yet
        )

    def response(self, answer: ErrorCode) -> BrokerHeartbeatResponse:
        from mockbroker_protocol.messages.broker_heartbeat import BrokerHeartbeatResponse

        if answer is not ErrorCode.NONE:
            return BrokerHeartbeatResponse(error_code=int(answer))
        broker = self._heartbeats.brokers.get(self.sender)
        fenced = broker is None or broker.fenced
        return BrokerHeartbeatResponse(is_caught_up=True, is_fenced=fenced)


class _Session:
    """A broker that sends heartbeats, and its timers."""

    __slots__ = ("expiry", "next_heartbeat", "node_id")

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.next_heartbeat: Timer | None = None  # the next heartbeat
        self.expiry: Timer | None = None  # expires the session, if no heartbeat arrives

    def cancel(self) -> None:
        for timer in (self.next_heartbeat, self.expiry):
            if timer is not None:
                timer.cancel()


class BrokerSessions(Protocol):
    """The controller's handling of sessions."""

    def heartbeat_received(self, broker: Broker) -> None:
        """Handle a heartbeat, or the end of heartbeats of a broker that reaches the controller."""

    def expire(self, broker: Broker) -> None:
        """Fence a broker that has sent no heartbeat for the session timeout."""


class Heartbeats:
    """The heartbeats of one cluster's brokers."""

    __slots__ = (
        "_configs",
        "_controller",
        "_metadata",
        "_network",
        "_runtime",
        "_sessions",
        "brokers",
        "processes",
    )

    def __init__(
        self,
        services: Services,
        processes: Mapping[int, Broker],
        brokers: Mapping[int, Broker],
        controller: BrokerSessions,
    ) -> None:
        self._runtime = services.runtime
        self._configs = services.configs
        self._metadata = services.metadata
        self._network = services.network
        self._controller = controller
        self.processes = processes
        self.brokers = brokers
        self._sessions: dict[int, _Session] = {}

    def reconcile(self) -> None:
        """Begin or end heartbeats, after a change of brokers, the controller or the interceptor."""
        interceptor = self._network.interceptor
        if interceptor is None and not self._sessions:
            return
        controller_id = self._metadata.image.controller_id
        processes = self.processes
        for node_id in list(self._sessions):
            if node_id not in processes:
                self._sessions.pop(node_id).cancel()
        for node_id, broker in processes.items():
            seen = interceptor is not None and interceptor.intercepts(_API, node_id, controller_id)
            session = self._sessions.get(node_id)
            if seen and session is None:
                session = self._sessions[node_id] = _Session(node_id)
                self._renew(session)
                self._send_heartbeat(session)
            elif not seen and session is not None:
                self._sessions.pop(node_id).cancel()
                if self._reaches_controller(broker):
                    self._controller.heartbeat_received(broker)

    def _reaches_controller(self, broker: Broker) -> bool:
        """Whether a broker runs and reaches the controller."""
        running = self._metadata.is_running(broker.node_id)
        return running and broker.has_newest_image

    # -- brokers -----------------------------------------------------------------------------------

    def _send_heartbeat(self, session: _Session) -> None:
        """Send a heartbeat, if the broker can, and schedule its repetition."""
        retry_ms = self._configs.get_int("broker.session.timeout.ms") // 2
        self._schedule_heartbeat(session, max(retry_ms, 1))
        controller_id = self._metadata.image.controller_id
        if (
            self._reaches_controller(self.processes[session.node_id])
            and controller_id in self.brokers
        ):
            hop = HeartbeatHop(self, session.node_id, controller_id)
            self._network.send(hop)

    def _schedule_heartbeat(self, session: _Session, delay_ms: int) -> None:
        if session.next_heartbeat is not None:
            session.next_heartbeat.cancel()
        runtime = self._runtime
        session.next_heartbeat = runtime.timers.call_at(
            runtime.now_ms() + delay_ms, lambda: self._send_heartbeat(session)
        )

    def handle_answer(self, node_id: int, error: ErrorCode) -> None:
        """Handle the controller's response. An error counts as no response."""
        session = self._sessions.get(node_id)
        if session is not None and error is ErrorCode.NONE:
            interval_ms = self._configs.get_int("broker.heartbeat.interval.ms")
            self._schedule_heartbeat(session, max(interval_ms, 1))

    # -- the controller ----------------------------------------------------------------------------

    def handle_request(self, hop: HeartbeatHop) -> None:
        """Handle a heartbeat on the broker that was the controller when it was sent."""
        session, broker = self._sessions.get(hop.sender), self.brokers.get(hop.sender)
        if self._metadata.image.controller_id != hop.receiver:
            error = ErrorCode.NOT_CONTROLLER
        elif broker is None:
            error = ErrorCode.BROKER_ID_NOT_REGISTERED
        else:
            error = ErrorCode.NONE
            if session is not None:
                self._renew(session)
            if self._reaches_controller(broker):
                self._controller.heartbeat_received(broker)
        self._network.answer(hop, error)

    def _renew(self, session: _Session) -> None:
        if session.expiry is not None:
            session.expiry.cancel()
        runtime = self._runtime
        due_ms = runtime.now_ms() + self._configs.get_int("broker.session.timeout.ms")
        session.expiry = runtime.timers.call_at(due_ms, partial(self._expire, session))

    def _expire(self, session: _Session) -> None:
        """Expire a session without a heartbeat."""
        broker = self.brokers.get(session.node_id)
        if broker is not None and self._reaches_controller(broker):
            self._controller.expire(broker)
