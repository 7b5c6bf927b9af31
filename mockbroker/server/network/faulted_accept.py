"""Accepts a connection while rules are in force: they may refuse it, stall it, or give it an
expired certificate. Imported only then.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

from mockbroker.core.faults.effects.connections import (
    ExpireCredential,
    RefuseConnection,
    StallHandshake,
)
from mockbroker.core.faults.facts import Facts

if TYPE_CHECKING:
    from mockbroker.core.faults.engine import ActiveRule, FaultEngine
    from mockbroker.core.runtime import Runtime
    from mockbroker.core.timing.timers import Timer
    from mockbroker.handlers.base import ConnectionInfo
    from mockbroker.server.cluster_server import ClusterServer
    from mockbroker.server.network.acceptor import AcceptedTransport
    from mockbroker.server.network.connection import Connection
    from mockbroker.server.network.socket_server import ServedConnection, SocketServer


def accept_faulted(
    server: ClusterServer,
    engine: FaultEngine,
    host: SocketServer,
    listener: str,
    accepted: AcceptedTransport,
    info: ConnectionInfo,
    make: Callable[[], Connection],
) -> ServedConnection:
    """The connection from `make`, unless a rule refuses or stalls it."""
    decisions = engine.evaluate_accept(Facts.of_connection(host.broker, listener, info))
    stalled: StallHandshake | None = None
    rule: ActiveRule | None = None
    refused: RefuseConnection | None = None
    for decision in decisions:
        for effect in decision.effects.values():
            match effect:
                case RefuseConnection():
                    refused = effect
                case StallHandshake():
                    stalled, rule = effect, decision.rule
                case ExpireCredential() if info.security_protocol != "PLAINTEXT":
                    server.security.listeners[listener].show_expired_certificate()
        engine.act(decision.rule.actions, decision.rule.name)
    if refused is not None:
        return RefusedConnection(
            accepted, info, server.cluster.runtime.now_ms(), reset=refused.how == "rst"
        )
    connection = make()
    if stalled is not None and rule is not None:
        return StalledConnection(connection, server.cluster.runtime, stalled.for_, rule)
    return connection


class RefusedConnection:
    """A connection that is closed as soon as it is accepted."""

    parked = False

    def __init__(
        self, accepted: AcceptedTransport, info: ConnectionInfo, active_ms: int, *, reset: bool
    ) -> None:
        self.info = info
        self._accepted = accepted
        self._reset = reset
        self.active_ms = active_ms

    async def run(self) -> None:
        self._accepted.close(reset=self._reset)

    def abort(self, *, reset: bool) -> None:
        self._accepted.close(reset=reset)


class StalledConnection:
    """A connection that is not served for `for_ms`, or while the rule is in force. It ends if the
    client closes meanwhile.
    """

    parked = True  # the client waits, so the connection is not idle

    def __init__(
        self, connection: Connection, runtime: Runtime, for_ms: int | None, rule: ActiveRule
    ) -> None:
        self.info = connection.info
        self._rule = rule
        self._connection = connection
        self._runtime = runtime
        self._for_ms = for_ms
        self._scope = trio.CancelScope()
        self.active_ms = runtime.now_ms()

    async def run(self) -> None:
        over = trio.Event()
        withdraw = self._rule.when_removed(over.set)
        forget = self._connection.when_closed_by_client(lambda: self.abort(reset=False))
        timer: Timer | None = None
        if self._for_ms is not None:
            due_ms = self._runtime.now_ms() + self._for_ms
            timer = self._runtime.timers.call_at(due_ms, over.set)
        try:
            with self._scope:
                await over.wait()
        finally:
            withdraw()
            forget()
            if timer is not None:
                timer.cancel()
        await self._connection.run()  # ends at once if the connection was aborted meanwhile

    def abort(self, *, reset: bool) -> None:
        self._connection.abort(reset=reset)
        self._scope.cancel()
