"""What commands share that start a cluster for another program: its admin API, its addresses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import trio

from mockbroker.actors.server import ClusterServer
from mockbroker.admin import ServerView, start_admin
from mockbroker.cli.admin_client import ADMIN_ENVIRONMENT
from mockbroker.cli.common import BOOTSTRAP_ENVIRONMENT


@contextmanager
def addresses_of(server: ClusterServer) -> Iterator[dict[str, str]]:
    """Environment variables that lead a program to a cluster, whose admin API is up meanwhile."""
    admin = start_admin(ServerView(server, trio.lowlevel.current_trio_token()))
    try:
        yield {
            BOOTSTRAP_ENVIRONMENT: server.bootstrap_servers,
            ADMIN_ENVIRONMENT: admin.url,
        }
    finally:
        admin.stop()
