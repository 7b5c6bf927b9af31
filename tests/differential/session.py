"""What a case speaks through: connections to one peer, and a record of all that came back."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from mockbroker.client.connection import Connection, api_key_of
from mockbroker.client.errors import ConnectionClosedError, RequestTimeoutError
from mockbroker_protocol import ApiKey
from tests.support.waiting import wait_until

# A broker that has not answered after this long is taken to keep silent. Cases that expect silence
# are few; the others wait for an answer up to `ANSWER_TIMEOUT_S`.
SILENCE_TIMEOUT_S = 1.5
ANSWER_TIMEOUT_S = 60.0

CLOSED = "closed"
SILENCE = "silence"


@dataclass(frozen=True)
class Exchange:
    """One thing that came back: a response struct, or `CLOSED`, or `SILENCE`."""

    label: str
    api: ApiKey
    version: int
    answer: object


class Session:
    """One case's dealings with one peer. `name` makes topics and groups of the case its own."""

    def __init__(self, name: str, address: tuple[str, int], node_id: int) -> None:
        self.name = name
        self.node_id = node_id
        self.exchanges: list[Exchange] = []
        self._address = address
        self._connections: dict[str, Connection] = {}

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def connection(self, who: str = "main") -> Connection:
        """The connection of one of the case's clients; made anew after it was closed."""
        if who not in self._connections:
            host, port = self._address
            self._connections[who] = Connection(host, port, who, timeout_s=ANSWER_TIMEOUT_S)
        return self._connections[who]

    def ask(
        self,
        message: Any,
        version: int,
        who: str = "main",
        label: str = "",
        edit: Callable[[Any], Any] = lambda answer: answer,
    ) -> Any:
        """Send a typed request and record what comes back; returns the response, or None.

        `edit` may leave out of an answer what belongs to other cases.
        """
        connection = self.connection(who)
        try:
            answer = connection.send(message, version)
        except ConnectionClosedError:
            answer = CLOSED
            self.drop(who)
        except RequestTimeoutError:
            answer = SILENCE
            self.drop(who)
        if isinstance(answer, str):
            self._record(label, api_key_of(message), version, answer)
            return None
        self._record(label, api_key_of(message), version, edit(answer))
        return answer

    def quietly(self, message: Any, version: int, who: str = "main") -> Any:
        """Send a request that only prepares the ground: its answer is not compared."""
        return self.connection(who).send(message, version)

    def until(
        self, message: Any, version: int, ready: Callable[[Any], bool], who: str = "main"
    ) -> Any:
        """Ask again until the answer is `ready`; only that one is recorded.

        A real broker answers LEADER_NOT_AVAILABLE and the like while it is still at work.
        """
        connection = self.connection(who)
        answer: Any = None

        def is_ready() -> bool:
            nonlocal answer
            answer = connection.send(message, version)
            return ready(answer)

        try:
            wait_until(is_ready)
        except AssertionError:
            raise AssertionError(f"{self.name}: never ready: {answer}") from None
        self._record("", api_key_of(message), version, answer)
        return answer

    def start(self, message: Any, version: int, who: str) -> Callable[[], Any]:
        """Send a request that will be parked; call the result to wait for the answer."""
        connection = self.connection(who)
        api = api_key_of(message)
        correlation_id = connection.write(message, version)

        def finish(label: str = "") -> Any:
            try:
                answer = connection.read(api, version, correlation_id)
            except ConnectionClosedError:
                answer = CLOSED
                self.drop(who)
            self._record(label, api, version, answer)
            return answer

        return finish

    def no_answer(self, message: Any, version: int, who: str = "main", label: str = "") -> None:
        """Send a request that is expected to get no answer; record whether it closes or not."""
        connection = self.connection(who)
        connection.write(message, version)
        closed = connection.wait_closed(SILENCE_TIMEOUT_S)
        self._record(label, api_key_of(message), version, CLOSED if closed else SILENCE)
        self.drop(who)

    def raw(self, frame: bytes, label: str, who: str = "raw") -> bytes | None:
        """Send one frame as it is (its size is put before it); record close, silence or bytes.

        The recorded answer leaves the correlation id in: it is the case's own.
        """
        connection = self.connection(who)
        connection.send_raw(struct.pack(">i", len(frame)) + frame)
        answer: object
        try:
            answer = bytes(connection.read_frame())
        except ConnectionClosedError:
            answer = CLOSED
        except RequestTimeoutError:
            answer = SILENCE
        self.drop(who)
        (key,) = struct.unpack_from(">h", frame) if len(frame) >= 2 else (-1,)
        api = ApiKey(key) if key in ApiKey.__members__.values() else ApiKey.API_VERSIONS
        self._record(label, api, -1, answer)
        return answer if isinstance(answer, bytes) else None

    def note(self, found: object, label: str) -> None:
        """Record something that a case has taken from an answer, as a Fetch's."""
        self._record(label, ApiKey.FETCH, -1, found)

    def drop(self, who: str = "main") -> None:
        """Close one client's connection."""
        connection = self._connections.pop(who, None)
        if connection is not None:
            connection.close()

    def _record(self, label: str, api: ApiKey, version: int, answer: object) -> None:
        self.exchanges.append(Exchange(label, api, version, answer))
