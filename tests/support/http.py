"""Asking the admin API as any HTTP client does."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from contextlib import closing
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit

TIMEOUT_S = 60.0


class Answer(NamedTuple):
    """Status, headers (by lower-case name) and the decoded body; None without one."""

    status: int
    headers: Mapping[str, str]
    body: Any


class RawAnswer(NamedTuple):
    """Status, headers and the body as it came."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes


class HttpClient:
    """Requests to one server. Each has a connection of its own."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self.host, self.port = parts.hostname, parts.port

    def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        raw: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        query: Mapping[str, object] | None = None,
    ) -> Answer:
        """Send `body` as JSON, or `raw` bytes as they are; the answer's JSON is decoded."""
        data = raw if raw is not None else None if body is None else json.dumps(body).encode()
        sent = {"content-type": "application/json"} if data is not None else {}
        if query:
            path += "?" + urlencode(query, doseq=True)
        answer = self.raw(method, path, data, {**sent, **(headers or {})})
        found = {name.lower(): value for name, value in answer.headers.items()}
        return Answer(answer.status, found, json.loads(answer.body) if answer.body else None)

    def raw(
        self,
        method: str,
        path: str,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> RawAnswer:
        """Send bytes as they are; the answer may be of any type."""
        with closing(self._connect()) as connection:
            connection.request(method, path, data, headers or {})
            response = connection.getresponse()
            return RawAnswer(response.status, response.headers, response.read())

    def get(self, path: str, **query: object) -> Any:
        """The body of an answer that has to be 200."""
        answer = self.request("GET", path, query=query)
        assert answer.status == 200, answer
        return answer.body

    def post(self, path: str, body: object, status: int = 200) -> Any:
        """The body of an answer that has to have this status."""
        answer = self.request("POST", path, body)
        assert answer.status == status, answer
        return answer.body

    def stream(self, path: str) -> http.client.HTTPResponse:
        """An answer that goes on; close it."""
        connection = self._connect()
        connection.request("GET", path)
        return connection.getresponse()

    def _connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT_S)
