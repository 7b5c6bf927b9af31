"""A cluster that a command runs: brokers, admin API, the journal's tables, addresses."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import trio

from mockbroker.admin import AdminError, AdminServer, ServerTarget, bind_admin
from mockbroker.cli import environment
from mockbroker.cli.admin_options import AdminOptions
from mockbroker.server.cluster_server import ClusterServer, open_server
from mockbroker.server.config import ServerConfig, ServerError
from mockbroker.server.network.socket_server import Trace

if TYPE_CHECKING:
    from mockbroker.pipeline.spool.exporter import JournalExporter


@dataclass(frozen=True)
class Serving:
    """A cluster whose brokers answer. Its admin port accepts, and answers after `start_admin`."""

    server: ClusterServer
    admin: AdminServer | None = None
    options: AdminOptions | None = None

    async def start_admin(self) -> None:
        """Start the admin API. Raises ServerError.

        Hypercorn and Starlette are imported in its thread, while the brokers serve.
        """
        if self.admin is not None:
            try:
                await trio.to_thread.run_sync(self.admin.start)
            except AdminError as error:
                raise ServerError(str(error)) from None

    def ready_line(self) -> str:
        """`ready bootstrap=HOST:PORT,… admin=URL …`, for people and for shell scripts."""
        words = ["ready"]
        for name, value in self.addresses().items():
            if isinstance(value, dict):
                words.extend(f"{listener}={brokers}" for listener, brokers in value.items())
            else:
                words.append(f"{name.replace('_', '-')}={value}")
        return " ".join(words)

    def ready_json(self) -> str:
        """The addresses and the process id as a JSON object."""
        return msgspec.json.encode({**self.addresses(), "pid": os.getpid()}).decode()

    def addresses(self) -> dict[str, str | dict[str, str]]:
        """bootstrap, admin, admin_token_file, listeners (those after the first), files."""
        config = self.server.config
        found: dict[str, str | dict[str, str]] = {"bootstrap": self.server.bootstrap_servers}
        if self.admin is not None and self.options is not None:
            found["admin"] = self.admin.url
            if self.options.secret_file is not None:
                found["admin_token_file"] = str(self.options.secret_file)
        others = {each.name: self.server.bootstrap(each.name) for each in config.listeners[1:]}
        if others:
            found["listeners"] = others
        if any(each.security_protocol != "PLAINTEXT" for each in config.listeners):
            found["files"] = str(self.server.security.write_files())
        return found

    def environment(self) -> dict[str, str]:
        """The variables by which programs and our own commands find the cluster."""
        found = {environment.BOOTSTRAP: self.server.bootstrap_servers}
        if self.admin is not None:
            found[environment.ADMIN] = self.admin.url
        if self.options is not None and self.options.secret is not None:
            found[environment.ADMIN_TOKEN] = self.options.secret
        return found


@asynccontextmanager
async def serving(
    config: ServerConfig,
    admin_options: AdminOptions | None,
    *,
    trace: Trace | None = None,
    journal_dir: Path | None = None,
) -> AsyncIterator[Serving]:
    """A cluster for the block; raises ServerError or ConfigError."""
    exporter: JournalExporter | None = None
    admin: AdminServer | None = None
    try:
        async with open_server(config, trace=trace) as server:
            if journal_dir is not None:
                from mockbroker.cli.journal_export import export_journal

                exporter = export_journal(server.cluster, journal_dir)
            try:
                if admin_options is not None:
                    admin = _bound(server, admin_options)
                yield Serving(server, admin, admin_options)
            finally:
                if admin is not None:
                    with trio.CancelScope(shield=True):
                        await trio.to_thread.run_sync(admin.stop)
    finally:
        if admin_options is not None:
            admin_options.close()
        if exporter is not None:
            from mockbroker.cli.journal_export import finish_export

            exporter.stop()
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(finish_export, exporter)


def _bound(server: ClusterServer, options: AdminOptions) -> AdminServer:
    try:
        return bind_admin(ServerTarget(server), options.host, options.port, secret=options.secret)
    except AdminError as error:
        raise ServerError(f"{error}{_own_broker_at(server, options.port)}") from None


def _own_broker_at(server: ClusterServer, port: int) -> str:
    """What to add to the message if a broker of the cluster takes the port."""
    node_ids = list(server.cluster.brokers)
    for listener in server.config.listeners:
        if listener.port and 0 <= port - listener.port < len(node_ids):
            return (
                f" by broker {node_ids[port - listener.port]} of this cluster; "
                f"each broker takes a port, from {listener.port} on"
            )
    return ""
