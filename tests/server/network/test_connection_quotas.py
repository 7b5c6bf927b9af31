"""The limits of a broker's connections, from one address and from all, and of their rate."""

from __future__ import annotations

import pytest

from mockbroker import Cluster
from mockbroker.core.cluster import Cluster as CoreCluster
from mockbroker.core.configs.alter import AlterConfigOp, OpType, alter_incrementally
from mockbroker.core.configs.resources import ConfigResourceType
from mockbroker.core.errors import ConfigError
from mockbroker.server.config import ListenerSpec
from mockbroker.server.network import connection_quotas
from mockbroker.server.network.descriptors import DESCRIPTORS, RESERVED, descriptors_for_clients
from tests.server.network.test_connection import TIMEOUT_S, Raw, api_versions
from tests.support.waiting import wait_until


class Client(Raw):
    """A connection that asks for ApiVersions; `address` is its own."""

    def ask(self) -> None:
        self.send(api_versions(9))

    def answered(self) -> bool:
        """Whether an answer came; False when the broker has closed the connection."""
        try:
            self.frame()
        except (ConnectionError, EOFError):
            return False
        return True

    def served(self) -> bool:
        try:
            self.ask()
        except ConnectionError:
            return False
        return self.answered()


def test_an_address_with_all_its_connections_is_refused():
    configs = {"max.connections.per.ip": "2", "max.connections.per.ip.overrides": "127.0.0.3:1"}
    with Cluster(brokers=1, configs=configs) as kafka:
        first, second = Client(kafka), Client(kafka)
        assert first.served()
        assert second.served()
        assert not Client(kafka).served()
        others = [Client(kafka, f"127.0.0.{number}") for number in (2, 3)]
        assert all(other.served() for other in others)
        assert not Client(kafka, "127.0.0.3").served()
        assert kafka.server.stats.limits_exceeded == {"max.connections.per.ip": 2}
        first.socket.close()
        wait_until(lambda: len(kafka.server.socket_servers[1].clients()) == 3)
        assert Client(kafka).served()


def test_a_full_broker_takes_the_next_client_when_another_leaves():
    with Cluster(brokers=1, configs={"max.connections": "2"}) as kafka:
        first, second, third = Client(kafka), Client(kafka), Client(kafka)
        assert first.served()
        assert second.served()
        third.ask()  # connected, in the backlog of the port
        assert first.served()
        third.socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            third.socket.recv(1)
        third.socket.settimeout(TIMEOUT_S)
        second.socket.close()
        assert third.answered()


def test_a_raised_limit_lets_the_waiting_client_in():
    with Cluster(brokers=1, configs={"max.connections": "1"}) as kafka:
        first, second = Client(kafka), Client(kafka)
        assert first.served()
        second.ask()

        def raise_limit(cluster: CoreCluster) -> None:
            broker = next(iter(cluster.brokers.values()))
            change = AlterConfigOp("max.connections", OpType.SET, "2")
            every_broker = (int(ConfigResourceType.BROKER), "")
            alter_incrementally(cluster, broker, every_broker, [change], validate_only=False)

        kafka.call(raise_limit)
        assert second.answered()


def test_connections_come_as_fast_as_the_rate_allows():
    """Eleven windows of a second at one a second: the twelfth waits for the cluster's clock."""
    with Cluster(brokers=1, configs={"max.connection.creation.rate": "1"}) as kafka:
        kafka.clock.freeze()
        clients = [Client(kafka) for _ in range(13)]
        for client in clients[:10]:
            assert client.served()
        clients[12].ask()
        clients[12].socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            clients[12].socket.recv(1)
        clients[12].socket.settimeout(TIMEOUT_S)
        kafka.clock.advance("30s")
        assert clients[12].answered()


def waits(client: Client) -> bool:
    """Whether a client that has asked is in the backlog of the port: no answer is there."""
    client.socket.setblocking(False)
    try:
        client.socket.recv(1)
    except BlockingIOError:
        return True
    finally:
        client.socket.settimeout(TIMEOUT_S)
    return False


def two_listeners(**configs: str) -> Cluster:
    """A broker with a listener for clients and one for brokers, A and B."""
    listeners = [ListenerSpec("A"), ListenerSpec("B")]
    names = {"inter.broker.listener.name": "B"}
    return Cluster(brokers=1, listeners=listeners, configs={**names, **configs})


def alter(kafka: Cluster, name: str, value: str) -> None:
    """A dynamic config of broker 1."""

    def altered(cluster: CoreCluster) -> None:
        change = AlterConfigOp(name, OpType.SET, value)
        alter_incrementally(
            cluster, cluster.brokers[1], (int(ConfigResourceType.BROKER), "1"), [change],
            validate_only=False,
        )  # fmt: skip

    kafka.call(altered)


def test_a_listener_has_a_limit_of_its_own():
    """The next client of that listener waits, and one of the other does not."""
    with two_listeners(**{"listener.name.a.max.connections": "1"}) as kafka:
        first, second = Client(kafka, listener="A"), Client(kafka, listener="A")
        assert first.served()
        second.ask()
        other = Client(kafka, listener="B")
        assert other.served()
        assert waits(second)
        assert kafka.server.stats.limits_exceeded == {"listener.name.a.max.connections": 1}
        alter(kafka, "listener.name.a.max.connections", "2")
        assert second.answered()


def test_the_listener_of_the_brokers_takes_the_place_of_an_idle_client():
    """A full broker closes the connection that was idle longest, of another listener."""
    with two_listeners(**{"max.connections": "2"}) as kafka:
        kafka.clock.freeze()
        idle = Client(kafka, listener="A")
        assert idle.served()
        kafka.clock.advance("1s")
        busy = Client(kafka, listener="A")
        assert busy.served()
        waiting = Client(kafka, listener="A")
        waiting.ask()
        broker = Client(kafka, listener="B")
        assert broker.served()
        assert idle.closed_without_an_answer()
        assert busy.served()
        assert waits(waiting)


def test_the_listener_of_the_brokers_obeys_its_own_limit():
    """Which is the broker's where it has none."""
    with two_listeners(**{"max.connections": "1"}) as kafka:
        first, second = Client(kafka, listener="B"), Client(kafka, listener="B")
        assert first.served()
        second.ask()
        assert first.served()
        assert waits(second)


def test_the_rate_of_one_listener_slows_no_other():
    """Beyond its rate the clients of a listener wait for the cluster's clock."""
    limits = {"listener.name.a.max.connection.creation.rate": "1"}
    with two_listeners(**limits) as kafka:
        kafka.clock.freeze()
        for _ in range(10):
            assert Client(kafka, listener="A").served()
        late = [Client(kafka, listener="A") for _ in range(3)]
        late[-1].ask()
        assert all(Client(kafka, listener="B").served() for _ in range(20))
        assert waits(late[-1])
        kafka.clock.advance("30s")
        assert late[-1].answered()


def test_a_wrong_limit_of_a_listener_refuses_to_start():
    with (
        pytest.raises(ConfigError, match=r"listener\.name\.a\.max\.connections: "),
        two_listeners(**{"listener.name.a.max.connections": "many"}),
    ):
        pass


def test_clients_leave_descriptors_to_the_rest(monkeypatch: pytest.MonkeyPatch):
    """A client is refused when few are left: the admin API goes on."""
    with Cluster(brokers=1) as kafka:
        assert Client(kafka).served()
        monkeypatch.setattr(connection_quotas, "descriptors_for_clients", lambda: 3)
        assert not Client(kafka).served()
        assert kafka.server.stats.limits_exceeded == {DESCRIPTORS: 1}
        monkeypatch.undo()
        assert Client(kafka).served()


@pytest.mark.parametrize(
    ("limit", "first"), [(1024, 1024 - RESERVED), (100, 50), (128, 64), (-1, 1 << 31)]
)
def test_less_than_half_of_the_descriptors_are_reserved(
    limit: int, first: int, monkeypatch: pytest.MonkeyPatch
):
    import resource

    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    assert descriptors_for_clients() == first
