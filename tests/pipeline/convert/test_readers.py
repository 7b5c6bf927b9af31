"""Which member sent a Fetch, where all consumers of a host have one client id."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer as Librdkafka

from mockbroker import Cluster
from mockbroker.client.client import Client
from mockbroker.client.connection import Connection
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    RequestTopicPartitions,
)
from mockbroker_protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.pipeline.convert.support import Row, tables_of
from tests.support.group_node import commit_request
from tests.support.librdkafka import TIMEOUT_S, settings

NUMBERS = itertools.count()
TOGETHER = "rdkafka"  # the client id that librdkafka gives each of its clients


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    configs = {"group.consumer.assignment.interval.ms": 0}
    with Cluster(brokers=1, topics={"t": 2, "u": 1}, configs=configs) as cluster:
        yield cluster


class Consumer:
    """A member of a group with a connection for the group and one for its Fetches."""

    def __init__(
        self, kafka: Cluster, group: str, name: str, *topics: str, heartbeats: int = 3
    ) -> None:
        self.kafka = kafka
        self.group = group
        self.name = name
        self.epoch = 0
        self.topics = list(topics or ("t",))
        self.coordinator = self.connect()
        self.fetching = self.connect()
        self.heartbeat(heartbeats)

    def connect(self) -> Connection:
        host, port = self.kafka.bootstrap_servers.split(":")
        return Connection(host, int(port), TOGETHER)

    def heartbeat(self, times: int = 3) -> None:
        """Ask for the assignment, hold it, and say so."""
        owned: list[RequestTopicPartitions] = []
        for _ in range(times):
            answer = self.coordinator.send(
                ConsumerGroupHeartbeatRequest(
                    group_id=self.group, member_id=self.name, member_epoch=self.epoch,
                    rebalance_timeout_ms=60_000, subscribed_topic_names=self.topics,
                    server_assignor="uniform", topic_partitions=owned,
                )
            )  # fmt: skip
            assert answer.error_code == 0
            self.epoch = answer.member_epoch
            if answer.assignment is not None:
                owned = [
                    RequestTopicPartitions(each.topic_id, each.partitions)
                    for each in answer.assignment.topic_partitions
                ]

    def leave(self) -> None:
        self.epoch = -1
        self.coordinator.send(
            ConsumerGroupHeartbeatRequest(group_id=self.group, member_id=self.name, member_epoch=-1)
        )

    def look_for_coordinator(self) -> None:
        self.fetching.send(FindCoordinatorRequest(coordinator_keys=[self.group]))

    def fetch(self, offset: int, *places: tuple[str, int]) -> None:
        fetch_by(self.fetching, offset, *places)

    def commit(self, offset: int, place: tuple[str, int] = ("t", 0)) -> None:
        request = commit_request({place: offset}, self.group, self.name, self.epoch)
        answer = self.coordinator.send(request, 9)
        assert answer.topics[0].partitions[0].error_code == 0

    def close(self) -> None:
        self.coordinator.close()
        self.fetching.close()


def fetch_request(
    offset: int, *places: tuple[str, int], max_wait_ms: int = 0, min_bytes: int = 0
) -> FetchRequest:
    topics = [
        FetchTopic(
            topic=topic,
            partitions=[
                FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=1 << 20)
            ],
        )
        for topic, number in places or (("t", 0),)
    ]
    return FetchRequest(
        max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=1 << 20, topics=topics
    )


def fetch_by(connection: Connection, offset: int, *places: tuple[str, int]) -> None:
    answer = connection.send(fetch_request(offset, *places), 12)
    assert {each.error_code for one in answer.responses for each in one.partitions} == {0}


def fill(kafka: Cluster, count: int = 10) -> None:
    with Client(kafka.bootstrap_servers) as client:
        client.coordinator("g1")
        for topic, partition in (("t", 0), ("t", 1), ("u", 0)):
            values = [f"value {next(NUMBERS)}" for _ in range(count)]
            client.produce(topic, values, partition=partition)


def read_by(kafka: Cluster, topic: str = "t") -> list[tuple[str | None, str | None, object]]:
    """The group, member and candidates of each Fetch of partition 0."""
    rows: list[Row] = tables_of(kafka).rows("fetches", topic=topic, partition=0)
    rows.sort(key=lambda row: row["response_seq"])
    return [(row["group"], row["member"], row["candidates"]) for row in rows]


def test_a_commit_of_what_was_read_is_no_finding_once_another_group_shares_the_client_id(kafka):
    """The member keeps its connection when a member of another group gets the same partitions."""
    fill(kafka)
    first = Consumer(kafka, "g1", "m1")
    first.fetch(0)
    fill(kafka)
    second = Consumer(kafka, "g2", "m2")
    first.fetch(10)
    first.commit(20)
    second.fetch(0)
    first.fetch(20)
    second.fetch(20)
    second.commit(20)
    assert kafka.audit().findings == []
    one, other = ("g1", "m1", None), ("g2", "m2", None)
    assert read_by(kafka) == [one, one, (None, None, ["m1", "m2"]), one, other]
    first.close()
    second.close()


def test_the_group_of_a_connection_is_that_of_its_find_coordinator(kafka):
    """Two members that hold the same, from the first Fetch on."""
    fill(kafka)
    members = [Consumer(kafka, f"g{n}", f"m{n}") for n in (1, 2)]
    for member in members:
        member.look_for_coordinator()
        member.fetch(0)
        member.commit(10)
    assert read_by(kafka) == [("g1", "m1", None), ("g2", "m2", None)]
    assert kafka.audit().findings == []
    for member in members:
        member.close()


def test_a_fetch_on_the_connection_of_heartbeats_is_nobody_elses(kafka):
    """Its member has lost the partition to another one of the group, which did not fetch."""
    fill(kafka)
    first, second = Consumer(kafka, "g1", "m1"), Consumer(kafka, "g1", "m2")
    for member in (first, second, first):
        member.heartbeat()
    (place,) = [
        ("t", row["partition"])
        for row in tables_of(kafka).rows("assignments", group="g1", member="m2")
    ]
    fetch_by(first.coordinator, 0, place)
    rows = tables_of(kafka).rows("fetches", topic="t", partition=place[1])
    assert [(row["group"], row["member"], row["candidates"]) for row in rows] == [
        (None, None, None)
    ]
    first.close()
    second.close()


def test_the_answer_to_the_first_heartbeat_names_the_member_of_its_connection(kafka):
    """The member is sent away before it says a second word, and another one gets all it had."""
    fill(kafka)
    first = Consumer(kafka, "g1", "m1", heartbeats=1)
    kafka.act("expire_member", group="g1", member="m1")
    second = Consumer(kafka, "g1", "m2")
    fetch_by(first.coordinator, 0)
    assert read_by(kafka) == [(None, None, None)]
    fetch_by(second.coordinator, 0)
    assert read_by(kafka)[1:] == [("g1", "m2", None)]
    first.close()
    second.close()


def test_a_fetch_of_a_partition_that_a_member_never_held_tells_the_others(kafka):
    """Its connection is then known, also for the partitions that both hold."""
    fill(kafka)
    wide, narrow = Consumer(kafka, "g1", "wide", "t", "u"), Consumer(kafka, "g2", "narrow")
    wide.fetch(0, ("t", 0), ("u", 0))
    narrow.fetch(0)
    wide.fetch(10)
    narrow.fetch(10)
    narrow.commit(10)
    known = [("g1", "wide", None), (None, None, ["narrow", "wide"])]
    assert read_by(kafka)[:3] == [*known, ("g1", "wide", None)]
    assert read_by(kafka)[3] == ("g2", "narrow", None)
    assert kafka.audit().findings == []
    wide.close()
    narrow.close()


def test_what_nothing_tells_apart_is_not_checked(kafka):
    """Neither a finding nor clean; a client id of its own would help, and the audit says so."""
    fill(kafka)
    members = [Consumer(kafka, f"g{n}", f"m{n}") for n in (1, 2)]
    for member in members:
        member.fetch(0)
    members[0].commit(10)
    assert read_by(kafka) == [(None, None, ["m1", "m2"])] * 2
    audit = kafka.audit()
    assert [found.subject for found in audit.findings] == ["unattributed:g1"]
    assert audit.not_checked == [
        "commits in t: consumers that share a client id may have read what group g1 committed"
    ]
    with pytest.raises(AssertionError, match=r"a client\.id of its own"):
        audit.assert_clean()
    audit.assert_clean(bugs_only=True)
    audit.assert_clean(allow=["committed_not_read"])
    for member in members:
        member.close()


def test_a_commit_beyond_all_that_anybody_read_is_found_all_the_same(kafka):
    """From the first record that no possible answer brought."""
    fill(kafka)
    first = Consumer(kafka, "g1", "m1")
    first.fetch(0)
    second = Consumer(kafka, "g2", "m2")
    second.fetch(0)
    fill(kafka)
    first.commit(15)
    [found] = kafka.audit().findings
    assert (found.anomaly, found.verdict, found.offset) == ("committed_not_read", "report", 10)
    first.close()
    second.close()


def test_a_reader_without_a_group_is_not_taken_for_the_member(kafka):
    """Both fetch on; one of them is nobody's member, and nothing tells which."""
    fill(kafka)
    member = Consumer(kafka, "g1", "m1")
    member.fetch(0)
    outsider = member.connect()
    fetch_by(outsider, 0)
    member.fetch(5)
    fetch_by(outsider, 5)
    found = read_by(kafka)
    assert found[:2] == [("g1", "m1", None), (None, None, ["m1"])]
    assert found[3] == (None, None, ["m1"])
    outsider.close()
    member.close()


def test_a_member_that_another_replaced_keeps_its_connection(kafka):
    """A partition goes from one member of a group to another; both have the same client id."""
    fill(kafka)
    first = Consumer(kafka, "g1", "m1")
    first.fetch(0)
    first.commit(10)
    first.leave()
    second = Consumer(kafka, "g1", "m2")
    fill(kafka)
    second.fetch(10)
    second.commit(20)
    assert read_by(kafka) == [("g1", "m1", None), ("g1", "m2", None)]
    assert kafka.audit().findings == []
    first.close()
    second.close()


def test_an_answer_that_comes_after_its_member_has_left_is_nobodys(kafka):
    """A consumer that has left throws it away, so the next member does not read it again."""
    fill(kafka)
    first = Consumer(kafka, "g1", "m1")
    first.fetch(0)
    first.commit(10)
    waiting = fetch_request(10, ("t", 0), max_wait_ms=60_000, min_bytes=1)
    number = first.fetching.write(waiting, 12)
    kafka.journal.wait(2, kind="request", api="Fetch")
    first.leave()
    fill(kafka)
    first.fetching.read(ApiKey.FETCH, 12, number)
    second = Consumer(kafka, "g1", "m2")
    second.fetch(10)
    second.commit(20)
    assert read_by(kafka) == [("g1", "m1", None), (None, None, None), ("g1", "m2", None)]
    assert kafka.audit().findings == []


@pytest.mark.parametrize("seed", range(2))
def test_consumers_of_the_default_client_id_give_no_finding(kafka, seed):
    """Two groups of two librdkafka consumers and one of aiokafka each, which come and go."""
    fill(kafka)
    dice = random.Random(seed)

    def reads(group: str, turns: int) -> None:
        for _ in range(turns):
            consumer = Librdkafka(
                settings(
                    kafka.bootstrap_servers,
                    group_id=group,
                    auto_offset_reset="earliest",
                    enable_auto_commit=False,
                )
            )
            consumer.subscribe(["t"])
            for message in consumer.consume(4, 1.0):
                assert message.error() is None
                consumer.commit(message, asynchronous=False)
            consumer.close()

    async def reads_too(group: str) -> None:
        consumer = AIOKafkaConsumer(
            "t",
            bootstrap_servers=kafka.bootstrap_servers,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        try:
            if await consumer.getmany(timeout_ms=500, max_records=4):
                await consumer.commit()
        finally:
            await consumer.stop()

    with ThreadPoolExecutor(6) as threads:
        jobs = [threads.submit(reads, group, dice.randint(1, 3)) for group in ("g1", "g2") * 2] + [
            threads.submit(asyncio.run, reads_too(group)) for group in ("g1", "g2")
        ]
        for job in jobs:
            job.result(TIMEOUT_S)
    audit = kafka.audit()
    assert [f for f in audit.findings if f.anomaly == "committed_not_read"] == [
        f for f in audit.findings if (f.subject or "").startswith("unattributed:")
    ]
