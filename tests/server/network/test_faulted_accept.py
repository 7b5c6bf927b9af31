"""Connections that rules stall when they are accepted."""

from __future__ import annotations

import pytest

from mockbroker.client.connection import encode_request
from mockbroker.core.faults.engine import engine_of
from mockbroker.simulation.streams import simulated_cluster, virtual_run
from mockbroker_protocol.messages.api_versions import ApiVersionsRequest


@pytest.mark.parametrize("ended_by", ["its time", "the removal of the rule", "the broker"])
def test_nothing_is_left_of_a_stall_that_is_over(ended_by: str) -> None:
    async def main() -> tuple[int, int, int]:
        async with simulated_cluster(brokers=1) as sim:
            timers = sim.cluster.runtime.timers
            await sim.connect(1)  # there is a timer for idle connections
            await sim.sleep(100)
            before = len(timers.pending(1_000))
            name = sim.add_rule({"do": {"stall_handshake": {"for": "1h"}}})
            rule = engine_of(sim.cluster).rule(name)
            streams = [await sim.connect(1) for _ in range(3)]
            for stream in streams:
                await stream.send_all(encode_request(ApiVersionsRequest(), 0, 1, "test"))
            await sim.sleep(100)
            stalled = len(rule.removal)
            if ended_by == "its time":
                await sim.sleep(3_600_000)
            elif ended_by == "the broker":
                sim.act("stop_broker", node=1)
            else:
                engine_of(sim.cluster).remove(name)
            await sim.sleep(100)
            return stalled, len(rule.removal), len(timers.pending(1_000)) - before

    stalled, left, timers = virtual_run(main, seed=1)
    assert (stalled, left) == (3, 0)
    assert timers <= 0
