"""Requests with one array of a thousand elements, to a cluster that has much to say about each.

An element of a few bytes may have an answer of thousands, or be compared with all that a cluster
has. An input is the number of a cluster in virtual time and of a few requests to it. In each, one
array is filled with equal elements, or with elements that differ.

- A broker logs no error.
- No task of the cluster works longer than the limit before others go on: one thread serves all.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import trio
from msgspec.structs import replace

from mockbroker.core.security.acls import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from mockbroker.core.security.authorizer import STANDARD_AUTHORIZER
from mockbroker.server.config import ServerConfig, TopicSpec
from mockbroker.simulation.streams import SimulatedCluster
from mockbroker_protocol import ApiKey
from mockbroker_protocol.exceptions import EncodeError
from mockbroker_protocol.framing import request_frame
from mockbroker_protocol.headers import RequestHeader
from mockbroker_protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from mockbroker_protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.fuzz.engine import SessionTarget
from tests.fuzz.targets.drawn_requests import RequestDrawer
from tests.fuzz.targets.sessions import versions
from tests.fuzz.targets.virtual_cluster import with_cluster
from tests.fuzz.targets.wire import Client
from tests.fuzz.work import Broken

REQUESTS = 6
ELEMENTS = 1_000
FRAME_BYTES_MAX = 1 << 20
MEMBERS = 20
TOPICS = (
    *(TopicSpec(name, 5, 1) for name in ("orders", "compacted", "three")),
    *(TopicSpec(f"orders-{number}", 5, 1) for number in range(40)),
)
ANSWER_S = 60.0  # of virtual time: a long answer is made in slices


class Arrays(SessionTarget):
    """An input is a number in eight bytes."""

    name = "arrays"

    def cost(self) -> int:
        return 10 * REQUESTS

    def run(self, seed: int) -> dict[str, float]:
        return run_session(seed)


class Stopwatch(trio.abc.Instrument):
    """The longest time in ms that a task other than `client` has worked without a pause."""

    def __init__(self, client: trio.lowlevel.Task) -> None:
        self._client = client
        self._started = 0.0
        self.longest_ms = 0.0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._started = time.thread_time()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        if task is not self._client:
            took_ms = (time.thread_time() - self._started) * 1000
            self.longest_ms = max(self.longest_ms, took_ms)


def run_session(seed: int) -> dict[str, float]:
    """Send the requests of a seed; returns the longest work for each, in ms. Raises Broken."""
    config = ServerConfig(
        brokers=1,
        topics=TOPICS,
        seed=seed,
        configs={
            "authorizer.class.name": STANDARD_AUTHORIZER,
            "super.users": "User:ANONYMOUS",
            "group.initial.rebalance.delay.ms": "0",
            "offsets.topic.num.partitions": "3",
            "transaction.state.log.num.partitions": "3",
        },
    )

    async def session(sim: SimulatedCluster, errors: list[str]) -> dict[str, float]:
        rng = random.Random(f"arrays {seed}")
        await _furnish(sim)
        drawer = RequestDrawer(rng, [topic.topic_id for topic in sim.cluster.topics.values()], b"")
        took: dict[str, float] = {}
        for number in range(REQUESTS):
            key, version = rng.choice(versions())
            request, path = _with_a_long_array(rng, drawer.draw(key, version))
            frame = _frame(key, version, request)
            if frame is None:
                continue
            watch = Stopwatch(trio.lowlevel.current_task())
            trio.lowlevel.add_instrument(watch)
            client = Client(await sim.connect(1))
            await client.ask(key, version, frame)
            await client.wait(ANSWER_S)
            client.close()
            trio.lowlevel.remove_instrument(watch)
            what = f"request {number}, {key.name} v{version} with many {path}: {request!r}"[:1000]
            took[what] = watch.longest_ms
            if errors:
                raise Broken(f"a broker logs an error at {what}: {errors[0]}")
        return took

    return with_cluster(config, session)


async def _furnish(sim: SimulatedCluster) -> None:
    """Give the cluster a group with members and offsets, and ACLs."""
    client = Client(await sim.connect(1))
    find = FindCoordinatorRequest(coordinator_keys=["consumer"])
    await client.answer_to(ApiKey.FIND_COORDINATOR, 4, find)
    rows = [OffsetCommitRequestPartition(index, 5) for index in range(5)]
    topics = [OffsetCommitRequestTopic(spec.name, partitions=rows) for spec in TOPICS]
    await client.answer_to(
        ApiKey.OFFSET_COMMIT, 9, OffsetCommitRequest("consumer", -1, "", topics=topics)
    )
    for number in range(MEMBERS):
        heartbeat = ConsumerGroupHeartbeatRequest(
            "consumer",
            f"member-{number}",
            rebalance_timeout_ms=300_000,
            subscribed_topic_names=[spec.name for spec in TOPICS],
            topic_partitions=[],
        )
        await client.answer_to(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, heartbeat)
    client.close()
    sim.cluster.acls.add(
        *(
            AclBinding(
                ResourceType.TOPIC,
                f"orders-{number}",
                (PatternType.LITERAL, PatternType.PREFIXED)[number % 2],
                "User:alice",
                "*",
                AclOperation.READ,
                AclPermissionType.ALLOW,
            )
            for number in range(500)
        )
    )


def _frame(key: ApiKey, version: int, request: Any) -> bytes | None:
    try:
        frame = b"".join(request_frame(RequestHeader(key, version, 0, "fuzz"), request))
    except EncodeError:
        return None
    return frame if len(frame) <= FRAME_BYTES_MAX else None


def _with_a_long_array(rng: random.Random, request: Any) -> tuple[Any, str]:
    """A request with one of its arrays filled, and the path of that; as it is without one."""
    arrays = list(_arrays(request))
    if not arrays:
        return request, "nothing"
    owner, name, path = rng.choice(arrays)
    element, *_ = getattr(owner, name)
    differ = rng.random() < 0.5
    filled = [_numbered(element, number) if differ else element for number in range(ELEMENTS)]
    setattr(owner, name, filled)
    return request, path


def _arrays(message: Any, path: str = "") -> Iterator[tuple[Any, str, str]]:
    """The struct, field and path of each array with elements; of elements the first one."""
    for name in message.__struct_fields__:
        value = getattr(message, name)
        if isinstance(value, list) and value:
            yield message, name, path + name
            value = value[0]
        if isinstance(value, msgspec.Struct):
            yield from _arrays(value, f"{path}{name}.")


def _numbered(element: Any, number: int) -> Any:
    """An element that differs from the others in its texts and in the index of a partition."""
    match element:
        case str():
            return f"{element[:200]}-{number}"
        case bool():
            return element
        case int():
            return number % 128
        case msgspec.Struct():
            changed: dict[str, Any] = {}
            for name in element.__struct_fields__:
                value = getattr(element, name)
                if isinstance(value, str):
                    changed[name] = f"{value[:200]}-{number}"
                elif name in ("partition", "partition_index", "index"):
                    changed[name] = number
            return replace(element, **changed)
    return element
