"""A cluster in a thread of its own."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import trio

from mockbroker.api.local import OwnRunTransport, ThreadTransport
from mockbroker.api.transport import ClusterError
from mockbroker.core.cluster import Cluster as CoreCluster
from mockbroker.server.clock.adjustable_clock import AdjustableClock
from mockbroker.server.cluster_server import ClusterServer, open_server
from mockbroker.server.config import ServerConfig
from mockbroker.server.network.socket_server import Trace

if TYPE_CHECKING:
    from mockbroker.admin import AdminServer
    from mockbroker.pipeline.spool.exporter import JournalExporter

T = TypeVar("T")

# The time after which a stopping cluster hangs.
STOP_TIMEOUT_S = 30.0


class ClusterThread:
    """A thread with a trio run that serves one cluster."""

    def __init__(self, config: ServerConfig, journal_dir: Path | None, trace: Trace | None) -> None:
        self._config = config
        self._journal_dir = journal_dir
        self._trace = trace
        self.journal_run = ""
        self._exporter: JournalExporter | None = None
        self._thread = threading.Thread(target=self._run, name="mockbroker", daemon=True)
        self._ready = threading.Event()
        self._error: BaseException | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._stop: trio.Event | None = None
        self._server: ClusterServer | None = None
        self._transport: ThreadTransport | None = None
        self._admin: AdminServer | None = None

    def start(self) -> ThreadTransport:
        """Start the thread and return once clients can connect."""
        self._thread.start()
        self._ready.wait()
        if self._error is not None:
            self._thread.join()
            raise self._error
        assert self._transport is not None
        return self._transport

    def stop(self) -> None:
        """Close every connection and port, and join the thread. Idempotent."""
        if self._admin is not None:
            self._admin.stop()
            self._admin = None
        token, stop = self._token, self._stop
        if token is None or stop is None:
            return
        if self._thread.is_alive():
            # It may have ended by itself; the join below reports why.
            with contextlib.suppress(trio.RunFinishedError):
                token.run_sync_soon(stop.set)
            self._thread.join(STOP_TIMEOUT_S)
            if self._thread.is_alive():
                raise RuntimeError(f"the cluster did not stop within {STOP_TIMEOUT_S:.0f} s")
        if self._exporter is not None:
            exporter, self._exporter = self._exporter, None
            exporter.close()
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    @property
    def server(self) -> ClusterServer:
        """The running server."""
        assert self._server is not None
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
        """Run `function(core cluster)` in the thread and return what it returns.

        Raises ClusterError when the thread has ended; if an error ended it, caused by that error.
        """
        assert self._token is not None
        try:
            return trio.from_thread.run_sync(function, self.server.cluster, trio_token=self._token)
        except (trio.RunFinishedError, trio.Cancelled):
            error = self._ended()
        raise error

    def _ended(self) -> ClusterError:
        """The error for a call that the thread's end has cut short."""
        self._thread.join(STOP_TIMEOUT_S)
        if self._error is None:
            return ClusterError("the cluster has stopped")
        died = ClusterError("the cluster's thread has died")
        died.__cause__ = self._error
        return died

    def _run(self) -> None:
        try:
            trio.run(self._main, clock=AdjustableClock())
        except BaseException as error:
            self._error = error
        finally:
            self._ready.set()

    async def _main(self) -> None:
        try:
            async with open_server(self._config, trace=self._trace) as server:
                self._server = server
                self._token = trio.lowlevel.current_trio_token()
                self._transport = ThreadTransport(OwnRunTransport(server), self._token, self._ended)
                self._stop = trio.Event()
                if self._journal_dir is not None:
                    self._export_journal(server, self._journal_dir)
                self._ready.set()
                await self._stop.wait()
        finally:
            if self._exporter is not None:
                self._exporter.stop()

    def _export_journal(self, server: ClusterServer, directory: Path) -> None:
        from mockbroker.pipeline.spool.exporter import JournalExporter

        self._exporter = JournalExporter(server.cluster, directory, "block")
        self.journal_run = self._exporter.run
