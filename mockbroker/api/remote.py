"""Endpoints of the admin API of another process."""

from __future__ import annotations

from typing import Any, cast
from urllib.parse import quote

import msgspec

from mockbroker.admin.v1.endpoint import JSON
from mockbroker.admin.v1.endpoints import BY_KEY
from mockbroker.admin.v1.problems import Problem
from mockbroker.api.http import TIMEOUT_S, HttpClient, RefusedError, UnreachableError
from mockbroker.api.problems import error_of
from mockbroker.api.transport import ClusterError, Request
from mockbroker.core.validation import nearest, to_data
from mockbroker.core.views.brokers import BrokerView


class HttpTransport:
    """For a running process, by the URL of its admin API."""

    def __init__(self, url: str, token: str | None) -> None:
        self._http = HttpClient(url, token)

    def request(self, request: Request) -> Any:
        endpoint = BY_KEY[request.method, request.path]
        names = {name: quote(str(value), safe="") for name, value in request.at.items()}
        query = {
            name: str(value).lower() if isinstance(value, bool) else value
            for name, value in request.query.items()
            if value is not None
        }
        body = None
        if endpoint.body is not None:
            body = to_data({} if request.body is None else request.body)
        try:
            with self._http.response(
                request.method,
                request.path.format(**names),
                body,
                query=query,
                timeout_s=TIMEOUT_S + request.wait_s,
            ) as response:
                data = response.read()
        except RefusedError as error:
            raise error_of(msgspec.convert(error.problem, Problem)) from None
        except UnreachableError as error:
            raise ClusterError(str(error)) from None
        if endpoint.status == 204:
            return None
        if endpoint.media == (JSON,):
            return msgspec.json.decode(data, type=endpoint.answer)
        return data.decode() if endpoint.media[0] != "application/octet-stream" else data

    def bootstrap(self, listener: str | None) -> str:
        found = [_address(broker, listener) for broker in self._brokers()]
        return ",".join(found)

    def endpoint(self, node_id: int, listener: str | None) -> tuple[str, int]:
        brokers = {broker.node_id: broker for broker in self._brokers()}
        if node_id not in brokers:
            known = ", ".join(map(str, brokers))
            raise ValueError(f"there is no broker {node_id}; there are: {known}")
        host, _, port = _address(brokers[node_id], listener).rpartition(":")
        return host, int(port)

    def _brokers(self) -> list[BrokerView]:
        return cast("list[BrokerView]", self.request(Request("GET", "/v1/brokers")))


def _address(broker: BrokerView, listener: str | None) -> str:
    if listener is None:
        return next(iter(broker.listeners.values()))
    if listener not in broker.listeners:
        raise ValueError(f"there is no listener {listener!r}{nearest(listener, broker.listeners)}")
    return broker.listeners[listener]
