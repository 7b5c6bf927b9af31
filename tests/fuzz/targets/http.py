"""Requests to the admin API, with the rules that they set in force for clients.

A session is a cluster in virtual time, its admin API as an ASGI application in the same run, and
some clients. Queries, paths and bodies fit an endpoint more or less; some bodies are bytes changed
anywhere, nested deeply, or lines of NDJSON. Between these, clients send requests that rules fire
for. The input is the number of the session.

- No request is answered 500, and nothing logs an error.
- Each answer of a cluster that a rule lets through parses.

Memory is not judged: a cluster keeps what it is given.
"""

from __future__ import annotations

import json
import random
import time
from typing import Any
from urllib.parse import quote, urlencode

import trio
from starlette.applications import Starlette

from mockbroker.admin.v1.backend import OwnRunBackend
from mockbroker.admin.v1.endpoint import NDJSON, Endpoint
from mockbroker.admin.v1.endpoints import ENDPOINTS
from mockbroker.admin.v1.routes import api_routes
from mockbroker.core.actions.registry import ACTIONS
from mockbroker.core.faults.effects.table import EFFECTS
from mockbroker.server.config import ServerConfig, TopicSpec
from mockbroker.simulation.streams import SimulatedCluster
from mockbroker_protocol import ApiKey
from mockbroker_protocol.exceptions import DecodeError, EncodeError
from mockbroker_protocol.framing import request_frame
from mockbroker_protocol.headers import RequestHeader
from tests.fuzz.engine import SessionTarget
from tests.fuzz.mutate import mutated
from tests.fuzz.targets.drawn_data import TEXTS, anything, changed, drawn
from tests.fuzz.targets.drawn_requests import RequestDrawer
from tests.fuzz.targets.sessions import versions
from tests.fuzz.targets.texts import PLAN, RULE
from tests.fuzz.targets.virtual_cluster import with_cluster
from tests.fuzz.targets.wire import Client
from tests.fuzz.work import Broken

STEPS = 60
ANSWER_S = 5.0
NAMES = ("orders", "f1", "f2", "p", "g", "1", "0", "2", "-1", "classic", "a", "1:1", "3.2")
# They wait for a person, or move time on by what may be years.
NOT_CALLED = ("/stream", "/v1/clock", "/v1/quiescence")


class Http(SessionTarget):
    """An input is a number in eight bytes."""

    name = "http"
    modules = ("mockbroker.admin", "mockbroker.core.faults", "mockbroker.exchange")

    def cost(self) -> int:
        return STEPS

    def run(self, seed: int) -> dict[str, float]:
        return run_session(seed)


def run_session(seed: int) -> dict[str, float]:
    """Run a session; returns the CPU time of each step, in ms. Raises Broken."""
    config = ServerConfig(
        brokers=2,
        topics=(TopicSpec("orders", 2, 2),),
        seed=seed,
        configs={
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.num.partitions": "1",
        },
    )

    async def session(sim: SimulatedCluster, errors: list[str]) -> dict[str, float]:
        made = _Session(sim, random.Random(f"http {seed}"), errors)
        for step in range(STEPS):
            await made.step(step)
        return made.took

    return with_cluster(config, session)


class _Session:
    def __init__(self, sim: SimulatedCluster, rng: random.Random, errors: list[str]) -> None:
        self.took: dict[str, float] = {}
        self._sim = sim
        self._rng = rng
        self._errors = errors
        self._app = Starlette(routes=api_routes(OwnRunBackend(sim.server)))
        self._endpoints = [
            each for each in ENDPOINTS if not any(part in each.path for part in NOT_CALLED)
        ]
        faults = [each for each in self._endpoints if each.path in ("/v1/faults", "/v1/actions")]
        self._often = [each for each in faults if each.method == "POST"]
        ids = [topic.topic_id for topic in sim.cluster.topics.values()]
        self._drawer = RequestDrawer(rng, ids, b"")

    async def step(self, number: int) -> None:
        rng = self._rng
        started = time.thread_time()
        if rng.random() < 0.5:
            what = await self._call(rng.choice((*self._endpoints, *self._often * 4)))
        else:
            what = await self._ask()
        self.took[f"step {number} {what}"] = (time.thread_time() - started) * 1000
        if self._errors:
            raise Broken(f"an error is logged at step {number}, {what}: {self._errors[0]}")

    # -- HTTP --------------------------------------------------------------------------------------

    async def _call(self, endpoint: Endpoint[Any]) -> str:
        rng = self._rng
        path = endpoint.path
        while "{" in path:
            start, end = path.index("{"), path.index("}")
            name = rng.choice(NAMES if rng.random() < 0.9 else TEXTS)
            path = path[:start] + quote(name.encode("utf-8", "replace"), safe="") + path[end + 1 :]
        query = ""
        if endpoint.query is not None and rng.random() < 0.5:
            given = drawn(rng, endpoint.query)
            if isinstance(given, dict):
                query = urlencode(given, doseq=True, errors="replace")
        media, body = self._body(endpoint)
        status, answer = await self._send(endpoint.method, path, query, media, body)
        what = f"{endpoint.method} {path[:80]}?{query[:80]} {body[:300]!r}"
        if status == 500:
            raise Broken(f"an answer is 500 to {what}: {answer[:500]!r}")
        return what

    def _body(self, endpoint: Endpoint[Any]) -> tuple[str, bytes]:
        rng = self._rng
        if endpoint.lines is not None and rng.random() < 0.5:
            lines = [_json(drawn(rng, endpoint.lines)) for _ in range(rng.randrange(4))]
            return NDJSON, self._perhaps_changed(b"\n".join(lines))
        if endpoint.body is None:
            return "application/json", b""
        if endpoint.path == "/v1/faults":
            data = self._plan()
        elif endpoint.path == "/v1/actions":
            name = rng.choice(sorted(ACTIONS))
            data = {name: drawn(rng, ACTIONS[name].arguments)}
        elif isinstance(endpoint.body, type) and endpoint.body not in (dict, object):
            data = drawn(rng, endpoint.body)
        else:
            data = anything(rng)
        return "application/json", self._perhaps_changed(_json(data))

    def _plan(self) -> Any:
        """A rule that may fire for the clients of the session."""
        rng = self._rng
        name = rng.choice(sorted(EFFECTS))
        rule = {**RULE, "do": {name: drawn(rng, EFFECTS[name])}}
        rule["match"] = rng.choice(({}, {}, {"topic": "orders"}, {"api": ["Fetch", "Produce"]}))
        rule["when"] = rng.choice(({}, {}, {"times": 2}, {"probability": 0.5}, {"skip": 1}))
        plan = rng.choice((rule, {"rules": [rule]}, {**PLAN, "rules": [rule]}))
        return changed(rng, plan) if rng.random() < 0.4 else plan

    def _perhaps_changed(self, body: bytes) -> bytes:
        rng = self._rng
        drawn_share = rng.random()
        if drawn_share < 0.1:
            return mutated(rng, body, (b'{"a":' * 5_000, b"\xff", b"1e999"), 1 << 16)
        return b"[" * 20_000 if drawn_share < 0.11 else body

    async def _send(
        self, method: str, path: str, query: str, media: str, body: bytes
    ) -> tuple[int, bytes]:
        """Status and body of an answer; status 0 where it takes longer than some seconds."""
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(b"content-type", media.encode()), (b"host", b"localhost")],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
        }
        pieces = [body[: len(body) // 2], body[len(body) // 2 :]]
        status, answer = 0, bytearray()

        async def receive() -> dict[str, Any]:
            if not pieces:
                await trio.sleep_forever()
            return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

        async def send(message: dict[str, Any]) -> None:
            nonlocal status
            status = message.get("status", status)
            answer.extend(message.get("body", b""))

        with trio.move_on_after(ANSWER_S):
            await self._app(scope, receive, send)
        return status, bytes(answer)

    # -- clients -----------------------------------------------------------------------------------

    async def _ask(self) -> str:
        rng = self._rng
        key, version = rng.choice(versions())
        if rng.random() < 0.5:
            key, version = rng.choice(
                ((ApiKey.PRODUCE, 9), (ApiKey.FETCH, 12), (ApiKey.METADATA, 12))
            )
        request = self._drawer.draw(key, version)
        what = f"{key.name} v{version} {request!r}"[:500]
        try:
            frame = b"".join(request_frame(RequestHeader(key, version, 0, "fuzz"), request))
            client = Client(await self._sim.connect(rng.choice((1, 2))))
        except (EncodeError, ConnectionRefusedError):
            return "nothing"
        try:
            await client.ask(key, version, frame)
            if await client.wait(1.0) and client.answer is not None:
                self._drawer.learn(request, client.answer)
        except (DecodeError, Broken):
            # Rules may damage, swap and repeat answers.
            return what
        finally:
            client.close()
        return what


def _json(data: Any) -> bytes:
    return json.dumps(data).encode()
