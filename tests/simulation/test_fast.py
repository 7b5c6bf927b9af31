"""The fast way to run a simulation does what connections do."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from mockbroker.handlers.slices import in_slices
from mockbroker.simulation import ClientSettings, Plan, Settings, TopicSettings
from mockbroker.simulation.fast import FastRun
from mockbroker.simulation.plan import Step
from mockbroker.simulation.world import World
from mockbroker_protocol import ApiKey
from tests.support.handlers import replace_handler

ONCE_LATE = {
    "match": {"api": "Produce"},
    "when": {"times": 1},
    "do": {"delay": "2s"},
}


@pytest.mark.parametrize("ending", ["stop_broker", "remove_broker", "restart"])
def test_a_request_that_a_rule_delays_ends_with_the_process_of_its_broker(ending: str) -> None:
    """The producer sends the batch again to the next process, and that is the only one."""
    steps = [
        Step(at_ms=0, do="add_rule", arguments=ONCE_LATE),
        Step(at_ms=1_000, do=ending, arguments={} if ending == "restart" else {"node": 1}),
    ]
    match ending:
        case "stop_broker":
            steps.append(Step(at_ms=1_200, do="start_broker", arguments={"node": 1}))
        case "remove_broker":
            steps.append(Step(at_ms=1_200, do="add_broker", arguments={"node": 1}))
    writer = ClientSettings(
        kind="producer", name="writer", topics=["orders"], operations=1, idempotent=False
    )
    settings = Settings(brokers=1, topics=[TopicSettings(name="orders")], duration_ms=5_000)
    world = World(Plan(seed=1, settings=settings, clients=[writer], steps=steps))
    FastRun(world).run()
    assert world.history.counts["calls disconnected"] > 0
    (sent,) = world.history.acked
    assert world.cluster.topics["orders"].partitions[0].log.end_offset == len(sent.values)


@pytest.mark.parametrize("late", [False, True])
def test_a_defect_of_a_handler_ends_the_simulation(
    monkeypatch: pytest.MonkeyPatch, *, late: bool
) -> None:
    """Its client gets UNKNOWN_SERVER_ERROR, which no law minds."""

    def work() -> Generator[None, None, None]:
        yield None
        raise ZeroDivisionError("planted")

    def fail(context: Any, request: Any) -> object:
        return in_slices(context, request, work()) if late else 1 // 0

    replace_handler(monkeypatch, ApiKey.METADATA, fail)
    writer = ClientSettings(kind="producer", name="writer", topics=["orders"], operations=1)
    settings = Settings(brokers=1, topics=[TopicSettings(name="orders")], duration_ms=5_000)
    with pytest.raises(ZeroDivisionError):
        FastRun(World(Plan(seed=1, settings=settings, clients=[writer]))).run()
