"""Access to the admin API: by host, origin and token.

A page in a browser on this machine must not control a cluster. Requests for another host (DNS
rebinding) or from another origin are refused, and GET never changes anything. With a token, which
no page has, the cluster may have any host name.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from mockbroker.admin.counted import App, Scope
from mockbroker.admin.v1.dispatch import problem_response
from mockbroker.admin.v1.problems import Problem

LOOPBACK = ("localhost", "127.0.0.1", "::1")
# A name or an IPv6 address in brackets, and a port; nothing else, such as a user, is allowed.
_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([0-9A-Za-z.-]+))(?::[0-9]{1,5})?")


class AccessControl:
    """ASGI middleware. Without a `token`, Host must be a loopback name.

    Requests that `is_open` accepts need no token.
    """

    def __init__(self, app: App, token: str | None, is_open: Callable[[Scope], bool]) -> None:
        self._app = app
        self._token = token
        self._is_open = is_open

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            problem = self._refusal(scope)
            if problem is not None:
                response = problem_response(problem)
                if problem.status == 401:
                    response.headers["www-authenticate"] = "Bearer"
                await response(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> Problem | None:
        headers = {name.lower(): value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host", "")
        if self._token is None and not _is_loopback(host):
            return Problem("unknown host", 421, f"without a token, {host!r} is not served")
        origin = headers.get(b"origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return Problem("foreign origin", 403, f"requests of pages of {origin!r} are refused")
        if self._token is not None and not self._is_open(scope):
            given = headers.get(b"authorization", "")
            scheme, _, token = given.partition(" ")
            if scheme.lower() != "bearer" or not _same(token.strip(), self._token):
                return Problem("not authorized", 401, "send the admin token: Bearer …")
        return None


def _is_loopback(host: str) -> bool:
    found = _HOST.fullmatch(host)
    return found is not None and (found[1] or found[2]).lower() in LOOPBACK


def _same(given: str, wanted: str) -> bool:
    """Compared in constant time."""
    return hmac.compare_digest(given.encode(), wanted.encode())
