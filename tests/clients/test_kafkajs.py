"""kafkajs: its producers, consumers, groups and admin client work unmodified.

Every test runs against ours and, marked `real_kafka`, against Kafka itself, so that an assertion
here is what Kafka does and not what we think it does.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import nodejs
from tests.support.json_lines import JsonLines, StepError
from tests.support.maven import ROOT
from tests.support.waiting import wait_until

pytestmark = pytest.mark.node

Json = dict[str, Any]

VALUES = [f"value {n} " + "x" * (n % 97) for n in range(200)]
_numbers = itertools.count(1)


@pytest.fixture
def js(bootstrap_servers: str) -> Iterator[JsonLines]:
    """kafkajs behind a pipe, connected; its group members leave when the test ends."""
    program = nodejs.install(ROOT / "tests" / "node") / "tour.js"
    with JsonLines(["node", "--no-warnings", str(program)]) as tour:
        tour("connect", bootstrap=bootstrap_servers.split(","))
        yield tour


@pytest.fixture
def topic(js: JsonLines) -> str:
    """A topic of one partition."""
    return new_topic(js)


def unique(stem: str) -> str:
    return f"kafkajs-{stem}-{next(_numbers)}"


def new_topic(js: JsonLines, partitions: int = 1, **configs: str) -> str:
    name = unique("topic")
    configs = {key.replace("_", "."): value for key, value in configs.items()}
    assert js("create_topic", topic=name, partitions=partitions, replicas=1, configs=configs)
    wait_until(lambda: is_served(js, name), what="leaders that serve the topic")
    return name


def is_served(js: JsonLines, topic: str) -> bool:
    """Whether a topic's leaders answer ListOffsets. A broker of Kafka is named as the leader a
    moment before it is; a member of kafkajs that asks it meanwhile joins its group again.
    """
    try:
        js("offsets", topic=topic)
    except StepError as error:
        if not str(error).startswith("NOT_LEADER_FOR_PARTITION"):
            raise
        return False
    return True


def values(*texts: str, partition: int = 0) -> list[Json]:
    return [{"value": text, "partition": partition} for text in texts]


def read_all(js: JsonLines, topic: str, count: int, **fields: Any) -> list[Json]:
    """Read a topic from its start, as a group of its own."""
    js("join", name="reader", group=unique("reader"), topic=topic, **fields)
    records: list[Json] = js("poll", name="reader", count=count)
    js("leave", name="reader")
    return records


# -- producing and reading -------------------------------------------------------------------------


@pytest.mark.covers("S101")
@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_both_of_its_compressions_are_read_back(js: JsonLines, topic: str, codec: str) -> None:
    assert js("produce", topic=topic, codec=codec, records=values(*VALUES)) == [
        {"partition": 0, "base_offset": 0}
    ]
    found = read_all(js, topic, len(VALUES))
    assert [each["value"] for each in found] == VALUES
    assert [each["offset"] for each in found] == list(range(len(VALUES)))


@pytest.mark.covers("S1", "S99")
@pytest.mark.parametrize("acks", [0, 1, -1])
def test_every_kind_of_acknowledgement_stores_the_records(
    js: JsonLines, topic: str, acks: int
) -> None:
    js("produce", topic=topic, acks=acks, records=values(*VALUES))
    assert [each["value"] for each in read_all(js, topic, len(VALUES))] == VALUES


@pytest.mark.covers("S116")
def test_an_idempotent_producer_is_served(js: JsonLines, topic: str) -> None:
    js("produce", topic=topic, idempotent=True, records=values("a", "b"))
    js("produce", topic=topic, idempotent=True, records=values("c"))
    assert [each["value"] for each in read_all(js, topic, 3)] == ["a", "b", "c"]


def test_keys_headers_nulls_and_timestamps_survive(js: JsonLines, topic: str) -> None:
    now_ms = int(time.time() * 1000)
    records = [
        {"key": "k", "value": "v", "headers": {"trace": "1"}, "timestamp_ms": now_ms},
        {"key": None, "value": None, "timestamp_ms": now_ms + 1},
        {"key": "", "value": "", "timestamp_ms": now_ms + 2},
    ]
    js("produce", topic=topic, records=[{"partition": 0, **each} for each in records])
    found = read_all(js, topic, 3)
    assert [(each["key"], each["value"]) for each in found] == [("k", "v"), (None, None), ("", "")]
    assert [each["headers"] for each in found] == [{"trace": "1"}, {}, {}]
    assert [each["timestamp_ms"] for each in found] == [now_ms, now_ms + 1, now_ms + 2]


def test_a_consumer_reads_from_where_it_seeks(js: JsonLines, topic: str) -> None:
    js("produce", topic=topic, records=values(*VALUES[:10]))
    found = read_all(js, topic, 3, seek=7)
    assert [each["offset"] for each in found] == [7, 8, 9]


def test_a_consumer_seeks_back_and_reads_again(js: JsonLines, topic: str) -> None:
    js("produce", topic=topic, records=values("a", "b", "c"))
    js("join", name="a", group=unique("group"), topic=topic)
    assert [each["value"] for each in js("poll", name="a", count=3)] == ["a", "b", "c"]
    js("seek", name="a", offset=1)
    assert [each["value"] for each in js("poll", name="a", count=2)] == ["b", "c"]


def test_a_consumer_that_waits_gets_what_comes_later(js: JsonLines, topic: str) -> None:
    js("join", name="a", group=unique("group"), topic=topic)
    js("assigned", name="a", count=1)
    js("produce", topic=topic, records=values("late"))
    assert [each["value"] for each in js("poll", name="a", count=1)] == ["late"]


def test_producing_to_a_name_that_no_topic_has_fails(js: JsonLines) -> None:
    with pytest.raises(StepError, match="INVALID_TOPIC_EXCEPTION"):
        js("produce", topic=".", records=values("lost"))


# -- groups ----------------------------------------------------------------------------------------


@pytest.mark.covers("S186", "S188")
def test_two_members_share_the_partitions_and_one_inherits_them(js: JsonLines) -> None:
    topic, group = new_topic(js, partitions=4), unique("group")
    js("join", name="a", group=group, topic=topic)
    assert js("assigned", name="a", count=4) == [0, 1, 2, 3]
    js("join", name="b", group=group, topic=topic)
    mine, others = js("assigned", name="a", count=2), js("assigned", name="b", count=2)
    assert sorted(mine + others) == [0, 1, 2, 3]
    assert js("group", group=group) == {
        "state": "Stable",
        "protocol": "RoundRobinAssigner",
        "protocol_type": "consumer",
        "members": 2,
    }
    js("leave", name="b")
    assert js("assigned", name="a", count=4) == [0, 1, 2, 3]


@pytest.mark.covers("S186", "S187")
def test_each_record_goes_to_one_member_of_each_group(js: JsonLines) -> None:
    topic, group = new_topic(js, partitions=2), unique("group")
    for name in ("a", "b"):
        js("join", name=name, group=group, topic=topic)
    js("join", name="other group", group=unique("group"), topic=topic)
    for name, count in (("a", 1), ("b", 1), ("other group", 2)):
        js("assigned", name=name, count=count)
    records = values(*VALUES[:50]) + values(*VALUES[50:100], partition=1)
    js("produce", topic=topic, records=records)
    shared = js("poll", name="a", count=50) + js("poll", name="b", count=50)
    for got in (shared, js("poll", name="other group", count=100)):
        assert sorted(each["value"] for each in got) == sorted(VALUES[:100])


@pytest.mark.covers("S170", "S178")
def test_a_member_resumes_where_the_group_committed(js: JsonLines, topic: str) -> None:
    group = unique("group")
    assert js("committed", group=group, topic=topic) == {"0": -1}
    js("produce", topic=topic, records=values("a", "b", "c"))
    js("join", name="first", group=group, topic=topic)
    js("poll", name="first", count=3)
    js("commit", name="first", offsets={"0": 2})
    js("leave", name="first")
    assert js("committed", group=group, topic=topic) == {"0": 2}
    js("join", name="second", group=group, topic=topic)
    assert [each["value"] for each in js("poll", name="second", count=1)] == ["c"]


@pytest.mark.covers("S182")
def test_the_offsets_of_an_empty_group_are_set_and_reset(js: JsonLines, topic: str) -> None:
    group = unique("group")
    js("produce", topic=topic, records=values("a", "b", "c"))
    js("set_committed", group=group, topic=topic, offset=1)
    assert js("committed", group=group, topic=topic) == {"0": 1}
    js("join", name="a", group=group, topic=topic)
    assert [each["value"] for each in js("poll", name="a", count=2)] == ["b", "c"]
    js("leave", name="a")


def test_a_group_can_be_deleted_once_it_is_empty(js: JsonLines, topic: str) -> None:
    group = unique("group")
    js("join", name="a", group=group, topic=topic)
    js("assigned", name="a", count=1)
    with pytest.raises(StepError, match="NON_EMPTY_GROUP"):
        js("delete_group", group=group)
    js("commit", name="a", offsets={"0": 0})
    js("leave", name="a")
    assert group in js("groups")
    js("delete_group", group=group)
    assert group not in js("groups")


# -- administration --------------------------------------------------------------------------------


def test_the_cluster_is_described(js: JsonLines, bootstrap_servers: str) -> None:
    cluster = js("cluster")
    assert sorted(cluster["brokers"]) == list(range(1, len(bootstrap_servers.split(",")) + 1))
    assert cluster["controller"] in cluster["brokers"]
    assert len(cluster["cluster_id"]) == 22  # a UUID in base64 without padding


@pytest.mark.covers("S31", "S32", "S33")
def test_topics_are_created_listed_grown_and_deleted(js: JsonLines) -> None:
    topic = unique("topic")
    assert js("create_topic", topic=topic, partitions=2, replicas=1)
    assert not js("create_topic", topic=topic, partitions=2, replicas=1), "it is there already"
    wait_until(lambda: topic in js("topics"), what="a list with the topic")
    js("add_partitions", topic=topic, partitions=5)
    wait_until(lambda: len(js("topic", topic=topic)) == 5, what="five partitions")
    partitions = js("topic", topic=topic)
    for each in partitions:
        assert each["replicas"] == each["isr"] == [each["leader"]]
    js("delete_topic", topic=topic)
    wait_until(lambda: topic not in js("topics"), what="a list without the topic")


@pytest.mark.covers("S31")
def test_more_replicas_than_brokers_are_refused(js: JsonLines) -> None:
    with pytest.raises(StepError, match="INVALID_REPLICATION_FACTOR"):
        js("create_topic", topic=unique("topic"), partitions=1, replicas=9)


@pytest.mark.covers("S37")
def test_topic_configs_are_described_and_altered(js: JsonLines) -> None:
    topic = new_topic(js, cleanup_policy="compact")
    assert js("configs", topic=topic)["cleanup.policy"] == "compact"
    # AlterConfigs, not its incremental successor: what is not named goes back to its default.
    js("set_configs", topic=topic, configs={"retention.ms": "12345"})
    described = js("configs", topic=topic)
    assert described["retention.ms"] == "12345"
    assert described["cleanup.policy"] == "delete"


@pytest.mark.covers("S5", "S27")
def test_offsets_are_listed_by_time_and_deleted_records_are_gone(js: JsonLines, topic: str) -> None:
    start_ms = int(time.time() * 1000) - 60_000
    records = [
        {"partition": 0, "value": str(n), "timestamp_ms": start_ms + 1000 * n} for n in range(10)
    ]
    js("produce", topic=topic, records=records)
    assert js("offsets", topic=topic, timestamp_ms=start_ms + 5_500) == {
        "start": {"0": 0},
        "end": {"0": 10},
        "at": {"0": 6},
    }
    js("delete_records", topic=topic, offset=4)
    assert js("offsets", topic=topic)["start"] == {"0": 4}
    assert [each["offset"] for each in read_all(js, topic, 6)] == list(range(4, 10))
