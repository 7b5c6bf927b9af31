"""The admin thread: its socket, its trio run, its end.

The caller binds the socket, so a taken port is reported at once. Clients can connect before the
server has started, and wait for it. Slow imports take place in the thread.
"""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import trio

from mockbroker.admin.target import AdminTarget

if TYPE_CHECKING:
    from hypercorn.config import Config

    from mockbroker.pipeline.saved import SavedJournal

BACKLOG = 128

# Hypercorn's trio worker shields its sends, so a reader that stalls keeps `serve()` alive past its
# cancellation. The kernel ends such a connection after this long without progress.
STALLED_READER_TIMEOUT_MS = 5_000

# The time for requests in flight when the server stops.
GRACE_S = 0.2
# The time for which `stop` waits for the thread: more than a stalled reader may take.
STOP_TIMEOUT_S = STALLED_READER_TIMEOUT_MS / 1000 + 3

AppFactory = Callable[[AdminTarget, str | None], Any]


class AdminError(Exception):
    """The admin server could not start; the message says which address and why."""


class AdminServer:
    """An admin server: bound when it is made (`bind_admin`), running after `start`."""

    def __init__(self, sock: socket.socket, make_app: Callable[[], Any]) -> None:
        self.host, self.port = sock.getsockname()[:2]
        self._socket = sock
        self._make_app = make_app
        self._started = threading.Event()
        self._error: BaseException | None = None
        self._token: trio.lowlevel.TrioToken | None = None
        self._stop = trio.Event()
        self._thread = threading.Thread(target=self._run, name="mockbroker-admin", daemon=True)

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def start(self) -> None:
        """Start the thread; return when it answers. Raises AdminError if it cannot."""
        self._thread.start()
        self._started.wait()
        if self._error is not None:
            self._thread.join()
            raise AdminError(f"the admin server did not start: {self._error}") from self._error

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> bool:
        """Close the port and end the thread; False if it still runs after `timeout_s`. Idempotent.

        The thread is a daemon: the process ends even if a stalled reader delays it.
        """
        if self._thread.ident is None:  # never started
            self._socket.close()
            return True
        if self._token is not None and self._thread.is_alive():
            with suppress(trio.RunFinishedError):  # it may end by itself meanwhile
                self._token.run_sync_soon(self._stop.set)
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            trio.run(self._main)
        except BaseException as error:  # for `start`
            self._error = error
        finally:
            self._socket.close()
            self._started.set()

    async def _main(self) -> None:
        from hypercorn.trio import serve

        app = self._make_app()
        self._token = trio.lowlevel.current_trio_token()
        async with trio.open_nursery() as nursery:

            async def run(task_status: trio.TaskStatus[list[str]]) -> None:
                await serve(
                    app,
                    hypercorn_config(self._socket),
                    shutdown_trigger=self._stop.wait,
                    task_status=task_status,
                    mode="asgi",
                )

            await nursery.start(run)
            self._started.set()


def hypercorn_config(sock: socket.socket) -> Config:
    """Hypercorn's configuration for a listening socket."""
    from hypercorn.config import Config, Sockets

    class OwnSocketConfig(Config):
        def create_sockets(self) -> Sockets:
            return Sockets([], [sock], [])

    config = OwnSocketConfig()
    config.backlog = BACKLOG
    config.graceful_timeout = GRACE_S
    config.loglevel = "WARNING"
    config.include_server_header = False
    return config


def listen(host: str, port: int) -> socket.socket:
    """Bind and listen; port 0 takes a free one. Raises AdminError that names the address."""
    try:
        family, kind, proto, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind, proto)
    except OSError as error:
        raise AdminError(f"cannot listen for the admin API on {host}:{port}: {error}") from error
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted sockets inherit it (Linux; elsewhere the option does not exist).
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, STALLED_READER_TIMEOUT_MS)
        sock.bind(address)
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        why = "the port is in use" if error.errno == errno.EADDRINUSE else error.strerror
        raise AdminError(f"cannot listen for the admin API on {host}:{port}: {why}") from error
    return sock


def default_app(target: AdminTarget, secret: str | None) -> Any:
    from mockbroker.admin.app import build_app

    return build_app(target, secret)


def bind_admin(
    target: AdminTarget,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    secret: str | None = None,
    app_factory: AppFactory = default_app,
) -> AdminServer:
    """Bind the port of a cluster's admin server; 0 takes a free one. `start` starts it.

    With a `secret`, requests other than probes require it (`Authorization: Bearer SECRET`). Raises
    AdminError if the port cannot be bound.
    """
    return AdminServer(listen(host, port), lambda: app_factory(target, secret))


def serve_saved(journal: SavedJournal, host: str = "127.0.0.1", port: int = 0) -> AdminServer:
    """Serve the console of a saved journal, without a cluster; 0 takes a free port.

    Raises AdminError if the port cannot be bound.
    """

    def make_app() -> Any:
        from mockbroker.admin.app import build_saved_app

        return build_saved_app(journal)

    server = AdminServer(listen(host, port), make_app)
    server.start()
    return server


def start_admin(
    target: AdminTarget, host: str = "127.0.0.1", port: int = 0, **options: Any
) -> AdminServer:
    """Bind and start the admin server of a cluster, and return once it answers.

    It blocks during the imports of the thread (a quarter of a second), so a trio run calls it in a
    worker thread. The options and errors are those of `bind_admin`.
    """
    server = bind_admin(target, host, port, **options)
    server.start()
    return server
