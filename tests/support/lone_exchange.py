"""An exchange with no cluster, no socket and no event loop behind it: a proxy in small.

What it forwards to is a function. Its clock stands still until `Proxy.advance`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator, Sequence
from typing import Any

from mockbroker.core.faults.engine import ActiveRule, FaultEngine
from mockbroker.core.faults.rules import parse_plan
from mockbroker.core.runtime import Runtime
from mockbroker.exchange.base import Arm, Buffer
from mockbroker.exchange.faulted import FaultedExchange
from mockbroker.handlers.base import NO_RESPONSE, ConnectionInfo, Marks, Outcome
from mockbroker_protocol import ApiKey
from mockbroker_protocol.codec import response_codec
from mockbroker_protocol.headers import RequestHeader


class SeenTopic:
    """A topic that a Metadata answer has told of."""

    def __init__(self, name: str, topic_id: bytes) -> None:
        self.name = name
        self.topic_id = topic_id


class SeenTopics:
    """Topics as far as Metadata answers have told of them."""

    def __init__(self, *topics: SeenTopic) -> None:
        self.epoch = 0
        self.topics = {topic.name: topic for topic in topics}
        self.topics_by_id = {topic.topic_id: topic for topic in topics}


class SeenSessions:
    """Fetch sessions as far as requests have told of them."""

    def __init__(self) -> None:
        self.sessions: dict[int, list[tuple[str | bytes, int]]] = {}

    def keys_of(self, session_id: int) -> list[tuple[str | bytes, int]]:
        return self.sessions.get(session_id, [])


class Upstream:
    """The broker behind a proxy."""

    def __init__(self, node_id: int, *topics: SeenTopic) -> None:
        self.node_id = node_id
        self.image = SeenTopics(*topics)
        self.fetch_sessions = SeenSessions()


class _Wait:
    def __init__(self, arm: Arm) -> None:
        self.arm = arm

    def __await__(self) -> Generator[_Wait, None, None]:
        yield self


class LoneExchange:
    """One request. What became of it stands in the attributes."""

    def __init__(self, proxy: Proxy, header: RequestHeader, request: Any) -> None:
        self.broker = proxy.upstream
        self.listener = "PROXY"
        self.header = header
        self.connection = proxy.connection
        self.seq = 1
        self.request = request
        self.arrived_ms = proxy.now_ms
        self.runtime = proxy.runtime
        self._proxy = proxy
        self.codec = response_codec(ApiKey(header.api_key), header.api_version)
        self.marks: Marks | None = None
        self.applied: list[Any] = []
        self.sent = b""
        self.pieces = 0
        self.fate = ""  # why nothing is sent
        self.muted_ms = 0
        self.ended = ""  # "FIN" or "RST" once the connection is over
        self.on_close: list[Callable[[], None]] = []  # called when the client closes

    @property
    def response(self) -> Any:
        """The answer that the client got; the frame has to be whole."""
        size, correlation_id = (int.from_bytes(self.sent[at : at + 4], "big") for at in (0, 4))
        assert (size, correlation_id) == (len(self.sent) - 4, self.header.correlation_id)
        return self.codec.decode(memoryview(self.sent), 8)[0]

    def mark(self, marks: Marks) -> None:
        self.marks = marks

    async def wait(self, arm: Arm) -> None:
        await _Wait(arm)

    def when_closed_by_client(self, call: Callable[[], None]) -> Callable[[], None]:
        self.on_close.append(call)
        return self.on_close.clear

    def closed_by_client(self) -> None:
        """The client gives up."""
        for call in list(self.on_close):
            call()

    async def released(self) -> None:
        if self._proxy.paused is not None:
            await _Wait(self._proxy.paused.append)

    async def apply(self, request: Any) -> Any:
        self.applied.append(request)
        return self._proxy.forward(request)

    async def answer(self, request: Any, response: Any) -> None:
        parts = self.frame(request, response)
        if parts is None:
            self.close(reset=False)
        else:
            await self.send(parts)

    def frame(self, request: Any, response: Any) -> Sequence[Buffer] | None:
        if isinstance(response, Outcome):
            return () if response is NO_RESPONSE else None
        body = b"".join(self.codec.encode(response))
        head = (len(body) + 4).to_bytes(4, "big") + self.header.correlation_id.to_bytes(4, "big")
        return (head, body)

    async def send(self, parts: Sequence[Buffer]) -> None:
        self.pieces += 1
        self.sent += b"".join(parts)

    async def serve_next(self, within_ms: int) -> bool:
        self._proxy.order.append(f"next within {within_ms} ms")
        return not self._proxy.next_closes

    def unanswered(self, fate: str) -> None:
        self.fate = fate

    def mute(self, wait_ms: int) -> None:
        self.muted_ms += wait_ms

    def close(self, *, reset: bool) -> None:
        self.ended = "RST" if reset else "FIN"


class Proxy:
    """Rules in front of a function."""

    def __init__(self, forward: Callable[[Any], Any], *topics: SeenTopic) -> None:
        self.now_ms = 1_000_000
        self.runtime = Runtime(lambda: self.now_ms, seed=1)
        self.engine = FaultEngine(self.runtime)
        self.upstream = Upstream(1, *topics)
        self.connection = ConnectionInfo(1, "127.0.0.1", 5000)
        self.forward = forward
        self.paused: list[Callable[[], None]] | None = None
        self.order: list[str] = []
        self.next_closes = False  # whether the request after the present one ends the connection

    def rule(self, **rule: Any) -> ActiveRule:
        """Add a rule as data."""
        return self.engine.add(parse_plan(rule, f"f{len(self.engine.plans) + 1}"))[0]

    def ask(self, key: ApiKey, version: int, request: Any) -> LoneExchange:
        """Let a request come in; it goes as far as it can without the clock."""
        header = RequestHeader(key, version, 7, "c")
        exchange = LoneExchange(self, header, request)
        fired = self.engine.evaluate(exchange, request)
        assert fired is not None  # what comes without rules is no matter of theirs
        _drive(FaultedExchange(exchange, self.engine, fired).run())
        return exchange

    def advance(self, by_ms: int) -> None:
        """Move the clock on."""
        self.now_ms += by_ms
        self.runtime.timers.run_due(self.now_ms)

    def resume(self) -> None:
        """The broker was paused, and goes on."""
        waiting, self.paused = self.paused or [], None
        for each in waiting:
            each()


def _drive(work: Coroutine[_Wait, None, None]) -> None:
    try:
        wait = work.send(None)
    except StopIteration:
        return
    calls: list[None] = []

    def over() -> None:
        calls.append(None)
        if len(calls) == 1:
            _drive(work)

    wait.arm(over)
