"""The addresses of a cluster that a command starts for another program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mockbroker.admin import ServerTarget, start_admin
from mockbroker.cli.admin_client import ADMIN_ENVIRONMENT
from mockbroker.cli.common import BOOTSTRAP_ENVIRONMENT
from mockbroker.server.cluster_server import ClusterServer


@contextmanager
def addresses_of(server: ClusterServer) -> Iterator[dict[str, str]]:
    """Environment variables with the addresses of a cluster; its admin API runs for the block."""
    admin = start_admin(ServerTarget(server))
    try:
        yield {
            BOOTSTRAP_ENVIRONMENT: server.bootstrap_servers,
            ADMIN_ENVIRONMENT: admin.url,
        }
    finally:
        admin.stop()
