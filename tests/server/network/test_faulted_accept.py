"""Connections that rules stall when they are accepted."""

from __future__ import annotations

import socket

import pytest

from mockbroker import Cluster
from mockbroker.client.connection import encode_request
from mockbroker.core.faults.engine import engine_of
from mockbroker.server.config import ListenerSpec
from mockbroker.simulation.streams import simulated_cluster, virtual_run
from mockbroker_protocol.messages.api_versions import ApiVersionsRequest
from mockbroker_protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.support.sockets import close_with_rst
from tests.support.waiting import wait_until


@pytest.mark.parametrize(
    "ended_by", ["its time", "the removal of the rule", "the broker", "FIN", "RST"]
)
def test_nothing_is_left_of_a_stall_that_is_over(ended_by: str) -> None:
    async def main() -> tuple[int, int, int, int]:
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
            elif ended_by in ("FIN", "RST"):
                for stream in streams:
                    stream.end.close(reset=ended_by == "RST")
            else:
                engine_of(sim.cluster).remove(name)
            await sim.sleep(100)
            clients = len(sim.server.socket_servers[1].clients())
            return stalled, len(rule.removal), len(timers.pending(1_000)) - before, clients

    stalled, left, timers, clients = virtual_run(main, seed=1)
    assert (stalled, left) == (3, 0)
    assert timers <= 0
    # There is one more, which nothing stalls; it has been idle for too long after an hour.
    assert clients == {"the broker": 0, "FIN": 1, "RST": 1, "its time": 3}.get(ended_by, 4)


@pytest.mark.parametrize("at", ["tls", "sasl"])
@pytest.mark.parametrize("how", ["FIN", "RST"])
def test_a_client_that_gives_up_ends_its_stall(at: str, how: str) -> None:
    """Bytes that it sent before stay unread. The journal says who closed the connection."""
    protocol = "SSL" if at == "tls" else "SASL_PLAINTEXT"
    listeners = [ListenerSpec("ADMIN"), ListenerSpec("STALLED", security_protocol=protocol)]
    hello = encode_request(SaslHandshakeRequest("PLAIN"), 1, 1, "test")
    with Cluster(brokers=1, listeners=listeners, users={"alice": "secret"}) as kafka:
        rule = kafka.faults.add(match={"listener": "STALLED"}, do={"stall_handshake": {"at": at}})
        clients = [socket.create_connection(kafka.endpoint(1, "STALLED")) for _ in range(3)]
        for client in clients:
            client.sendall(hello)
        rule.wait(hits=len(clients))
        assert len(kafka.connections()) == len(clients)
        for client in clients:
            if how == "RST":
                close_with_rst(client)
            else:
                client.close()
        wait_until(lambda: kafka.connections() == [], what="the end of the connections")
        kafka.journal.exactly(3, kind="connection", change="closed", reason="closed by the client")
