"""franz-go: its producers, consumers, groups and admin client work unmodified.

Every test runs against ours and, marked `real_kafka`, against Kafka itself, so that an assertion
here is what Kafka does and not what we think it does.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import golang
from tests.support.json_lines import JsonLines, StepError
from tests.support.librdkafka import set_group_configs
from tests.support.waiting import wait_until

pytestmark = pytest.mark.go

Json = dict[str, Any]

VALUES = [f"value {n} " + "x" * (n % 97) for n in range(200)]
_numbers = itertools.count(1)


def franz_go(bootstrap_servers: str) -> JsonLines:
    """franz-go behind a pipe, connected; its group members leave when it is closed."""
    tour = JsonLines(golang.tour())
    tour("connect", bootstrap=bootstrap_servers.split(","))
    return tour


@pytest.fixture
def go(bootstrap_servers: str) -> Iterator[JsonLines]:
    with franz_go(bootstrap_servers) as tour:
        yield tour


@pytest.fixture
def other_go(bootstrap_servers: str) -> Iterator[JsonLines]:
    """A second program, for what happens while the first one waits."""
    with franz_go(bootstrap_servers) as tour:
        yield tour


@pytest.fixture
def topic(go: JsonLines) -> str:
    """A topic of one partition."""
    return new_topic(go)


def unique(stem: str) -> str:
    return f"franz-go-{stem}-{next(_numbers)}"


def new_topic(go: JsonLines, partitions: int = 1, **configs: str) -> str:
    name = unique("topic")
    configs = {key.replace("_", "."): value for key, value in configs.items()}
    go("create_topic", topic=name, partitions=partitions, replicas=1, configs=configs)
    return name


def values(*texts: str, partition: int = 0) -> list[Json]:
    return [{"value": text, "partition": partition} for text in texts]


def read(go: JsonLines, topic: str, count: int, **fields: Any) -> list[Json]:
    found: list[Json] = go("read", topic=topic, count=count, **fields)
    return found


# -- producing and reading -------------------------------------------------------------------------


@pytest.mark.covers("S101")
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_compression_is_read_back(go: JsonLines, topic: str, codec: str) -> None:
    sent = go("produce", topic=topic, codec=codec, idempotent=True, records=values(*VALUES))
    assert [each["offset"] for each in sent] == list(range(len(VALUES)))
    assert [each["value"] for each in read(go, topic, len(VALUES))] == VALUES


@pytest.mark.covers("S102")
@pytest.mark.parametrize("codec", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_a_topic_that_recompresses_is_read_back(go: JsonLines, codec: str) -> None:
    topic = new_topic(go, compression_type=codec)
    go("produce", topic=topic, codec="snappy", idempotent=True, records=values(*VALUES))
    assert [each["value"] for each in read(go, topic, len(VALUES))] == VALUES


@pytest.mark.covers("S1", "S99")
@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_kind_of_acknowledgement_stores_the_records(
    go: JsonLines, topic: str, acks: str
) -> None:
    go("produce", topic=topic, acks=acks, records=values(*VALUES))
    assert [each["value"] for each in read(go, topic, len(VALUES))] == VALUES


@pytest.mark.covers("S116")
def test_the_default_producer_is_idempotent(go: JsonLines, topic: str) -> None:
    go("produce", topic=topic, idempotent=True, records=values("a", "b"))
    go("produce", topic=topic, idempotent=True, records=values("c"))
    assert [each["value"] for each in read(go, topic, 3)] == ["a", "b", "c"]


def test_keys_headers_nulls_and_timestamps_survive(go: JsonLines, topic: str) -> None:
    now_ms = int(time.time() * 1000)
    records = [
        {"key": "k", "value": "v", "headers": {"trace": "1", "empty": ""}, "timestamp_ms": now_ms},
        {"key": None, "value": None, "timestamp_ms": now_ms + 1},
        {"key": "", "value": "", "timestamp_ms": now_ms + 2},
    ]
    go("produce", topic=topic, idempotent=True, records=records)
    found = read(go, topic, 3)
    assert [(each["key"], each["value"]) for each in found] == [("k", "v"), (None, None), ("", "")]
    assert found[0]["headers"] == {"trace": "1", "empty": ""}
    assert [each["timestamp_ms"] for each in found] == [now_ms, now_ms + 1, now_ms + 2]


def test_reading_starts_inside_a_batch(go: JsonLines, topic: str) -> None:
    go("produce", topic=topic, idempotent=True, records=values(*VALUES[:10]))
    assert [each["offset"] for each in read(go, topic, 3, offset=7)] == [7, 8, 9]


def test_reading_starts_at_a_timestamp(go: JsonLines, topic: str) -> None:
    start_ms = int(time.time() * 1000) - 60_000
    records = [{"value": str(n), "timestamp_ms": start_ms + 1000 * n} for n in range(10)]
    go("produce", topic=topic, idempotent=True, records=records)
    found = read(go, topic, 4, timestamp_ms=start_ms + 5_500)
    assert [each["value"] for each in found] == ["6", "7", "8", "9"]
    at = go("offsets", topic=topic, timestamp_ms=start_ms + 5_500)
    assert at == {
        "start": {"0": 0},
        "end": {"0": 10},
        "at": {"0": 6},
        "max_timestamp": {"0": 9},
    }


def test_a_reader_that_waits_gets_what_comes_later(
    go: JsonLines, other_go: JsonLines, topic: str
) -> None:
    other_go.send("read", topic=topic, count=1)
    go("produce", topic=topic, idempotent=True, records=values("late"))
    assert [each["value"] for each in other_go.receive()] == ["late"]


def test_producing_to_a_partition_that_is_not_there_fails(go: JsonLines, topic: str) -> None:
    with pytest.raises(StepError):
        go("produce", topic=topic, records=values("lost", partition=7), timeout_ms=5_000)


# -- groups ----------------------------------------------------------------------------------------


@pytest.mark.covers("S186", "S188", "S203")
@pytest.mark.parametrize("balancer", ["range", "roundrobin", "cooperative-sticky"])
def test_two_members_share_the_partitions_and_one_inherits_them(
    go: JsonLines, balancer: str
) -> None:
    topic, group = new_topic(go, partitions=4), unique("group")
    go("join", name="a", group=group, topic=topic, balancer=balancer)
    assert go("assigned", name="a", count=4) == [0, 1, 2, 3]
    go("join", name="b", group=group, topic=topic, balancer=balancer)
    mine, others = go("assigned", name="a", count=2), go("assigned", name="b", count=2)
    assert sorted(mine + others) == [0, 1, 2, 3]
    described = go("group", group=group)
    assert (described["state"], described["protocol"]) == ("Stable", balancer)
    assert sorted(each["partitions"] for each in described["members"]) == sorted([mine, others])
    go("leave", name="b")
    assert go("assigned", name="a", count=4) == [0, 1, 2, 3]


@pytest.mark.covers("S12", "S170", "S178")
def test_a_member_resumes_where_the_group_committed(go: JsonLines, topic: str) -> None:
    group = unique("group")
    go("produce", topic=topic, idempotent=True, records=values("a", "b", "c"))
    assert go("committed", group=group, topic=topic) == {}
    go("join", name="first", group=group, topic=topic)
    assert [each["value"] for each in go("poll", name="first", count=3)] == ["a", "b", "c"]
    go("commit", name="first")
    go("leave", name="first")
    assert go("committed", group=group, topic=topic) == {"0": 3}
    go("produce", topic=topic, idempotent=True, records=values("d"))
    go("join", name="second", group=group, topic=topic)
    assert [each["value"] for each in go("poll", name="second", count=1)] == ["d"]


@pytest.mark.covers("S186")
def test_each_record_goes_to_one_member(go: JsonLines) -> None:
    topic, group = new_topic(go, partitions=2), unique("group")
    for name in ("a", "b"):
        go("join", name=name, group=group, topic=topic)
    for name in ("a", "b"):
        go("assigned", name=name, count=1)
    records = values(*VALUES[:50]) + values(*VALUES[50:100], partition=1)
    go("produce", topic=topic, idempotent=True, records=records)
    got = go("poll", name="a", count=50) + go("poll", name="b", count=50)
    assert sorted(each["value"] for each in got) == sorted(VALUES[:100])


def test_a_static_member_keeps_its_partitions_through_a_restart(go: JsonLines) -> None:
    topic, group = new_topic(go, partitions=2), unique("group")
    for name in ("a", "b"):
        go("join", name=name, group=group, topic=topic, instance_id=f"instance-{name}")
    before = go("assigned", name="a", count=1)
    kept = go("assigned", name="b", count=1)
    go("leave", name="a")  # closing a static member does not leave the group
    members = go("group", group=group)["members"]
    assert {each["instance_id"] for each in members} == {"instance-a", "instance-b"}
    go("join", name="a", group=group, topic=topic, instance_id="instance-a")
    assert go("assigned", name="a", count=1) == before
    assert go("assigned", name="b", count=1) == kept


def test_a_group_can_be_deleted_once_it_is_empty(go: JsonLines, topic: str) -> None:
    group = unique("group")
    go("join", name="a", group=group, topic=topic)
    go("assigned", name="a", count=1)
    with pytest.raises(StepError, match="NON_EMPTY_GROUP"):
        go("delete_group", group=group)
    go("produce", topic=topic, idempotent=True, records=values("v"))
    go("poll", name="a", count=1)
    go("commit", name="a")
    go("leave", name="a")
    assert go("groups")[group] == "Empty"
    go("delete_group", group=group)
    assert group not in go("groups")


# -- administration --------------------------------------------------------------------------------


@pytest.mark.covers("S31", "S32")
def test_topics_are_created_listed_grown_and_deleted(go: JsonLines) -> None:
    topic = unique("topic")
    created = go("create_topic", topic=topic, partitions=2, replicas=1, configs={})
    assert created == {"partitions": 2, "replicas": 1}
    with pytest.raises(StepError, match="TOPIC_ALREADY_EXISTS"):
        go("create_topic", topic=topic, partitions=2, replicas=1, configs={})
    go("add_partitions", topic=topic, partitions=5)
    # In a real cluster, what a controller did takes time to reach the brokers.
    wait_until(lambda: len(go("topics")[topic]) == 5)
    for each in go("topics")[topic]:
        assert each["replicas"] == each["isr"] == [each["leader"]]
    go("delete_topic", topic=topic)
    wait_until(lambda: topic not in go("topics"))
    with pytest.raises(StepError, match="UNKNOWN_TOPIC_OR_PARTITION"):
        go("delete_topic", topic=topic)


@pytest.mark.covers("S31")
def test_more_replicas_than_brokers_are_refused(go: JsonLines) -> None:
    with pytest.raises(StepError, match="INVALID_REPLICATION_FACTOR"):
        go("create_topic", topic=unique("topic"), partitions=1, replicas=9, configs={})


@pytest.mark.covers("S37")
def test_topic_configs_are_described_with_their_source_and_altered(go: JsonLines) -> None:
    topic = new_topic(go, cleanup_policy="compact")
    go("set_configs", topic=topic, configs={"retention.ms": "12345"})
    wait_until(lambda: go("configs", topic=topic)["retention.ms"]["value"] == "12345")
    described = go("configs", topic=topic)
    assert described["cleanup.policy"] == {"value": "compact", "source": "DYNAMIC_TOPIC_CONFIG"}
    assert described["retention.ms"] == {"value": "12345", "source": "DYNAMIC_TOPIC_CONFIG"}
    assert described["segment.bytes"]["source"] == "DEFAULT_CONFIG"
    with pytest.raises(StepError, match="INVALID_CONFIG"):
        go("set_configs", topic=topic, configs={"retention.ms": "soon"})


@pytest.mark.covers("S5")
def test_deleted_records_are_gone_and_the_log_starts_later(go: JsonLines, topic: str) -> None:
    go("produce", topic=topic, idempotent=True, records=values(*VALUES[:10]))
    assert go("delete_records", topic=topic, offset=4) == 4
    assert go("offsets", topic=topic, timestamp_ms=0)["start"] == {"0": 4}
    assert [each["offset"] for each in read(go, topic, 6, offset=4)] == list(range(4, 10))
    with pytest.raises(StepError, match="OFFSET_OUT_OF_RANGE"):
        go("delete_records", topic=topic, offset=11)


def test_members_of_a_share_group_accept_release_and_reject(
    go: JsonLines, topic: str, bootstrap_servers: str
) -> None:
    """What is final never comes again, and what was in hand comes to the next member (KIP-932)."""
    group = unique("shared")
    set_group_configs(bootstrap_servers, group, share_auto_offset_reset="earliest")
    go("produce", topic=topic, records=[{"value": value} for value in "abcd"])
    go("share_join", name="first", group=group, topic=topic)
    taken = go("share_poll", name="first", count=4)
    assert [(each["value"], each["delivery_count"]) for each in taken] == [(v, 1) for v in "abcd"]
    for offset, kind in ((0, "accept"), (1, "release"), (2, "reject")):
        go("share_ack", name="first", offset=offset, acks=kind)
    go("share_leave", name="first")
    go("share_join", name="second", group=group, topic=topic)
    again = go("share_poll", name="second", count=2)
    assert [each["value"] for each in again] == ["b", "d"]
    # The first member may have fetched the released record ahead of its next poll.
    assert again[0]["delivery_count"] in (2, 3)
    assert again[1]["delivery_count"] == 2
