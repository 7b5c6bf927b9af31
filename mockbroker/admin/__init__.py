"""The HTTP side of a cluster: is it alive, what has it done.

Nouns: the *admin server* is a thread with a trio run of its own, on real time, so that a frozen or
racing cluster clock closes no HTTP connection and stops no wait from timing out. The *view* is all
it knows of the cluster. The *bridge* carries a function into the cluster's run and its result back.
A *snapshot* is what the view returns: plain numbers, safe to read in any thread.

Importing this package is cheap: Hypercorn and Starlette are imported in the admin thread, after the
brokers listen.
"""

from __future__ import annotations

from mockbroker.admin.server import AdminError, AdminServer, start_admin
from mockbroker.admin.server_view import ServerView
from mockbroker.admin.view import ClusterView, Snapshot

__all__ = ["AdminError", "AdminServer", "ClusterView", "ServerView", "Snapshot", "start_admin"]
