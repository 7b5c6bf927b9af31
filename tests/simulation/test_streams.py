"""A cluster in memory and in virtual time, with clients that are trio tasks of the same run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
import trio

from mockbroker.server.config import ListenerSpec, ServerConfig, ServerError, TopicSpec
from mockbroker.simulation.streams import (
    SimulatedCluster,
    Wires,
    simulated_cluster,
    virtual_run,
)
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.api_versions import ApiVersionsRequest
from mockbroker_protocol.messages.list_groups import ListGroupsRequest
from mockbroker_protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from mockbroker_protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.support.streaming import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    answer_to,
    ask,
    encode_request,
    fetch,
    leader,
    produce,
)

T = TypeVar("T")
AT_ONCE = Wires((0, 0), 0.0)


def within(test: Callable[[SimulatedCluster], Awaitable[T]], *, seed: int = 1, **cluster: Any) -> T:
    """What `test` returns for a cluster of its own."""

    async def main() -> T:
        async with simulated_cluster(**{"topics": {"orders": 1}, **cluster}) as sim:
            return await test(sim)

    return virtual_run(main, seed=seed)


async def traffic(sim: SimulatedCluster) -> str:
    """Four producers and two consumers, a leader that dies; the hash of the journal."""
    done = trio.Event()

    async def produce_some(number: int) -> None:
        for count in range(10):
            try:
                stream = await sim.connect(leader(sim))
                await ask(stream, produce(b"%d-%d" % (number, count)), PRODUCE_VERSION)
                await stream.aclose()
            except (OSError, EOFError, trio.BrokenResourceError):
                await sim.sleep(20)

    async def consume() -> None:
        offset = 0
        while not done.is_set():
            try:
                stream = await sim.connect(leader(sim))
                answer = await ask(stream, fetch(offset, max_wait_ms=50), FETCH_VERSION)
                offset += len(answer.responses[0].partitions[0].records or b"") > 0
                await stream.aclose()
            except (OSError, EOFError, trio.BrokenResourceError):
                await sim.sleep(10)

    async with trio.open_nursery() as clients:
        for _ in range(2):
            clients.start_soon(consume)
        async with trio.open_nursery() as producers:
            for number in range(4):
                producers.start_soon(produce_some, number)
            await sim.sleep(15)
            sim.act("stop_broker", node=leader(sim), how="unclean")
        done.set()
    return sim.journal_hash()


# -- one seed, one history -------------------------------------------------------------------------


def test_a_seed_decides_all_that_happens() -> None:
    hashes = [within(traffic, seed=seed) for seed in range(5)]
    assert hashes == [within(traffic, seed=seed) for seed in range(5)]
    assert len(set(hashes)) == 5


def test_the_journal_is_the_same_in_processes_that_hash_differently() -> None:
    program = """
from tests.simulation.test_streams import traffic, within
print(within(traffic, seed=3))
"""
    hashes = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert hashes == {within(traffic, seed=3) + "\n"}


def test_a_cluster_may_have_another_seed_than_its_run() -> None:
    """Then the order of tasks is the run's, and ids and the network are the cluster's."""
    assert within(traffic, seed=1) != within(traffic, seed=1, wires=AT_ONCE)

    async def main(seed: int | None) -> str:
        async with simulated_cluster(topics={"orders": 1}, seed=seed) as sim:
            assert sim.seed == (1 if seed is None else seed)
            return sim.cluster.cluster_id

    assert virtual_run(main, None, seed=1) == virtual_run(main, 1, seed=1)
    assert virtual_run(main, 2, seed=1) != virtual_run(main, 1, seed=1)


# -- clients ---------------------------------------------------------------------------------------


def test_a_trio_client_produces_and_fetches() -> None:
    async def test(sim: SimulatedCluster) -> bytes:
        stream = await sim.connect(leader(sim))
        await ask(stream, produce(b"hello"), PRODUCE_VERSION)
        answer = await ask(stream, fetch(), FETCH_VERSION, 2)
        return bytes(answer.responses[0].partitions[0].records)

    assert b"hello" in within(test)


def test_a_fetch_that_waits_takes_virtual_time_only() -> None:
    """Ten minutes at the end of the log, to the millisecond."""

    async def test(sim: SimulatedCluster) -> None:
        stream = await sim.connect(leader(sim))
        began_ms = sim.now_ms
        answer = await ask(stream, fetch(max_wait_ms=600_000), FETCH_VERSION)
        assert answer.responses[0].partitions[0].error_code == ErrorCode.NONE
        assert sim.now_ms - began_ms == 600_000

    within(test, wires=AT_ONCE)


def test_a_fetch_that_waits_makes_way_for_the_next_request() -> None:
    """Also for one that was sent together with it."""

    async def test(sim: SimulatedCluster) -> None:
        began_ms = sim.now_ms
        stream = await sim.connect(leader(sim))
        waiting = fetch(max_wait_ms=60_000)
        first = encode_request(waiting, FETCH_VERSION, 1, "test")
        second = encode_request(ListGroupsRequest(), 4, 2, "test")
        for apart in (True, False):
            if apart:
                await stream.send_all(first)
                await sim.sleep(100)
                await stream.send_all(second)
            else:
                await stream.send_all(first + second)
            await answer_to(stream, waiting, FETCH_VERSION, 1)
            await answer_to(stream, ListGroupsRequest(), 4, 2)
        assert sim.now_ms - began_ms < 1_000

    within(test)


def test_an_answer_larger_than_the_network_comes_in_pieces() -> None:
    """The broker waits for a client that reads slowly, and serves others meanwhile."""
    value = os.urandom(200_000)

    async def test(sim: SimulatedCluster) -> None:
        slow, other = await sim.connect(leader(sim)), await sim.connect(leader(sim))
        await ask(slow, produce(value), PRODUCE_VERSION)
        await slow.send_all(encode_request(fetch(), FETCH_VERSION, 1, "test"))
        await sim.sleep(1_000)
        await ask(other, ApiVersionsRequest(), 0)
        answer = await answer_to(slow, fetch(), FETCH_VERSION)
        assert value in bytes(answer.responses[0].partitions[0].records)

    within(test, wires=Wires((1, 5), 0.5, buffer_bytes=10_000))


def test_what_is_no_request_closes_the_connection() -> None:
    async def test(sim: SimulatedCluster) -> None:
        stream = await sim.connect(1)
        await stream.send_all(b"GET / HTTP/1.1\r\n\r\n")
        with pytest.raises((EOFError, trio.BrokenResourceError)):
            await answer_to(stream, ApiVersionsRequest(), 0)
        assert sim.server.stats.protocol_errors == 1

    within(test)


# -- brokers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["controlled", "unclean"])
def test_a_stopped_broker_ends_its_connections_and_refuses_others(how: str) -> None:
    """With FIN after a controlled shutdown, with RST where it was killed."""

    async def test(sim: SimulatedCluster) -> None:
        stream = await sim.connect(1)
        await ask(stream, ApiVersionsRequest(), 0)
        sim.act("stop_broker", node=1, how=how)
        if how == "controlled":
            assert await stream.receive_some() == b""
        else:
            with pytest.raises(trio.BrokenResourceError, match="reset"):
                await stream.receive_some()
        with pytest.raises(ConnectionRefusedError):
            await sim.connect(1)
        sim.act("start_broker", node=1)
        await ask(await sim.connect(1), ApiVersionsRequest(), 0)

    within(test)


def test_a_broker_that_is_not_there_refuses() -> None:
    async def test(sim: SimulatedCluster) -> None:
        with pytest.raises(ConnectionRefusedError):
            await sim.connect(9)
        sim.act("add_broker", node=9)
        await ask(await sim.connect(9), ApiVersionsRequest(), 0)

    within(test)


def test_a_paused_broker_accepts_and_answers_when_it_is_resumed() -> None:
    """Each client that waits is answered, whatever it waited for."""

    async def test(sim: SimulatedCluster) -> None:
        node_id = leader(sim)
        waiting = [await sim.connect(node_id) for _ in range(2)]
        for stream in waiting:
            await stream.send_all(encode_request(fetch(max_wait_ms=400), FETCH_VERSION, 1, "test"))
        await sim.sleep(100)
        sim.act("pause_broker", node=node_id)
        late = await sim.connect(node_id)
        await late.send_all(encode_request(ApiVersionsRequest(), 0, 1, "test"))
        with trio.move_on_after(60.0) as patience:
            await late.receive_some()
        assert patience.cancelled_caught
        sim.act("resume_broker", node=node_id)
        await answer_to(late, ApiVersionsRequest(), 0)
        for stream in waiting:
            answer = await answer_to(stream, fetch(), FETCH_VERSION)
            assert answer.responses[0].partitions[0].error_code == ErrorCode.NONE
            await ask(stream, ApiVersionsRequest(), 0)

    within(test)


# -- rules -----------------------------------------------------------------------------------------


def test_rules_work_on_real_connections() -> None:
    """A delay takes virtual time; a lost answer, a cut one and a refusal are what they are."""

    async def test(sim: SimulatedCluster) -> None:
        match = {"api": "ApiVersions"}
        sim.add_rule({"match": match, "when": {"times": 1}, "do": {"delay": "90s"}})
        stream = await sim.connect(1)
        began_ms = sim.now_ms
        await ask(stream, ApiVersionsRequest(), 0)
        assert 90_000 <= sim.now_ms - began_ms < 90_100

        sim.add_rule({"match": match, "when": {"times": 1}, "do": {"drop_reply": {}}})
        with trio.move_on_after(30.0) as patience:
            await ask(stream, ApiVersionsRequest(), 0)
        assert patience.cancelled_caught
        await ask(stream, ApiVersionsRequest(), 0)

        cut = {"truncate_reply": {"fraction": 0.5, "then": "reset"}}
        sim.add_rule({"match": match, "when": {"times": 1}, "do": cut})
        with pytest.raises((EOFError, trio.BrokenResourceError)):
            await ask(stream, ApiVersionsRequest(), 0)

        sim.add_rule({"when": {"times": 1}, "do": {"refuse_connection": {"how": "rst"}}})
        refused = await sim.connect(1)
        with pytest.raises(trio.BrokenResourceError):
            await ask(refused, ApiVersionsRequest(), 0)

    within(test)


def test_the_clock_can_be_moved_on_by_an_action() -> None:
    async def test(sim: SimulatedCluster) -> None:
        began_ms = sim.now_ms
        sim.act("set_clock", advance="1h")
        await sim.sleep(1)
        assert sim.now_ms - began_ms in (3_600_000, 3_600_001)

    within(test)


# -- what it is started from -----------------------------------------------------------------------


def test_a_config_of_ones_own() -> None:
    """With SASL, for instance: the connection asks who is there first."""
    listener = ListenerSpec("SASL", security_protocol="SASL_PLAINTEXT")
    config = ServerConfig(
        brokers=1, listeners=[listener], users={"ann": "secret"}, topics=[TopicSpec("orders")]
    )

    async def test(sim: SimulatedCluster) -> None:
        stream = await sim.connect(1, "SASL")
        await ask(stream, SaslHandshakeRequest(mechanism="PLAIN"), 1)
        proof = SaslAuthenticateRequest(auth_bytes=b"\0ann\0secret")
        assert (await ask(stream, proof, 2)).error_code == ErrorCode.NONE
        await ask(stream, ApiVersionsRequest(), 0)

    within(test, config=config)


def test_what_memory_cannot_carry_is_refused() -> None:
    async def tls() -> None:
        listeners = [ListenerSpec("TLS", security_protocol="SSL")]
        async with simulated_cluster(ServerConfig(listeners=listeners)):
            pass

    with pytest.raises(ServerError, match="carries no TLS"):
        virtual_run(tls, seed=1)

    async def plain() -> None:
        async with simulated_cluster():
            pass

    with pytest.raises(RuntimeError, match="virtual_run"):
        trio.run(plain)


def test_without_a_journal_there_is_no_hash() -> None:
    async def test(sim: SimulatedCluster) -> None:
        with pytest.raises(RuntimeError, match="no journal"):
            sim.journal_hash()

    within(test, config=ServerConfig(journal_bytes=0))
