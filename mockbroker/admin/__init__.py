"""A cluster over HTTP: health, metrics and the admin API.

Nouns: the *admin server* is a thread with a trio run of its own, on real time: a frozen or fast
cluster clock neither closes HTTP connections nor changes their timeouts. The *bridge* runs a
function in the cluster's run and returns its result.

Importing this package is cheap: Hypercorn and Starlette are imported in the admin thread, after the
brokers listen.
"""

from __future__ import annotations

from mockbroker.admin.server import AdminError, AdminServer, bind_admin, serve_saved, start_admin
from mockbroker.admin.target import AdminTarget, ClusterMetrics, ServerTarget

__all__ = [
    "AdminError",
    "AdminServer",
    "AdminTarget",
    "ClusterMetrics",
    "ServerTarget",
    "bind_admin",
    "serve_saved",
    "start_admin",
]
