"""How a connection is met that rules have a say in: refused, stalled, or shown an old certificate.

Only asked while there are rules; a plain connection never comes here.
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
    from mockbroker.actors.broker_host import BrokerHost, Served
    from mockbroker.actors.network import Link
    from mockbroker.actors.server import ClusterServer
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.faults.engine import ActiveRule, FaultEngine
    from mockbroker.handlers.base import ConnectionInfo


def welcome(
    server: ClusterServer,
    engine: FaultEngine,
    host: BrokerHost,
    listener: str,
    link: Link,
    info: ConnectionInfo,
    make: Callable[[], Served],
) -> Served:
    """The connection that `make` makes, or what the rules put in its place."""
    decisions = engine.ask_at_accept(Facts.of_connection(host.broker, listener, info))
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
        return Refused(link, info, server.cluster.now_ms(), reset=refused.how == "rst")
    connection = make()
    if stalled is not None and rule is not None:
        return Stalled(connection, server.cluster, stalled.for_, rule)
    return connection


class Refused:
    """A connection that is over as soon as it is there."""

    parked = False

    def __init__(self, link: Link, info: ConnectionInfo, active_ms: int, *, reset: bool) -> None:
        self.info = info
        self._link = link
        self._reset = reset
        self.active_ms = active_ms

    async def run(self) -> None:
        self._link.close(reset=self._reset)

    def abort(self, *, reset: bool) -> None:
        self._link.close(reset=reset)


class Stalled:
    """A connection on which nothing is said for a time, or for as long as the rule is there."""

    parked = True  # it waits for us, so it is not idle

    def __init__(
        self, connection: Served, cluster: Cluster, for_ms: int | None, rule: ActiveRule
    ) -> None:
        self.info = connection.info
        self._rule = rule
        self._connection = connection
        self._cluster = cluster
        self._for_ms = for_ms
        self._scope = trio.CancelScope()
        self.active_ms = cluster.now_ms()

    async def run(self) -> None:
        with self._scope:
            over = trio.Event()
            self._rule.when_removed(over.set)
            if self._for_ms is not None:
                due_ms = self._cluster.now_ms() + self._for_ms
                self._cluster.timers.call_at(due_ms, over.set)
            await over.wait()
        await self._connection.run()  # which is over at once if it was aborted meanwhile

    def abort(self, *, reset: bool) -> None:
        self._connection.abort(reset=reset)
        self._scope.cancel()
