"""What the consoles of the tests show: clusters whose clients wait, and why they do.

Each is a context manager with real clients (confluent-kafka), which end with it. A *consumer that
stands still* has lag, and nothing that it reads or commits changes that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaException, Producer

from mockbroker import Cluster
from tests.support.members import HEARTBEAT_MS, Member, Members, settings
from tests.support.waiting import wait_until

TIMEOUT_S = 30.0


def produce(kafka: Cluster, topic: str, count: int, **config: Any) -> None:
    """Records 0 … count - 1 in partition 0, each acknowledged before the next one is sent."""
    producer = Producer(settings(kafka, linger_ms=0, **{"client_id": "shop"} | config))
    for number in range(count):
        producer.produce(
            topic, f"coffee {number}", partition=0, headers={"mb-id": f"coffee-{number}"}
        )
        assert producer.flush(TIMEOUT_S) == 0


class Reader:
    """A consumer that is polled in a thread of its own, and commits what it has read."""

    def __init__(self, kafka: Cluster, group: str, topic: str, **config: Any) -> None:
        self.records: list[str] = []
        self._stopped = threading.Event()
        defaults: dict[str, Any] = {
            "group_id": group,
            "client_id": f"{group}-worker",
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "heartbeat_interval_ms": HEARTBEAT_MS,
            "isolation_level": "read_committed",
        }
        self._consumer = Consumer(settings(kafka, **(defaults | config)))
        self._consumer.subscribe([topic])
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while not self._stopped.is_set():
            message = self._consumer.poll(0.05)
            if message is None or message.error() is not None:
                continue
            self.records.append(message.value().decode())
            try:
                self._consumer.commit(message, asynchronous=False)
            except KafkaException:
                continue  # a rebalance: the next member reads it again

    def wait_for(self, count: int) -> None:
        wait_until(lambda: len(self.records) >= count, what=f"{count} records, {self.records}")

    def close(self) -> None:
        self._stopped.set()
        self._thread.join(TIMEOUT_S)
        self._consumer.close()


@contextmanager
def reader(kafka: Cluster, group: str, topic: str, **config: Any) -> Iterator[Reader]:
    kafka.call(lambda cluster: cluster.ensure_internal_topic("__consumer_offsets"))
    made = Reader(kafka, group, topic, **config)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def hanging_transaction(kafka: Cluster) -> Iterator[Reader]:
    """`billing` reads committed records of `orders`, whose partition 0 has an open transaction of
    `nightly-import` that nobody ends. The reader has read three records of ten.
    """
    produce(kafka, "orders", 3)
    importer = Producer(
        settings(
            kafka,
            client_id="importer",
            transactional_id="nightly-import",
            transaction_timeout_ms=600_000,
        )
    )
    importer.init_transactions(TIMEOUT_S)
    importer.begin_transaction()
    importer.produce("orders", "imported", partition=0)
    assert importer.flush(TIMEOUT_S) == 0
    produce(kafka, "orders", 6)
    with reader(kafka, "billing", "orders") as billing:
        billing.wait_for(3)
        yield billing
    # The transaction is the console's to end: the producer that began it has gone.


@contextmanager
def paused_broker(kafka: Cluster) -> Iterator[Reader]:
    """`billing` reads `orders`, partition 0, whose leader is paused."""
    leader = kafka.partitions("orders")[0].leader_id
    produce(kafka, "orders", 3)
    with reader(kafka, "billing", "orders") as billing:
        billing.wait_for(3)
        kafka.broker(leader).pause("10m")
        yield billing


class Hog(NamedTuple):
    """The member that has the partition and reads nothing, and the one that has none."""

    hog: Member
    idle: Member
    members: Members

    def wait_for(self, count: int) -> None:
        """Wait until the other member has read so many records; the hog goes on doing nothing."""
        self.members.until(
            lambda: len(self.idle.records) >= count, f"{count} records", polling=[self.idle]
        )


@contextmanager
def hogging_member(kafka: Cluster) -> Iterator[Hog]:
    """Of two members of `billing` one has the only partition of `jobs`, and reads nothing."""
    with Members(kafka) as members:
        hog = members("billing", "jobs", client_id="abandoned-worker", max_poll_interval_ms=600_000)
        members.until(lambda: bool(hog.owned), "the first member has the partition")
        idle = members("billing", "jobs", client_id="billing-worker")
        members.until(
            lambda: [len(each.members) for each in kafka.groups()] == [2], "two members joined"
        )
        members.settle(hog, idle, partitions=1)
        produce(kafka, "jobs", 5)
        yield Hog(hog, idle, members)


@contextmanager
def in_background(work: Callable[[], None]) -> Iterator[threading.Thread]:
    """A thread that does `work`; it has to end by itself."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    yield thread
    thread.join(TIMEOUT_S)
    assert not thread.is_alive()


class HeldProduce(NamedTuple):
    """The rule that holds a Produce, and the reports of delivery that its producer got so far."""

    rule: str
    reports: list[tuple[str | None, int]]


@contextmanager
def held_produce(kafka: Cluster) -> Iterator[HeldProduce]:
    """A producer waits for the answer to one Produce, which the rule `breakpoint` holds."""
    plan = kafka.faults.add(
        name="breakpoint", match={"api": "Produce"}, when={"times": 1}, do={"hold": {}}
    )
    reports: list[tuple[str | None, int]] = []
    producer = Producer(settings(kafka, client_id="shop", linger_ms=0, enable_idempotence=False))

    def reported(error: Any, message: Any) -> None:
        reports.append((None if error is None else error.name(), message.offset()))

    producer.produce("orders", "one coffee", partition=0, on_delivery=reported)
    with in_background(lambda: producer.flush(TIMEOUT_S)):
        kafka.faults.wait_held(timeout_s=TIMEOUT_S)
        yield HeldProduce(plan.name, reports)


@contextmanager
def rebalanced(kafka: Cluster) -> Iterator[list[Member]]:
    """`kitchen` on `orders`: one member, then a second one, and then the first one leaves."""
    with Members(kafka) as members:
        first = members("kitchen", "orders", client_id="cook-1")
        partitions = len(kafka.partitions("orders"))
        members.settle(first, partitions=partitions)
        second = members("kitchen", "orders", client_id="cook-2")
        members.settle(first, second, partitions=partitions)
        produce(kafka, "orders", 5)
        members.collect(5)
        first.close()
        members.settle(second, partitions=partitions)
        second.commit(("orders", 0, 5))
        yield [first, second]


def lost_write(kafka: Cluster) -> None:
    """A record of `payments` was acknowledged by its leader alone, and the next leader has never
    had it.
    """
    kafka.topic("payments").create(assignments={0: [1, 2]})
    payments = kafka.partition("payments", 0)
    payments.lag_follower(2)
    produce(kafka, "payments", 1, acks=1)
    payments.elect_unclean(2)


def killed_broker(kafka: Cluster) -> int:
    """The leader of `orders` 0 is killed while a producer writes; returns its node id."""
    leader = kafka.partitions("orders")[0].leader_id
    produce(kafka, "orders", 3)
    kafka.broker(leader).stop(how="unclean")
    produce(kafka, "orders", 3)
    return leader
