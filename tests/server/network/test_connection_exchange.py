"""The path of a request without rules: one test of `cluster.faults`."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading

import pytest
import trio

from mockbroker import Cluster
from mockbroker.client import Client
from mockbroker.client.connection import encode_request
from mockbroker.client.errors import ClientError
from mockbroker.core.cluster import Cluster as CoreCluster
from mockbroker.core.faults.engine import FaultEngine
from mockbroker.simulation.streams import simulated_cluster, virtual_run
from mockbroker_protocol.messages.api_versions import ApiVersionsRequest
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tests.support.logged import logged
from tests.support.traced import traced


class _Counting(CoreCluster):
    """A cluster that counts how often somebody looks at `faults`."""

    looks = 0

    @property
    def faults(self) -> FaultEngine | None:  # type: ignore[override]
        _Counting.looks += 1
        return None


def test_without_rules_a_request_costs_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests and connections, each one; the engine is never asked."""
    asked: list[object] = []
    monkeypatch.setattr(FaultEngine, "evaluate", lambda *_: asked.append("request"))
    monkeypatch.setattr(FaultEngine, "evaluate_accept", lambda *_: asked.append("connection"))
    with Cluster(brokers=1, topics={"t": 1}) as kafka:

        def count(cluster: CoreCluster) -> None:
            del cluster.__dict__["faults"]
            cluster.__class__ = _Counting

        kafka.call(count)
        _Counting.looks = 0
        with Client(kafka.bootstrap_servers) as client:
            client.metadata()
            client.metadata()
        server = kafka.server
        requests = kafka.call(lambda _: sum(server.stats.requests.values()))
        connections = kafka.call(lambda _: server.stats.connections_opened)
        looks = _Counting.looks
    assert requests >= 3
    assert looks == requests + connections
    assert asked == []


def test_without_rules_nothing_of_faults_is_imported() -> None:
    """Nothing but what the arguments of actions are read with."""
    code = (
        "import sys\n"
        "from mockbroker import Cluster\n"
        "with Cluster(brokers=1, topics={'t': 1}): pass\n"
        "found = {m for m in sys.modules if 'fault' in m or m.startswith('mockbroker.exchange')}\n"
        "home = 'mockbroker.core.faults'\n"
        "found -= {home, f'{home}.convert', f'{home}.errors'}\n"
        "found |= {m for m in sys.modules if m.endswith('connection_exchange')}\n"
        "assert not found, found\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_effects_of_one_rule_go_together_whatever_their_order() -> None:
    """The refusal comes first in the data, and still waits for the delay."""
    with Cluster(brokers=1, topics={"t": 1}) as kafka:
        kafka.clock.freeze()
        rule = kafka.faults.add(
            match={"api": "Metadata"},
            when={"times": 1},
            do={"error": "UNKNOWN_SERVER_ERROR", "delay": "5s"},
        )
        answered = threading.Event()

        def ask() -> None:
            with Client(kafka.bootstrap_servers) as client, contextlib.suppress(Exception):
                client.metadata()
            answered.set()

        thread = threading.Thread(target=ask)
        thread.start()
        rule.wait()
        assert not answered.is_set()
        kafka.clock.advance("5s")
        assert answered.wait(30)
        thread.join(30)


def test_a_rule_that_fails_costs_its_connection_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr("mockbroker.exchange.faulted.FaultedExchange._after", fail)
    with Cluster(brokers=1, topics={"t": 1}) as kafka:
        kafka.faults.add(name="bad", match={"api": "Metadata"}, do={"delay": 0})
        with Client(kafka.bootstrap_servers) as client, pytest.raises(ClientError):
            client.metadata()
        kafka.faults.clear()
        with Client(kafka.bootstrap_servers) as client:
            assert client.metadata() is not None
    assert "a rule could not be carried out: bad" in caplog.text


def test_records_a_thousand_times_take_no_memory_and_close_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A client that catches up gets 50 MB at a time; thousand times that would end the process."""
    with Cluster(brokers=1, topics={"t": 1}) as kafka, Client(kafka.bootstrap_servers) as client:
        for _ in range(4):
            client.produce("t", [bytes(500_000)])
        kafka.faults.add(match={"api": "Fetch"}, do={"duplicate_records": 1_000})
        partition = FetchPartition(partition=0, partition_max_bytes=1 << 20)
        topics = [FetchTopic(topic="t", partitions=[partition])]
        leader = client.leader("t", 0)
        with traced() as memory, pytest.raises(ClientError):
            leader.send(FetchRequest(max_bytes=1 << 20, topics=topics), 12)
    assert memory.peak < 64 << 20
    [line] = [record.getMessage() for record in logged(caplog)]
    assert "FETCH" in line
    assert "the limit is mockbroker.response.bytes.max" in line


@pytest.mark.parametrize("reset", [True, False])
def test_a_client_may_leave_while_its_answer_waits_for_another(
    caplog: pytest.LogCaptureFixture, reset: bool
) -> None:
    """That is no failure of the broker."""

    async def main() -> None:
        async with simulated_cluster(brokers=1) as sim:
            sim.add_rule({"do": {"reorder_replies": "5s"}})
            stream = await sim.connect(1)
            await stream.send_all(encode_request(ApiVersionsRequest(), 0, 1, "test"))
            await sim.sleep(1_000)
            if reset:
                stream.reset()
            else:
                await stream.aclose()
            await sim.sleep(10_000)

    virtual_run(main, seed=1)
    assert [record.getMessage() for record in logged(caplog) if record.exc_info] == []


def test_a_paused_broker_serves_no_request_that_an_answer_waits_for() -> None:
    async def main() -> tuple[bytes, list[int]]:
        async with simulated_cluster(brokers=1) as sim:
            sim.add_rule({"when": {"times": 1}, "do": {"reorder_replies": "1h"}})
            stream = await sim.connect(1)
            await stream.send_all(encode_request(ApiVersionsRequest(), 0, 1, "test"))
            await sim.sleep(100)
            sim.act("pause_broker", node=1)
            await stream.send_all(encode_request(ApiVersionsRequest(), 0, 2, "test"))
            early = b""
            with trio.move_on_after(60):
                early = await stream.receive_some(1 << 16)
            sim.act("resume_broker", node=1)
            got = early
            while len(frames := whole_frames(got)) < 2:
                got += await stream.receive_some(1 << 16)
            return early, [int.from_bytes(frame[:4], "big") for frame in frames]

    assert virtual_run(main, seed=1) == (b"", [2, 1])


def whole_frames(data: bytes) -> list[bytes]:
    """The frames of a stream, without their sizes; the last may not have arrived yet."""
    frames = []
    while len(data) >= 4 and len(data) >= 4 + (size := int.from_bytes(data[:4], "big")):
        frames.append(data[4 : 4 + size])
        data = data[4 + size :]
    return frames


@pytest.mark.parametrize(("close", "ended_by"), [("fin", "its end"), ("rst", "a reset")])
def test_a_rule_on_the_next_request_may_close_while_an_answer_waits(
    caplog: pytest.LogCaptureFixture, close: str, ended_by: str
) -> None:
    """The answer that waits is not sent: there is no connection left."""

    async def main() -> str:
        async with simulated_cluster(brokers=1) as sim:
            sim.add_rule(
                {"match": {"api": "ApiVersions"}, "when": {"nth": 1}, "do": {"reorder_replies": 5}}
            )
            sim.add_rule(
                {"match": {"api": "ApiVersions"}, "when": {"nth": 2}, "do": {"close": close}}
            )
            stream = await sim.connect(1)
            for correlation_id in (1, 2):
                await stream.send_all(
                    encode_request(ApiVersionsRequest(), 0, correlation_id, "test")
                )
            try:
                got = await stream.receive_some(1 << 16)
            except trio.BrokenResourceError:
                return "a reset"
            return "its end" if got == b"" else f"{len(got)} bytes"

    assert virtual_run(main, seed=1) == ended_by
    assert [record.getMessage() for record in logged(caplog) if record.exc_info] == []
