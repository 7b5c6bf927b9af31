"""Scripts over connections in memory, and what these meet with."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable

import pytest
import trio

from mockbroker.simulation.script import Call, Disconnected, RequestTimedOut, Script, Sleep
from mockbroker.simulation.stream_driver import NO_TROUBLES, InvalidResponse, StreamDriver, Troubles
from mockbroker.simulation.streams import SimulatedCluster, simulated_cluster, virtual_run
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.list_groups import ListGroupsRequest
from mockbroker_protocol.messages.produce import ProduceRequest
from tests.support.streaming import fetch, leader, produce

LIST_GROUPS = Call(1, ApiKey.LIST_GROUPS, 4, ListGroupsRequest())


def driven(
    script: Callable[[list[object], SimulatedCluster], Script],
    troubles: Troubles = NO_TROUBLES,
    beside: Callable[[SimulatedCluster], Awaitable[None]] | None = None,
    seed: int = 1,
) -> tuple[list[object], StreamDriver, SimulatedCluster]:
    """What a script has noted, its driver and the cluster, once it is over."""

    async def main() -> tuple[list[object], StreamDriver, SimulatedCluster]:
        async with simulated_cluster(topics={"orders": 1}) as sim:
            seen: list[object] = []
            driver = StreamDriver(sim, "client", random.Random(seed), troubles)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(driver.run, script(seen, sim))
                if beside is not None:
                    nursery.start_soon(beside, sim)
            return seen, driver, sim

    return virtual_run(main, seed=seed)


def calls(count: int, *call: Call) -> Callable[[list[object], SimulatedCluster], Script]:
    """So many rounds of calls, one after the other, whatever comes of them."""

    def script(seen: list[object], sim: SimulatedCluster) -> Script:
        for _ in range(count):
            for each in call:
                try:
                    seen.append((yield each))
                except (Disconnected, RequestTimedOut) as error:
                    seen.append(type(error))

    return script


def test_a_script_is_sent_answers_and_sleeps_in_the_clusters_time() -> None:
    def script(seen: list[object], sim: SimulatedCluster) -> Script:
        call = Call(leader(sim), ApiKey.PRODUCE, 9, produce(b"one"))
        seen.append((yield call).responses[0].partition_responses[0].base_offset)
        before_ms = sim.now_ms
        seen.append((yield Sleep(250)))
        seen.append(sim.now_ms - before_ms)
        call = Call(leader(sim), ApiKey.FETCH, 11, fetch())
        seen.append(b"one" in bytes((yield call).responses[0].partitions[0].records))

    seen, driver, _ = driven(script)
    assert seen == [0, None, 250, True]
    assert driver.counts == {"connections": 1}


def test_a_produce_that_asks_for_no_answer_gets_none() -> None:
    def script(seen: list[object], sim: SimulatedCluster) -> Script:
        once = produce(b"one")
        request = ProduceRequest(acks=0, timeout_ms=1, topic_data=once.topic_data)
        seen.append((yield Call(leader(sim), ApiKey.PRODUCE, 9, request)))
        yield Sleep(100)
        seen.append(sim.cluster.topics["orders"].partitions[0].log_end_offset)

    assert driven(script)[0] == [None, 1]


def test_a_broker_that_is_down_or_dies_disconnects() -> None:
    def script(seen: list[object], sim: SimulatedCluster) -> Script:
        node_id = leader(sim)
        waiting = Call(node_id, ApiKey.FETCH, 11, fetch(max_wait_ms=20_000))
        for what in ("dies", "is down"):
            try:
                yield waiting
            except Disconnected as error:
                seen.append((what, str(error)))

    async def kill(sim: SimulatedCluster) -> None:
        await sim.sleep(1_000)
        sim.act("stop_broker", node=leader(sim), how="unclean")

    seen, _, _ = driven(script, beside=kill)
    assert [what for what, _ in seen] == ["dies", "is down"]  # type: ignore[misc]
    assert "reset by peer" in seen[0][1]  # type: ignore[index]
    assert "refused the connection" in seen[1][1]  # type: ignore[index]


def test_patience_ends_on_time_and_with_it_the_connection() -> None:
    """The next call goes over another one."""

    def script(seen: list[object], sim: SimulatedCluster) -> Script:
        began_ms = sim.now_ms
        sim.act("pause_broker", node=1)
        try:
            yield LIST_GROUPS._replace(timeout_ms=5_000)
        except RequestTimedOut:
            seen.append(sim.now_ms - began_ms)
        sim.act("resume_broker", node=1)
        seen.append((yield LIST_GROUPS).error_code)

    seen, driver, _ = driven(script)
    assert seen[0] in range(5_000, 5_003)
    assert seen[1] == 0
    assert driver.counts["connections"] == 2


def test_the_timeout_also_ends_a_call_whose_frame_is_not_read() -> None:
    """A paused broker leaves it in the network, which is full after a while."""

    def script(seen: list[object], sim: SimulatedCluster) -> Script:
        node_id = leader(sim)
        sim.act("pause_broker", node=node_id)
        large = Call(node_id, ApiKey.PRODUCE, 9, produce(bytes(300_000)), 5_000)
        for _ in range(2):
            try:
                yield large
            except RequestTimedOut as error:
                seen.append(str(error))

    assert driven(script)[0] == ["no answer within the timeout"] * 2


@pytest.mark.parametrize("name", ["break_before_share", "half_frame_share", "break_after_share"])
def test_connections_break_where_they_can(name: str) -> None:
    """Nobody but this client notices."""
    seen, driver, sim = driven(calls(20, LIST_GROUPS), NO_TROUBLES._replace(**{name: 1.0}))
    assert len(seen) == driver.counts[name.removesuffix("_share")] == 20
    assert Disconnected in seen
    if name != "break_after_share":
        assert set(seen) == {Disconnected}
    opened, closed = sim.server.stats.connections_opened, sim.server.stats.connections_closed
    assert opened == closed == driver.counts["connections"]


@pytest.mark.parametrize("name", ["slow_frame_share", "slow_read_share"])
def test_slow_clients_are_answered(name: str) -> None:
    seen, driver, _ = driven(calls(20, LIST_GROUPS), NO_TROUBLES._replace(**{name: 1.0}))
    assert [answer.error_code for answer in seen] == [0] * 20  # type: ignore[attr-defined]
    assert driver.counts[name.removesuffix("_share")] == 20


def test_troubles_come_as_often_as_they_are_to() -> None:
    shares = NO_TROUBLES._replace(break_before_share=0.1, slow_read_share=0.3)
    _, driver, _ = driven(calls(400, LIST_GROUPS), shares)
    assert 20 <= driver.counts["break_before"] <= 60
    assert 90 <= driver.counts["slow_read"] <= 150


def test_no_trouble_comes_after_they_have_ended() -> None:
    async def main() -> list[object]:
        async with simulated_cluster(topics={"orders": 1}) as sim:
            seen: list[object] = []
            driver = StreamDriver(sim, "client", random.Random(1), Troubles(1.0))

            def script() -> Script:
                yield from calls(3, LIST_GROUPS)(seen, sim)
                driver.end_troubles()
                yield from calls(3, LIST_GROUPS)(seen, sim)

            await driver.run(script())
            return [each if isinstance(each, type) else "answered" for each in seen]

    assert virtual_run(main, seed=1) == [Disconnected] * 3 + ["answered"] * 3


def test_an_answer_to_something_else_disconnects() -> None:
    """As Java's clients close a connection whose answers do not fit."""

    def script(seen: list[object], sim: SimulatedCluster) -> Script:
        do = {"corrupt_reply": {"how": "wrong_correlation_id"}}
        sim.add_rule({"match": {"api": "ListGroups"}, "when": {"times": 1}, "do": do})
        try:
            yield LIST_GROUPS
        except InvalidResponse as error:
            seen.append(str(error))
        seen.append((yield LIST_GROUPS).error_code)

    seen, driver, _ = driven(script)
    assert "correlation id" in str(seen[0])
    assert seen[1:] == [0]
    assert driver.counts["connections"] == 2


def test_a_client_that_crashes_says_nothing_more() -> None:
    """Its script is closed at once, its connections are reset."""

    async def main() -> tuple[list[str], int]:
        async with simulated_cluster(topics={"orders": 1}) as sim:
            seen: list[str] = []

            def script() -> Script:
                try:
                    yield Call(leader(sim), ApiKey.FETCH, 11, fetch(max_wait_ms=20_000))
                finally:
                    seen.append("closed")

            told: list[object] = []
            driver = StreamDriver(
                sim, "client", random.Random(1), on_call_done=lambda *what: told.append(what)
            )
            async with trio.open_nursery() as nursery:
                nursery.start_soon(driver.run, script())
                await sim.sleep(1_000)
                driver.crash()
                assert seen == ["closed"]
            await sim.sleep(20_000)  # a broker looks at a connection when it has an answer
            assert told == []
            return seen, sim.server.stats.connections_closed

    assert virtual_run(main, seed=1) == (["closed"], 1)


def test_who_wants_to_know_is_told_of_each_call() -> None:
    async def main() -> None:
        async with simulated_cluster() as sim:
            made: list[Call] = []
            told: list[tuple[Call, object, int]] = []
            driver = StreamDriver(
                sim,
                "client",
                random.Random(1),
                on_call=made.append,
                on_call_done=lambda *what: told.append(what),
            )
            began_ms = sim.now_ms
            lost = LIST_GROUPS._replace(node_id=9)
            await driver.run(calls(1, LIST_GROUPS, lost)([], sim))
            assert [call for call, _, _ in told] == made == [LIST_GROUPS, lost]
            assert told[0][2] == began_ms
            assert isinstance(told[1][1], Disconnected)

    virtual_run(main, seed=1)
