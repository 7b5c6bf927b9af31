"""No request keeps the others waiting for long, however many elements it has."""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
import trio

from mockbroker.handlers import load_all
from mockbroker.handlers.base import APIS
from mockbroker.server.config import ServerConfig, TopicSpec
from mockbroker.simulation.streams import SimulatedCluster
from mockbroker_protocol import ApiKey
from mockbroker_protocol.exceptions import EncodeError
from mockbroker_protocol.framing import request_frame
from mockbroker_protocol.headers import RequestHeader
from mockbroker_protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.fuzz.targets.virtual_cluster import with_cluster
from tests.fuzz.targets.wire import Client
from tests.fuzz.work import slowness
from tests.support.wide_requests import (
    GROUP,
    TRANSACTION,
    WIDE,
    Numbering,
    Path,
    WideRequest,
    array_paths,
    elements_each,
)

ELEMENTS_MAX = 20_000  # mockbroker.request.elements.max
TOPICS = 2_000
TOPICS_AT_ONCE = 1_000
PARTS = 8  # the tests that share the APIs
REPEATS = 3
NOT_ASKED = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
STEP_MS_MAX = 500.0  # of the reference machine

load_all()
ASKED = [ApiKey(key) for key in sorted(APIS) if key not in NOT_ASKED]


class LongestStep(trio.abc.Instrument):
    """The longest time, in ms, for which a task has kept the others waiting."""

    def __init__(self) -> None:
        self.ms = 0.0
        self._started = time.thread_time()

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self._started = time.thread_time()

    def after_task_step(self, task: trio.lowlevel.Task) -> None:
        self.ms = max(self.ms, (time.thread_time() - self._started) * 1000)


@pytest.mark.slow
@pytest.mark.parametrize("numbering", Numbering)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_request_of_the_most_elements_does_not_keep_others_waiting(
    part: int, numbering: Numbering
) -> None:
    """Each array of each API, as long as a request may have it."""
    config = ServerConfig(
        brokers=1,
        topics=(TopicSpec(WIDE, ELEMENTS_MAX, 1),),
        seed=1,
        configs={
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.num.partitions": "1",
            "share.coordinator.state.topic.num.partitions": "1",
        },
    )

    async def session(sim: SimulatedCluster, errors: list[str]) -> None:
        await _prepare(sim)
        too_long: dict[str, str] = {}
        asked = 0
        for key in ASKED[part::PARTS]:
            for path in array_paths(key, APIS[key].max_version):
                frame = _frame(sim, key, path, numbering)
                if frame is None:
                    continue
                asked += 1
                took_ms, answer = await _least_ms(sim, key, frame)
                if took_ms > STEP_MS_MAX:
                    name = f"{key.name} {'.'.join(path)}"
                    too_long[name] = f"{took_ms:.0f} ms, errors {dict(_errors(answer))}"
        assert not too_long
        assert not errors
        assert asked >= len(ASKED[part::PARTS]) // 2

    with_cluster(config, session)


async def _prepare(sim: SimulatedCluster) -> None:
    client = Client(await sim.connect(1))
    for first in range(0, TOPICS, TOPICS_AT_ONCE):
        topics = [CreatableTopic(_name(first + n), 1, 1) for n in range(TOPICS_AT_ONCE)]
        request = CreateTopicsRequest(topics, timeout_ms=60_000)
        await client.answer_to(ApiKey.CREATE_TOPICS, 7, request)
    for kind, key in enumerate((GROUP, TRANSACTION)):
        coordinator = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        await client.answer_to(ApiKey.FIND_COORDINATOR, 6, coordinator)
    client.close()


def _name(number: int) -> str:
    return f"topic-{number % TOPICS if number < ELEMENTS_MAX else number}"


def _frame(sim: SimulatedCluster, key: ApiKey, path: Path, numbering: Numbering) -> bytes | None:
    """A request with as many elements as it may have; None if that is too large for a frame."""
    version = APIS[key].max_version
    outer = len(path) - 1
    most = ELEMENTS_MAX if numbering is Numbering.DISTINCT else ELEMENTS_MAX // 2
    count = (most - outer - len(array_paths(key, version))) // elements_each(key, version, path)
    ids = {name: topic.topic_id for name, topic in sim.cluster.topics.items()}
    request = WideRequest(key, version, path, count, numbering, ids, _name)
    try:
        header = RequestHeader(key, version, 0, "wide")
        return b"".join(request_frame(header, request.message()))
    except EncodeError:
        return None


async def _least_ms(sim: SimulatedCluster, key: ApiKey, frame: bytes) -> tuple[float, Any]:
    """The longest step of a request, in ms of the reference machine, and the answer.

    The least of some attempts, as a machine has other work.
    """
    least, answer = float("inf"), None
    for _ in range(REPEATS):
        client = Client(await sim.connect(1))
        gc.collect()
        longest = LongestStep()
        trio.lowlevel.add_instrument(longest)
        await client.ask(key, APIS[key].max_version, frame)
        await client.wait(60.0)
        trio.lowlevel.remove_instrument(longest)
        answer = client.answer
        client.close()
        least = min(least, longest.ms / slowness())
        if least <= STEP_MS_MAX:
            break
    return least, answer


def _errors(message: Any) -> Counter[int]:
    found: Counter[int] = Counter()
    for value in _structs(message):
        error = getattr(value, "error_code", None)
        if error is not None:
            found[int(error)] += 1
    return found


def _structs(value: Any) -> Iterator[Any]:
    if isinstance(value, msgspec.Struct):
        yield value
        for name in value.__struct_fields__:
            yield from _structs(getattr(value, name))
    elif isinstance(value, list):
        for element in value:
            yield from _structs(element)
