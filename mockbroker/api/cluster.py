"""`Cluster`: in a thread, in the caller's trio run, or in another process."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AsyncExitStack
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from mockbroker.api.aio.cluster import AsyncCluster
from mockbroker.api.blocking.cluster import BlockingCluster
from mockbroker.api.options import ClusterOptions, server_config
from mockbroker.api.transport import AwaitedTransport, ClusterError
from mockbroker.core.type_checks import check_type
from mockbroker.server.config import ServerConfig
from mockbroker.server.network.socket_server import Trace

if TYPE_CHECKING:
    from mockbroker.api.thread import ClusterThread
    from mockbroker.core.cluster import Cluster as CoreCluster
    from mockbroker.core.snapshot.restore import Producers
    from mockbroker.server.cluster_server import ClusterServer
    from mockbroker.server.security.certificates import Authority

T = TypeVar("T")


class NotInThisProcessError(RuntimeError):
    """A method that needs the cluster in this process, on a handle on another one."""


class Cluster(BlockingCluster):
    """A whole Kafka cluster for tests.

        with Cluster(brokers=3, topics={"orders": 4}) as kafka: ...        # in a thread
        async with Cluster(brokers=3) as kafka: ...                        # in this trio run
        kafka = Cluster.connect("http://127.0.0.1:9191")                   # in another process

    In a trio run the cluster is an `AsyncCluster`, whose methods are awaited. `aio` is the same
    for the other two.

    Takes `brokers`, `node_ids`, `racks`, `topics` ({name: partitions} or `TopicSpec`s), `configs`
    (broker configs by their Kafka names), `listeners`, `kafka_version`, `seed` and `trace`. With
    `strict` the cluster does as Kafka does where it differs on purpose (see the reference page
    "Differences"). Every broker has a free port. Instead of `listeners`, a `security_protocol`
    (SSL, SASL_PLAINTEXT, SASL_SSL) makes a secured one; `users` ({name: password}) authenticate by
    PLAIN and SCRAM, and `allow_unsigned_tokens` accepts unsigned OAUTHBEARER tokens.
    `journal_bytes` limits the journal; 0 means none. Clients wait for its readers, unless
    `journal_overflow` is "drop". With `journal_hops` it also has the requests between brokers. With
    a `journal_dir` the journal becomes tables there, complete once the cluster has stopped;
    `journal_run` names them. With a `data_dir` the cluster is stored in that directory, and
    continues from its content. An option of a wrong type is a `TypeError` at once; `start()` raises
    `ServerError` or `ConfigError` for wrong values.
    """

    _url = ""  # of another process

    def __init__(
        self,
        *,
        journal_dir: str | PathLike[str] | None = None,
        trace: Trace | None = None,
        **options: Unpack[ClusterOptions],
    ) -> None:
        self._options: ClusterOptions = options
        self._config: ServerConfig | None = server_config(**options)
        self._trace = trace
        self._journal_dir = _directory(journal_dir)
        self._thread: ClusterThread | None = None
        self._in_this_run: AsyncExitStack | None = None

    @classmethod
    def connect(cls, url: str, *, token: str | None = None) -> Self:
        """A handle on a running process, by the URL of its admin API, http://HOST:PORT.

        Raises ValueError for another URL, ClusterError if no admin API answers there or the `token`
        is wrong.
        """
        from mockbroker.api.remote import HttpTransport

        made = cls.__new__(cls)
        made._config = made._thread = made._in_this_run = None
        made._transport = HttpTransport(url, token)
        made._url = url
        made.brokers()
        return made

    def __repr__(self) -> str:
        if self._config is None:
            return f"<cluster at {self._url}>"
        if self._thread is None:
            return "<cluster, not started>"
        return f"<cluster at {self.bootstrap_servers}>"

    # -- life --------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start the thread and return once clients can connect. No effect on a handle on another
        process.
        """
        from mockbroker.api.thread import ClusterThread, Start

        if self._config is None:
            return self
        if self._thread is not None:
            raise RuntimeError("this cluster was started already")
        self._thread = ClusterThread(Start(self._config, self._journal_dir, self._trace))
        self._transport = self._thread.start()
        return self

    def renew(
        self,
        *,
        same_ports: bool = False,
        journal_dir: str | PathLike[str] | None = None,
        trace: Trace | None = None,
        **options: Unpack[ClusterOptions],
    ) -> None:
        """Replace the cluster in its thread by a new one, much faster than `stop` and `start`.

        Nothing remains: topics, groups, transactions, rules, journal, clock and ids are those of a
        new cluster, and connections are closed. It has ports that no cluster of this process had
        lately, so clients that were left open cannot reach it; with `same_ports` they can. Former
        handles (`kafka.topic(…)`) raise ClusterError. Options override those of the start until the
        next `renew`. Raises ServerError or ConfigError for wrong ones, and NotInThisProcessError on
        a handle on another process.
        """
        from mockbroker.api.thread import ClusterThread, Start

        thread = self._here
        merged: ClusterOptions = {**self._options, **options}
        self._config = server_config(**merged)
        directory = _directory(journal_dir) or self._journal_dir
        start = Start(self._config, directory, trace or self._trace)
        if not thread.has_ended:
            try:
                self._transport = thread.renew(start, same_ports=same_ports)
            except ClusterError:
                if not thread.has_ended:
                    raise
            else:
                return
        self._thread = ClusterThread(start)
        self._transport = self._thread.start()

    @property
    def is_used(self) -> bool:
        """Whether it had any request, also for its address, since its start or `renew`."""
        return self._here.is_used

    @property
    def error(self) -> BaseException | None:
        """The error that has ended the cluster's thread; None while it serves."""
        return self._here.error

    def stop(self) -> None:
        """Close every connection and port, and join the thread. Idempotent. No effect on a handle
        on another process.
        """
        if self._thread is not None:
            self._thread.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> AsyncCluster:
        """Start the cluster in this trio run, under its clock."""
        import sniffio

        if self._config is None:
            return self.aio
        if sniffio.current_async_library() != "trio":
            raise RuntimeError(
                "a cluster runs in a trio run; elsewhere use `with Cluster(…) as kafka` and "
                "`kafka.aio`"
            )
        if self._journal_dir is not None:
            raise RuntimeError("a journal_dir needs a cluster in a thread")
        from mockbroker.api.local import OwnRunTransport
        from mockbroker.server.cluster_server import open_server

        self._in_this_run = AsyncExitStack()
        server = await self._in_this_run.enter_async_context(
            open_server(self._config, trace=self._trace)
        )
        return AsyncCluster(OwnRunTransport(server))

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        if self._in_this_run is None:
            return None
        stack, self._in_this_run = self._in_this_run, None
        try:
            return await stack.__aexit__(exc_type, exc, traceback)
        except BaseExceptionGroup as group:
            if exc is not None and group.exceptions == (exc,):
                return False  # the block's own error, as it is
            raise

    # -- other ways to it --------------------------------------------------------------------------

    @property
    def aio(self) -> AsyncCluster:
        """The same cluster for code that awaits, under asyncio, anyio or trio."""
        return AsyncCluster(AwaitedTransport(self._transport))

    @property
    def admin_url(self) -> str:
        """The URL of the admin API (`/v1/…`), which starts at the first use."""
        return self._url if self._config is None else self._here.admin_url

    # -- what needs the cluster in this process ----------------------------------------------------

    @property
    def config(self) -> ServerConfig:
        """The config with which the cluster was started."""
        if self._config is None:
            raise NotInThisProcessError(_ELSEWHERE)
        return self._config

    @property
    def server(self) -> ClusterServer:
        """The running server. Its state belongs to the cluster's thread."""
        return self._here.server

    @property
    def journal_run(self) -> str:
        """The name of the run in `journal_dir`."""
        return self._here.journal_run

    @property
    def tls(self) -> Authority:
        """The test authority of a cluster with TLS: its certificate, and those of clients.

        `tls.ca_path` is its certificate as PEM, `tls.truststore_path` the same for Java (password
        `tls.password`), and `tls.client("alice")` issues a client certificate.
        """
        return self.server.security.authority

    def token(self, user: str, **how: Any) -> str:
        """A signed OAUTHBEARER token of `user`; `how` as for `TokenKeys.sign`."""
        return self.call(lambda _: self.server.security.tokens.sign(user, **how))

    def call(self, function: Callable[[CoreCluster], T]) -> T:
        """Run `function(core cluster)` in the cluster's thread and return its result.

        The core has no stable interface.
        """
        return self._here.call(function)

    def save(self, directory: str | Path) -> None:
        """Write the cluster to a directory. Raises ServerError.

        `load`, `mockbroker serve --load` and `mockbroker serve --data-dir` read it.
        """
        from mockbroker.server.storage.snapshot_files import write_directory

        server = self.server
        write_directory(Path(directory), self.call(lambda _: server.snapshots.take()))

    def load(
        self, directory: str | Path, *, recover: bool = False, producers: Producers = "keep"
    ) -> None:
        """Restore the cluster in a directory, as `restore` does.

        Raises ServerError that names the file and the damaged byte; then nothing has changed. With
        `recover` everything before the damage is restored.
        """
        from mockbroker.server.storage.snapshots import read_snapshot

        image = read_snapshot(Path(directory), recover=recover)
        server = self.server
        self.call(lambda _: server.snapshots.restore(image, producers))

    @property
    def _here(self) -> ClusterThread:
        if self._config is None:
            raise NotInThisProcessError(_ELSEWHERE)
        if self._thread is None:
            raise RuntimeError("the cluster is not running; use it as a context manager")
        return self._thread


_ELSEWHERE = "this cluster runs in another process"


def _directory(journal_dir: str | PathLike[str] | None) -> Path | None:
    check_type(journal_dir, str | PathLike[str] | None, "journal_dir")
    return None if journal_dir is None else Path(journal_dir)
