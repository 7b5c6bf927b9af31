"""A renewed cluster in the same thread is as new."""

from __future__ import annotations

import contextlib
import threading
import time

import pytest
import trio
from confluent_kafka import Consumer, Producer

from mockbroker import Cluster
from mockbroker.api.transport import ClusterError
from mockbroker.core.cluster import Cluster as CoreCluster
from mockbroker.core.snapshot.capture import capture
from mockbroker.core.snapshot.image import ClusterImage
from mockbroker.server.config import ServerError
from mockbroker.server.network.acceptor import SocketNetwork
from tests.support.librdkafka import TIMEOUT_S


def ports(kafka: Cluster) -> set[int]:
    return {int(each.rpartition(":")[2]) for each in kafka.bootstrap_servers.split(",")}


def image(core: CoreCluster) -> ClusterImage:
    """All state that a snapshot has; batches are compared by the logs' ends."""
    found = capture(core)
    ends = {log_id: log.log.end_offset for log_id, log in found.logs.items()}
    return found._replace(at_ms=0, logs=ends)


def leave_traces(kafka: Cluster) -> None:
    """Records, a group, a transaction, rules, configs, a stopped broker, and a clock elsewhere."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": "t"})
    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce("orders", "tea")
    producer.commit_transaction(TIMEOUT_S)
    settings = {"auto.offset.reset": "earliest", "group.id": "g", "group.instance.id": "one"}
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, **settings})
    consumer.subscribe(["orders"])
    message = consumer.poll(TIMEOUT_S)
    assert message is not None
    consumer.commit(message, asynchronous=False)
    kafka.faults.delay("1s", api="Metadata")
    kafka.act("set_quota", key="producer_byte_rate", user="u", value=5.0)
    kafka.clock.freeze()
    kafka.clock.advance("30d")
    consumer.close()
    kafka.broker(3).stop()


def test_nothing_of_the_former_cluster_remains():
    options = {"seed": 5, "topics": {"orders": 2}, "brokers": 3}
    with Cluster(**options) as kafka, Cluster(**options) as fresh:
        leave_traces(kafka)
        kafka.renew()
        assert [each.name for each in kafka.topics()] == ["orders"]
        assert kafka.records("orders") == kafka.groups() == kafka.transactions() == []
        assert kafka.faults.plans() == kafka.connections() == []
        assert [each.state for each in kafka.brokers()] == ["running"] * 3
        assert kafka.clock.rate == 1.0
        assert abs(kafka.clock.now_ms - time.time() * 1000) < 3600_000
        assert {each.kind for each in kafka.journal.events()} == {
            each.kind for each in fresh.journal.events()
        }
        assert kafka.call(image) == fresh.call(image)


def test_the_next_cluster_has_other_ports_unless_the_same_are_asked_for():
    """No port comes back for a long time, so a client that was left open finds nobody."""
    with Cluster(brokers=2) as kafka:
        seen = ports(kafka)
        for _ in range(20):
            kafka.renew()
            assert not seen & ports(kafka)
            seen |= ports(kafka)
        before = kafka.bootstrap_servers
        kafka.renew(same_ports=True)
        assert kafka.bootstrap_servers == before
        kafka.renew(same_ports=True, brokers=3)
        assert kafka.bootstrap_servers.startswith(before + ",")
        kafka.renew(same_ports=True)
        assert kafka.bootstrap_servers == before


def test_a_port_that_was_used_lately_is_passed_over(monkeypatch: pytest.MonkeyPatch):
    """The operating system may name it again."""
    with Cluster(brokers=1) as kafka:
        [port] = ports(kafka)
    listen = SocketNetwork.listen
    asked = []

    def first_the_same(self, host: str, wanted: int):
        asked.append(wanted)
        return listen(self, host, port if len(asked) == 1 else wanted)

    monkeypatch.setattr(SocketNetwork, "listen", first_the_same)
    with Cluster(brokers=1) as kafka:
        assert ports(kafka) != {port}
    assert set(asked) == {0}
    assert len(asked) >= 2  # more when it names a second one again


def test_a_client_that_was_left_open_reaches_only_its_own_cluster():
    """It is disconnected, and what it still has to send goes nowhere."""
    with Cluster(topics={"orders": 1}) as kafka:
        settings = {"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0}
        left = Producer({**settings, "reconnect.backoff.ms": 10, "message.timeout.ms": 300})
        left.produce("orders", "first")
        assert left.flush(TIMEOUT_S) == 0
        kafka.renew()
        lost = []
        left.produce("orders", "late", on_delivery=lambda error, _: lost.append(error))
        left.flush(TIMEOUT_S)
        assert lost[0] is not None
        assert kafka.records("orders") == kafka.connections() == []
        assert kafka.journal.events(client_id="rdkafka") == []


def test_handles_of_the_former_cluster_are_refused():
    """Also those that wait."""
    with Cluster(topics={"orders": 1}) as kafka:
        orders = kafka.topic("orders")
        errors = []

        def wait() -> None:
            with pytest.raises(ClusterError, match="has taken the place") as raised:
                orders.expect_records(1, timeout_s=1000)
            errors.append(raised.value)

        waiting = threading.Thread(target=wait)
        waiting.start()
        kafka.journal.last_seq  # noqa: B018 - its endpoints are there
        kafka.renew()
        waiting.join(TIMEOUT_S)
        assert errors
        with pytest.raises(ClusterError, match="has taken the place"):
            orders.produce("tea")
        assert kafka.records("orders") == []


def test_options_of_a_renewal_hold_until_the_next_one():
    with Cluster(brokers=2, topics={"orders": 1}) as kafka:
        kafka.renew(brokers=1, kafka_version="3.9", topics={"payments": 3})
        assert len(kafka.brokers()) == 1
        assert [each.name for each in kafka.topics()] == ["payments"]
        assert kafka.config.kafka_version == "3.9"
        kafka.renew()
        assert len(kafka.brokers()) == 2
        assert [each.name for each in kafka.topics()] == ["orders"]


def test_wrong_options_fail_that_renewal_alone():
    with Cluster() as kafka:
        with pytest.raises(ServerError, match="at least one broker"):
            kafka.renew(brokers=0)
        with pytest.raises(ClusterError):
            kafka.topics()
        kafka.renew()
        assert kafka.topics() == []


def die(_: CoreCluster) -> None:
    """End the thread of a cluster with an error."""
    trio.lowlevel.current_trio_token().run_sync_soon(lambda: 1 / 0)


def test_a_renewal_replaces_a_thread_that_has_died():
    def see_it_die(kafka: Cluster) -> None:
        kafka.call(die)  # the thread may die before it has answered
        kafka.journal.wait(kind="append", timeout_s=1000)

    with Cluster() as kafka:
        with pytest.raises(ClusterError, match="has died"):
            see_it_die(kafka)
        kafka.renew()
        assert kafka.topics() == []


@pytest.mark.parametrize("ends", ["dies", "stops"])
def test_a_wait_at_the_end_of_the_thread_raises_what_ended_it(ends: str):
    """No other cluster has taken the place of this one."""
    found: list[ClusterError] = []

    def wait(kafka: Cluster, waits: threading.Event) -> None:
        kafka.call(lambda _: waits.set())
        with pytest.raises(ClusterError) as raised:
            kafka.journal.wait(kind="append", timeout_s=1000)
        found.append(raised.value)

    for _ in range(10):  # the wait may also begin after the end
        kafka = Cluster()
        kafka.__enter__()
        waits = threading.Event()
        waiting = threading.Thread(target=wait, args=(kafka, waits))
        waiting.start()
        assert waits.wait(TIMEOUT_S)
        if ends == "dies":
            with contextlib.suppress(ClusterError):  # it may die before it has answered
                kafka.call(die)
            with pytest.raises(trio.TrioInternalError):
                kafka.stop()
        else:
            kafka.stop()
        waiting.join(TIMEOUT_S)
    assert {str(each) for each in found} <= {
        "the cluster's thread has died" if ends == "dies" else "the cluster has stopped",
        "the cluster has stopped",
    }
    assert len(found) == 10


def test_a_renewal_meets_a_thread_that_dies():
    """It has not ended when the renewal begins."""
    for _ in range(10):
        with Cluster() as kafka:
            with contextlib.suppress(ClusterError):
                kafka.call(die)
            kafka.renew()
            assert kafka.topics() == []


def test_a_cluster_elsewhere_cannot_be_renewed():
    with Cluster() as kafka, pytest.raises(RuntimeError, match="runs in another process"):
        Cluster.connect(kafka.admin_url).renew()


def test_the_admin_api_begins_anew():
    with Cluster() as kafka:
        before = kafka.admin_url
        kafka.renew(topics={"orders": 1})
        assert kafka.admin_url != before
        assert [each.name for each in Cluster.connect(kafka.admin_url).topics()] == ["orders"]


def test_the_tables_of_each_cluster_are_a_run_of_their_own(tmp_path):
    with Cluster(journal_dir=tmp_path, topics={"orders": 1}) as kafka:
        first = kafka.journal_run
        kafka.topic("orders").produce("tea")
        kafka.renew()
        kafka.topic("orders").produce("one coffee")
        assert kafka.journal_run != first
    assert {path.name for path in tmp_path.rglob("run=*")} == {
        f"run={first}",
        f"run={kafka.journal_run}",
    }
