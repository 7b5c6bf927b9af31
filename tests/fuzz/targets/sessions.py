"""Requests to a cluster that has something to lose, over the connections that it serves.

A *session* is a cluster in virtual time and a few hundred requests of all its APIs, over several
connections: most are well formed, with fields that name what exists, what does not and boundaries;
some are bytes changed anywhere, with any size in front. Meanwhile a canary, which no request
names, produces and fetches. The input is the number of the session, and how many steps it has.

- A broker logs no error, and each answer parses and has the right correlation id.
- A connection may be closed; the next one is served.
- The canary's records are those that were acknowledged, in order.
- No request takes more work than the limit. What a step takes is measured with what its cluster did
  meanwhile, and only the step with the most is judged, in a session that is run again.

Memory is not judged: a cluster keeps what it is given.
"""

from __future__ import annotations

import random
import time
from struct import Struct
from typing import Any

from mockbroker.handlers import load_all
from mockbroker.handlers.base import APIS
from mockbroker.server.config import ServerConfig, TopicSpec
from mockbroker.simulation.streams import SimulatedCluster
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.codec import request_codec
from mockbroker_protocol.exceptions import EncodeError
from mockbroker_protocol.framing import request_frame
from mockbroker_protocol.headers import RequestHeader
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from mockbroker_protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from mockbroker_protocol.records import Record, build_batch, read_records
from tests.fuzz.engine import Target
from tests.fuzz.mutate import mutated
from tests.fuzz.targets.drawn_requests import CANARY, RequestDrawer
from tests.fuzz.targets.virtual_cluster import with_cluster
from tests.fuzz.targets.wire import Client
from tests.fuzz.work import Broken, check_steps

STEPS = 200
CONNECTIONS = 4
BROKERS = 3
CANARY_EVERY = 10
ERRORS_OF_CONFIGS = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.NOT_ENOUGH_REPLICAS)
"""What a session may bring upon the canary, because it sets configs of brokers."""
_SIZE = Struct(">i")
_NOT_DRAWN = frozenset(
    (
        ApiKey.SASL_HANDSHAKE,  # a target of its own
        ApiKey.SASL_AUTHENTICATE,
    )
)
TOPICS = (
    TopicSpec(CANARY, 1, 3),
    TopicSpec("orders", 3, 3),
    TopicSpec("compacted", 1, 3, {"cleanup.policy": "compact", "segment.bytes": "1048576"}),
    TopicSpec("appended", 1, 1, {"message.timestamp.type": "LogAppendTime"}),
    TopicSpec("three", 2, 2, {"compression.type": "zstd"}),
)
# APIs with state behind them come up more often.
OFTEN = (
    *(ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT),
    *(ApiKey.OFFSET_COMMIT, ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN),
    *(ApiKey.END_TXN, ApiKey.TXN_OFFSET_COMMIT, ApiKey.CONSUMER_GROUP_HEARTBEAT),
)


class Sessions(Target):
    """An input is a number in eight bytes, and a number of steps in two."""

    name = "sessions"
    judges_itself = True

    def cost(self) -> int:
        return STEPS

    def draw(self, number: int) -> bytes:
        return number.to_bytes(8, "big") + STEPS.to_bytes(2, "big")

    def check(self, data: bytes) -> None:
        if len(data) != 10:
            return
        seed, steps = int.from_bytes(data[:8], "big"), int.from_bytes(data[8:], "big")
        check_steps(lambda: run_session(seed, steps))


def run_session(seed: int, steps: int) -> dict[str, float]:
    """Run a session; returns the CPU time of each step, in ms. Raises Broken."""
    config = ServerConfig(
        brokers=BROKERS,
        topics=TOPICS,
        seed=seed,
        configs={
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "3",
            "transaction.state.log.num.partitions": "3",
        },
    )

    async def session(sim: SimulatedCluster, errors: list[str]) -> dict[str, float]:
        made = _Session(sim, random.Random(f"session {seed}"), errors)
        await made.run(steps)
        return made.took

    return with_cluster(config, session)


class _Session:
    def __init__(self, sim: SimulatedCluster, rng: random.Random, errors: list[str]) -> None:
        self.took: dict[str, float] = {}
        self._sim = sim
        self._rng = rng
        self._errors = errors
        ids = [topic.topic_id for topic in sim.cluster.topics.values() if topic.name != CANARY]
        self._drawer = RequestDrawer(rng, ids, sim.cluster.topics[CANARY].topic_id)
        self._clients: list[Client | None] = [None] * CONNECTIONS
        self._written = 0

    async def run(self, steps: int) -> None:
        for step in range(steps):
            if step % CANARY_EVERY == 0:
                await self._sing()
            started = time.thread_time()
            what = await self._step()
            self.took[f"step {step} {what}"] = (time.thread_time() - started) * 1000
            if self._errors:
                raise Broken(f"a broker logs an error at step {step}, {what}: {self._errors[0]}")
        await self._sing()

    async def _step(self) -> str:
        rng = self._rng
        if rng.random() < 0.05:
            await self._sim.sleep(rng.choice((1, 100, 5_000, 60_000, 700_000)))
        key, version = rng.choice(versions())
        slot = rng.randrange(CONNECTIONS)
        client = self._clients[slot]
        if client is not None and client.is_waiting and not await client.wait():
            client.close()
            client = None
        if client is None or client.closed:
            node_id = rng.choice((1, 1, 2, 3))
            try:
                client = Client(await self._sim.connect(node_id))
            except ConnectionRefusedError:
                return "a refused connection"
            self._clients[slot] = client
        request = self._drawer.draw(key, version)
        name = f"{key.name} v{version}"
        try:
            frame = b"".join(request_frame(RequestHeader(key, version, 0, "fuzz"), request))
        except EncodeError:
            return f"{name}, which cannot be encoded"
        if rng.random() < 0.1:
            size = rng.choice((len(frame) - 4,) * 8 + (0, -1, 1 << 30))
            data = mutated(rng, frame[4:], (), 4096)
            await client.send(_SIZE.pack(size if size <= 0 else len(data)) + data)
            if not await client.wait():
                client.close()
            return f"a changed {name}"
        await client.ask(key, version, frame)
        if await client.wait() and client.answer is not None:
            self._drawer.learn(request, client.answer)
        return f"{name} {request!r}"[:2000]

    async def _sing(self) -> None:
        """The canary writes a record and reads all of its records."""
        if not self._sim.cluster.image.brokers:
            return  # a client has unregistered every broker, and none leads
        batch = build_batch([Record(0, self._sim.now_ms, b"", b"%d" % self._written)])
        data = PartitionProduceData(index=0, records=batch)
        produce = ProduceRequest(
            acks=1,
            timeout_ms=1_000,
            topic_data=[TopicProduceData(name=CANARY, partition_data=[data])],
        )
        answer = await self._ask_leader(ApiKey.PRODUCE, 9, produce)
        (written,) = answer.responses[0].partition_responses
        if written.error_code == 0:
            self._written += 1
        elif written.error_code not in ERRORS_OF_CONFIGS:
            raise Broken(f"the canary cannot write: {written.error_code} {written.error_message}")
        everything = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 26)
        fetch = FetchRequest(
            max_wait_ms=0,
            max_bytes=1 << 26,
            topics=[FetchTopic(topic=CANARY, partitions=[everything])],
        )
        answer = await self._ask_leader(ApiKey.FETCH, 11, fetch)
        if not answer.responses and answer.throttle_time_ms:
            return
        (read,) = answer.responses[0].partitions
        values = [record.value for record in read_records(read.records or b"")]
        if values != [b"%d" % number for number in range(len(values))]:
            raise Broken(f"the canary reads {values}")

    async def _ask_leader(self, key: ApiKey, version: int, request: Any) -> Any:
        """Ask on a connection of its own: others may be closed as idle, or muted by a quota."""
        partition = self._sim.cluster.topics[CANARY].partitions[0]
        canary = Client(await self._sim.connect(partition.leader_id))
        answer = await canary.answer_to(key, version, request)
        canary.close()
        return answer


def versions() -> list[tuple[ApiKey, int]]:
    if not _VERSIONS:
        load_all()
        for key, api in sorted(APIS.items()):
            if key in _NOT_DRAWN:
                continue
            for version in range(api.min_version, api.max_version + 1):
                request_codec(key, version)
                _VERSIONS.append((ApiKey(key), version))
            if key in OFTEN:
                _VERSIONS.extend([(ApiKey(key), api.max_version)] * 20)
            else:
                _VERSIONS.extend([(ApiKey(key), api.max_version)] * 3)
    return _VERSIONS


_VERSIONS: list[tuple[ApiKey, int]] = []
