"""A cluster in a thread of its own, and the next one in the same thread.

Each cluster has a server, state, clock and journal of its own. From one to the next only the thread
and its trio run remain, and on request the port numbers. Clients and handles of the former one
cannot reach the present one: it has other ports, and a former handle raises ClusterError.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import trio

from mockbroker.api.local import OwnRunTransport, ThreadTransport
from mockbroker.api.transport import ClusterError
from mockbroker.core.cluster import Cluster as CoreCluster
from mockbroker.server.clock.adjustable_clock import AdjustableClock
from mockbroker.server.clock.cluster_clock import adjustable_clock
from mockbroker.server.cluster_server import ClusterServer, open_server
from mockbroker.server.config import ServerConfig
from mockbroker.server.network.fresh_ports import FreshPorts
from mockbroker.server.network.socket_server import Trace

if TYPE_CHECKING:
    from mockbroker.admin import AdminServer
    from mockbroker.pipeline.spool.exporter import JournalExporter

T = TypeVar("T")

# The time after which a stopping cluster counts as hanging.
STOP_TIMEOUT_S = 30.0


class Start(NamedTuple):
    """The start of a cluster."""

    config: ServerConfig
    journal_dir: Path | None = None
    trace: Trace | None = None


class ClusterThread:
    """A thread with a trio run that serves one cluster after another."""

    def __init__(self, start: Start) -> None:
        self._thread = threading.Thread(target=self._run, name="mockbroker", daemon=True)
        self._next: Start | None = start
        self._ports: list[int] = []
        self._opened = threading.Event()
        self._refusal: Exception | None = None  # why the next cluster could not start
        self._error: BaseException | None = None  # the error that ended the thread
        self._token: trio.lowlevel.TrioToken | None = None
        self._turn: trio.Event | None = None  # the present cluster ends
        self._server: ClusterServer | None = None
        self._transport: ThreadTransport | None = None
        self._exporter: JournalExporter | None = None
        self._admin: AdminServer | None = None
        self.journal_run = ""

    def start(self) -> ThreadTransport:
        """Start the thread and return once clients can connect.

        Raises ServerError or ConfigError for a wrong config; then there is no thread.
        """
        self._thread.start()
        try:
            return self._begun()
        except BaseException:
            self.stop()
            raise

    def renew(self, start: Start, *, same_ports: bool) -> ThreadTransport:
        """Close every connection, serve another cluster, and return once clients can connect to it.

        Its ports are new ones, unless `same_ports`. Raises ServerError or ConfigError for a wrong
        config; the thread then has no cluster until the next call.
        """
        if not same_ports:
            self._ports = []
        exporter = self._exporter
        self._opened.clear()
        self._end(start)
        try:
            return self._begun()
        finally:
            if exporter is not None:
                exporter.close()

    def stop(self) -> None:
        """Close every connection and port, and join the thread. Idempotent.

        Raises the error that ended the thread, once.
        """
        if self._thread.is_alive():
            self._end(None)
            self._thread.join(STOP_TIMEOUT_S)
            if self._thread.is_alive():
                raise RuntimeError(f"the cluster did not stop within {STOP_TIMEOUT_S:.0f} s")
        exporter, self._exporter = self._exporter, None
        if exporter is not None:
            exporter.close()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _begun(self) -> ThreadTransport:
        self._opened.wait()
        refusal, self._refusal = self._refusal, None
        if refusal is not None:
            raise refusal
        if self._transport is None:
            raise self._ended()
        return self._transport

    def _end(self, following: Start | None) -> None:
        """End the present cluster; another one follows, or the thread ends."""
        if self._admin is not None:
            self._admin.stop()
            self._admin = None
        if self._token is not None and self._turn is not None:
            self._next = following
            try:
                self._token.run_sync_soon(self._turn.set)
            except trio.RunFinishedError:
                self._opened.set()  # the thread has ended already; the caller reports why

    @property
    def has_ended(self) -> bool:
        """Whether the thread has stopped, or an error has ended it."""
        return not self._thread.is_alive()

    @property
    def error(self) -> BaseException | None:
        """The error that has ended the thread, if one has."""
        return self._error

    @property
    def is_used(self) -> bool:
        """Whether the present cluster had any request, also for its address."""
        return self._transport is None or self._transport.is_used

    @property
    def server(self) -> ClusterServer:
        """The running server. Raises ClusterError without one."""
        if self._server is None or self._transport is None:
            raise self._ended()
        self._transport.is_used = True
        return self._server

    @property
    def admin_url(self) -> str:
        """The URL of the admin API, which starts at the first use."""
        if self._admin is None:
            from mockbroker.admin import ServerTarget, start_admin

            view = self.call(lambda _: ServerTarget(self.server))
            self._admin = start_admin(view)
        return self._admin.url

    def call(self, function: Callable[[CoreCluster], T]) -> T:
        """Run `function(core cluster)` in the thread and return its result.

        Coordinators that load do so first. Raises ClusterError after the end of the thread; if an
        error ended it, caused by that error.
        """
        assert self._token is not None

        def there() -> T:
            cluster = self.server.cluster
            cluster.runtime.finish_loads()
            return function(cluster)

        try:
            return trio.from_thread.run_sync(there, trio_token=self._token)
        except (trio.RunFinishedError, trio.Cancelled):
            error = self._ended()
        raise error

    def _ended(self) -> ClusterError:
        """The error of a call that the end of the thread interrupted."""
        self._thread.join(STOP_TIMEOUT_S)
        if self._error is None:
            return ClusterError("the cluster has stopped")
        died = ClusterError("the cluster's thread has died")
        died.__cause__ = self._error
        return died

    # -- in the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            trio.run(self._main, clock=AdjustableClock())
        except BaseException as error:
            self._error = error
        finally:
            self._opened.set()

    async def _main(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        while (start := self._next) is not None:
            self._next, self._turn = None, trio.Event()
            adjustable_clock().set_rate(1.0)
            replaced = False
            try:
                async with contextlib.AsyncExitStack() as stack:
                    try:
                        await self._begin(start, stack)
                    except Exception as error:
                        self._refusal = error
                    self._opened.set()
                    await self._turn.wait()
                replaced = self._next is not None
            finally:
                self._finish(replaced=replaced)

    async def _begin(self, start: Start, stack: contextlib.AsyncExitStack) -> None:
        """Serve a cluster until the stack ends."""
        self._exporter = None
        network = FreshPorts(self._ports)
        server = await stack.enter_async_context(
            open_server(start.config, trace=start.trace, network=network)
        )
        if start.journal_dir is not None:
            from mockbroker.pipeline.spool.exporter import JournalExporter

            self._exporter = JournalExporter(server.cluster, start.journal_dir, "block")
            self.journal_run = self._exporter.run
        self._server = server
        token = trio.lowlevel.current_trio_token()
        self._transport = ThreadTransport(OwnRunTransport(server), token, self._ended)

    def _finish(self, *, replaced: bool) -> None:
        if self._exporter is not None:
            self._exporter.stop()
        if self._transport is not None:
            self._transport.end(replaced=replaced)
        self._server = self._transport = None
