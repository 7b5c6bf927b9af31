"""Clients of a broker that stops, fails, restarts or is paused."""

from __future__ import annotations

import socket

import pytest
import trio
import trio.testing

from mockbroker import Cluster
from mockbroker.client.connection import Connection
from mockbroker.client.errors import ConnectError, RequestTimeoutError
from mockbroker.server.cluster_server import open_server
from mockbroker.server.config import ServerConfig
from mockbroker_protocol.messages.api_versions import ApiVersionsRequest
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from mockbroker_protocol.records import Record, build_batch
from tests.support.waiting import wait_until

TIMEOUT_S = 10.0


@pytest.fixture
def kafka():
    with Cluster(brokers=2, topics={"orders": 1}) as cluster:
        yield cluster


def connect(kafka: Cluster, node_id: int, timeout_s: float = TIMEOUT_S) -> Connection:
    host, port = kafka.endpoint(node_id)
    return Connection(host, port, "raw", timeout_s=timeout_s)


def stop(kafka: Cluster, node_id: int, *, reset: bool) -> None:
    kafka.call(lambda _: kafka.server.socket_servers[node_id].stop(reset=reset))


def ping(connection: Connection) -> None:
    connection.send(ApiVersionsRequest(), 0)


def parked_fetch(max_wait_ms: int = 600_000) -> FetchRequest:
    partitions = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=100)]
    topics = [FetchTopic(topic="orders", partitions=partitions)]
    return FetchRequest(max_wait_ms=max_wait_ms, min_bytes=1, topics=topics)


@pytest.mark.parametrize("reset", [False, True])
def test_a_stopped_broker_ends_its_connections_and_refuses_new_ones(
    kafka: Cluster, reset: bool
) -> None:
    """Idle and parked connections end at once; those of other brokers go on."""
    idle, other = connect(kafka, 1), connect(kafka, 2)
    ping(idle)
    leader = kafka.call(lambda cluster: cluster.topics["orders"].partitions[0].leader_id)
    waiting = connect(kafka, leader)
    waiting.write(parked_fetch(), 11)
    ping(other)
    stop(kafka, 1, reset=reset)
    assert idle.wait_closed(TIMEOUT_S)
    with pytest.raises(ConnectError, match="refused"):
        connect(kafka, 1)
    stop(kafka, leader, reset=reset)
    assert waiting.wait_closed(TIMEOUT_S)
    if leader == 1:
        ping(other)


def test_a_killed_broker_resets_and_a_stopped_one_finishes(kafka: Cluster) -> None:
    """RST is what a client sees of a process that was killed with data unread; else FIN."""
    ended = connect(kafka, 1)
    ping(ended)
    stop(kafka, 1, reset=False)
    raw = socket.socket(fileno=socket.dup(ended.fileno()))
    assert raw.recv(1) == b""
    raw.close()
    killed = connect(kafka, 2)
    ping(killed)
    stop(kafka, 2, reset=True)
    raw = socket.socket(fileno=socket.dup(killed.fileno()))
    with pytest.raises(ConnectionResetError):
        raw.recv(1)
    raw.close()


def test_a_broker_comes_back_on_the_same_port_or_on_a_new_one(kafka: Cluster) -> None:
    """The address that clients are told follows."""
    before = kafka.endpoint(1)
    host = kafka.server.socket_servers[1]
    stop(kafka, 1, reset=True)
    kafka.call(lambda _: host.bind())
    assert kafka.endpoint(1) == before
    ping(connect(kafka, 1))
    stop(kafka, 1, reset=False)
    kafka.call(lambda _: host.bind(new_ports=True))
    ping(connect(kafka, 1))


def takes_port(port: int) -> bool:
    """Whether another program could get a port to which no client has connected."""
    with socket.socket() as other:
        try:
            other.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def test_the_port_of_a_stopped_broker_is_kept_for_its_return(kafka: Cluster) -> None:
    """No other program gets the port meanwhile, and clients are refused."""
    for node_id, how in ((1, "controlled"), (2, "unclean")):
        _, port = kafka.endpoint(node_id)
        kafka.broker(node_id).stop(how=how)
        assert not takes_port(port)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        kafka.broker(node_id).start()
        assert kafka.endpoint(node_id)[1] == port
        ping(connect(kafka, node_id))


def test_the_port_of_a_removed_broker_is_free(kafka: Cluster) -> None:
    """Nobody comes back there, whether the broker ran or was stopped before."""
    ports = [kafka.endpoint(node_id)[1] for node_id in (1, 2)]
    kafka.broker(2).stop()
    kafka.broker(2).remove()
    assert takes_port(ports[1])
    kafka.stop()
    assert takes_port(ports[0])


def test_stopping_and_starting_twice_changes_nothing(kafka: Cluster) -> None:
    """Both are idempotent."""
    host = kafka.server.socket_servers[1]
    stop(kafka, 1, reset=True)
    stop(kafka, 1, reset=True)
    kafka.call(lambda _: host.bind())
    kafka.call(lambda _: host.bind())
    ping(connect(kafka, 1))


def test_a_paused_broker_accepts_and_never_answers_until_it_is_resumed(kafka: Cluster) -> None:
    """Requests wait in the socket; the answer comes after the resume, in order."""
    gate = kafka.server.socket_servers[1].gate
    before = connect(kafka, 1)
    ping(before)
    kafka.call(lambda _: gate.close())
    during = connect(kafka, 1, timeout_s=0.3)
    first = during.write(ApiVersionsRequest(), 0)
    second = during.write(ApiVersionsRequest(), 0)
    with pytest.raises(RequestTimeoutError):
        during.read_frame()
    kafka.call(lambda _: gate.open())
    during.timeout_s = TIMEOUT_S
    assert [during.read(18, 0, first).error_code, during.read(18, 0, second).error_code] == [0, 0]
    ping(before)


def test_a_parked_answer_is_withheld_while_the_broker_is_paused(kafka: Cluster) -> None:
    """What completes meanwhile is sent after the resume."""
    leader = kafka.call(lambda cluster: cluster.topics["orders"].partitions[0].leader_id)
    waiting = connect(kafka, leader, timeout_s=0.3)
    waiting.write(parked_fetch(), 11)
    ping(connect(kafka, leader))  # a later request was served: the fetch is parked by now
    gate = kafka.server.socket_servers[leader].gate
    kafka.call(lambda _: gate.close())
    batch = build_batch([Record(0, 1, None, b"late", ())])
    kafka.call(
        lambda cluster: (
            cluster.topics["orders"].partitions[0].append_records(batch, cluster.runtime.now_ms())
        )
    )
    with pytest.raises(RequestTimeoutError):
        waiting.read_frame()
    kafka.call(lambda _: gate.open())
    waiting.timeout_s = TIMEOUT_S
    answer = waiting.read(1, 11)
    assert b"late" in bytes(answer.responses[0].partitions[0].records)


def test_all_answers_that_a_pause_withheld_are_sent_after_it(kafka: Cluster) -> None:
    """Not only the first one: every client that waits at the log end gets its empty answer."""
    kafka.clock.freeze()
    leader = kafka.call(lambda cluster: cluster.topics["orders"].partitions[0].leader_id)
    clients = [connect(kafka, leader) for _ in range(3)]
    numbers = [client.write(parked_fetch(max_wait_ms=400), 11) for client in clients]
    wait_until(
        lambda: kafka.call(
            lambda _: (
                sum(each.parked for each in kafka.server.socket_servers[leader]._connections) == 3
            )
        )
    )
    kafka.broker(leader).pause()
    kafka.clock.advance("1s")
    kafka.broker(leader).resume()
    for client, number in zip(clients, numbers, strict=True):
        answer = client.read(1, 11, number)
        assert answer.responses[0].partitions[0].error_code == 0
        ping(client)


def test_all_clients_that_wait_are_accepted_in_one_turn() -> None:
    """One for each turn would let every request of a busy client pass before the next newcomer."""
    clients = 20
    turns = 5

    async def main() -> None:
        async with open_server(ServerConfig(brokers=1)) as server:
            await trio.testing.wait_all_tasks_blocked()
            endpoint = server.cluster.brokers[1].endpoints["PLAINTEXT"]
            newcomers = [
                socket.create_connection((endpoint.host, endpoint.port)) for _ in range(clients)
            ]
            for _ in range(turns):
                await trio.lowlevel.checkpoint()
            assert server.stats.connections_opened == clients
            for each in newcomers:
                each.close()

    trio.run(main)
