"""A client of the admin API over HTTP. Imports nothing but the standard library."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any
from urllib.parse import urlencode, urlsplit

# Real time. The server limits its own waits, and answers then.
TIMEOUT_S = 30.0


class UnreachableError(Exception):
    """No admin API answers, or it broke off; the message names the URL and the reason.

    `is_absent` is True if nothing accepts connections there.
    """

    def __init__(self, message: str, *, is_absent: bool) -> None:
        super().__init__(message)
        self.is_absent = is_absent


class RefusedError(Exception):
    """An answer that is a problem; `problem` has its fields."""

    def __init__(self, problem: Mapping[str, Any]) -> None:
        super().__init__(str(problem["detail"]))
        self.problem = problem


class HttpClient:
    """Requests to the admin API at `url`, http://HOST:PORT. Raises ValueError for another URL."""

    def __init__(self, url: str, token: str | None = None) -> None:
        parts = urlsplit(url if "//" in url else f"//{url}")
        with suppress(ValueError):  # the port is no number up to 65535
            if parts.scheme in ("", "http") and parts.hostname and parts.path in ("", "/"):
                self.url = url
                self._host, self._port = parts.hostname, parts.port
                self._token = token
                return
        raise ValueError(f"{url!r} is not http://HOST:PORT")

    @contextmanager
    def response(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        query: Mapping[str, object] | None = None,
        timeout_s: float | None = TIMEOUT_S,
    ) -> Iterator[http.client.HTTPResponse]:
        """An answer to be read. Raises UnreachableError or RefusedError."""
        headers = {} if self._token is None else {"authorization": f"Bearer {self._token}"}
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["content-type"] = "application/json"
        if query:
            path += "?" + urlencode(query, doseq=True)
        connection = http.client.HTTPConnection(self._host, self._port, timeout=timeout_s)
        with closing(connection):
            try:
                connection.request(method, path, data, headers)
                response = connection.getresponse()
            except (OSError, http.client.HTTPException) as error:
                raise UnreachableError(
                    f"no admin API answers at {self.url}: {error}", is_absent=True
                ) from None
            try:
                if response.status >= 400:
                    raise RefusedError(_problem(response.status, response.read()))
                yield response
            except (OSError, http.client.HTTPException) as error:
                raise UnreachableError(
                    f"{self.url} broke off its answer: {error}", is_absent=False
                ) from None


def _problem(status: int, text: bytes) -> Mapping[str, Any]:
    with suppress(ValueError):
        found = json.loads(text)
        if isinstance(found, dict) and "detail" in found:
            return {"title": "", "status": status, **found}
    detail = text.decode("utf-8", "replace").strip() or f"HTTP status {status}"
    return {"title": "", "status": status, "detail": detail}
