"""A test suite as users write it: no type checker complains."""

from __future__ import annotations

import re
import unittest
from unittest.mock import ANY

from mockbroker import AsyncCluster, Cluster, ExpectedRecord, JournalEvent, StoredRecord
from mockbroker_fixtures import KafkaTestCase
from mockbroker_fixtures.clients import ConfluentKafkaClients
from mockbroker_fixtures.hypothesis import KafkaStateMachine, fault_plans, records


def handles(kafka: Cluster) -> list[StoredRecord]:
    orders = kafka.topic("orders").create(partitions=3, configs={"retention.ms": 1000})
    place = orders.produce("tea", key=b"k", headers={"a": b"1"}, partition=0)
    offset: int = place.offset
    kafka.broker(offset).stop(how="unclean", fence_after="5s")
    kafka.partition("orders", 0).move_leader(2)
    lag: int = kafka.lag("billing")
    members = kafka.group("billing").wait_stable(members=lag).members
    members[0].client_id.upper()
    kafka.clock.advance("5s")
    return orders.expect_records(3)


def expected(kafka: Cluster) -> list[StoredRecord]:
    tea: ExpectedRecord = {"value": b"tea", "key": None, "headers": {"a": "1"}, "partition": 0}
    orders = kafka.topic("orders")
    orders.expect_records([tea, "coffee", None, {"value_json": {"id": ANY}}], in_order=True)
    orders.expect_records([{"headers": [("a", b"1")], "key": re.compile("^k")}], allow_others=True)
    return kafka.expect_records("orders", [{"value": "tea"}, {"value": "coffee", "key": "k"}])


def rules(kafka: Cluster) -> None:
    kafka.faults.drop_reply(api="Produce", topic="orders", times=1, then="reset")
    kafka.faults.delay("5s", api=["Fetch", 0], nth=[1, 3])
    kafka.faults.error("NOT_LEADER_OR_FOLLOWER", group="g*")
    kafka.faults.add(match={"api": "Produce"}, when={"times": 1}, do={"drop_reply": {}})
    plan = kafka.faults.add({"rules": [{"do": {"hold": True, "stop_broker": {"node": 1}}}]})
    with plan:
        hits: int = plan.hits
        print(hits)


def journal(kafka: Cluster) -> JournalEvent:
    kafka.journal.in_order({"kind": "append"}, {"kind": "deliver", "topic": "orders"})
    return kafka.journal.wait(1, kind="append", topic="orders", timeout_s=1.0)[0]


def elsewhere() -> str:
    return Cluster.connect("http://127.0.0.1:9191", token="t").bootstrap_servers


async def awaited(kafka: Cluster) -> list[StoredRecord]:
    await kafka.aio.faults.drop_reply(api="Produce")
    return await kafka.aio.expect_records("orders", 1)


async def in_trio() -> None:
    async with Cluster(brokers=1) as kafka:
        twin: AsyncCluster = kafka
        state: str = await twin.broker(1).state
        print(state)


def renewed(kafka: Cluster) -> str:
    kafka.renew(brokers=1, topics={"orders": 2}, same_ports=True)
    return kafka.bootstrap_servers


def clients(confluent_kafka_clients: ConfluentKafkaClients) -> None:
    producer = confluent_kafka_clients.producer(linger_ms=5)
    left: int = producer.flush(10.0)
    print(left, confluent_kafka_clients.group_id)
    confluent_kafka_clients.consumer("orders").close()


class Orders(KafkaTestCase, unittest.TestCase):
    kafka_options = {"topics": {"orders": 2}, "brokers": 1}  # noqa: RUF012 - as a user writes it

    def test_orders(self) -> None:
        self.kafka.topic("orders").produce("tea")
        self.confluent_kafka_clients.consumer("orders", "payments")


class Shop(KafkaStateMachine):
    kafka_options = {"topics": {"orders": 2}}  # noqa: RUF012 - as a user writes it
    records = records(tombstones=False)

    def run_application(self, application: object) -> None:
        while self.is_behind():
            self.process("orders", 0, 0)


plans = fault_plans(topics=["orders"], brokers=1)
