"""confluent-kafka's consumer as the brokers see it: what it asks for, whom, how long it waits."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, TopicPartition
from confluent_kafka.admin import NewTopic

from mockbroker import Cluster
from mockbroker.core.cluster import Cluster as CoreCluster
from mockbroker_protocol import ApiKey
from mockbroker_protocol.consumer_protocol import decode_assignment, decode_subscription
from tests.support.librdkafka import (
    TIMEOUT_S,
    admin_client,
    delete_topic,
    offsets,
    open_consumer,
    owned,
    poll,
    produce,
    until,
    values,
    wait_until_fetching,
)
from tests.support.request_log import Exchange, RequestLog

GROUP_APIS = (
    ApiKey.FIND_COORDINATOR,
    ApiKey.JOIN_GROUP,
    ApiKey.SYNC_GROUP,
    ApiKey.OFFSET_FETCH,
    ApiKey.HEARTBEAT,
    ApiKey.LEAVE_GROUP,
)


def in_order(exchanges: list[Exchange]) -> list[ApiKey]:
    """The APIs as they first came, without those that run beside the others."""
    order: list[ApiKey] = []
    for each in sorted(exchanges, key=lambda each: each.arrived_ns):
        if each.api not in order:
            order.append(each.api)
    return order


def fetched(log: RequestLog, partition: int = 0) -> list[Exchange]:
    """The Fetches that asked for a partition."""
    return [
        each
        for each in log.of(ApiKey.FETCH)
        if any(p.partition == partition for topic in each.request.topics for p in topic.partitions)
    ]


def asked_offsets(fetch: Exchange) -> list[int]:
    return [p.fetch_offset for topic in fetch.request.topics for p in topic.partitions]


def waits(kafka: Cluster) -> bool:
    """Whether a request waits for something to happen in partition 0 of the topic."""
    return kafka.call(lambda cluster: bool(cluster.topics["t"].partitions[0]._watchers))


# -- the requests of a group member ----------------------------------------------------------------


@pytest.mark.covers("S124", "S199", "S217")
def test_a_member_goes_through_the_requests_of_a_group_in_order(
    kafka: Cluster, log: RequestLog
) -> None:
    produce(kafka.bootstrap_servers, "t", map(str, range(10)))
    config = {"group_id": "g", "client_id": "member", "heartbeat_interval_ms": 50}
    with open_consumer(kafka.bootstrap_servers, **config) as consumer:
        consumer.subscribe(["t"])
        poll(consumer, 10)
        consumer.commit(asynchronous=False)
        until(lambda: bool(log.of(ApiKey.HEARTBEAT)), consumer)
    exchanges = log.of(client_id="member")
    assert in_order(exchanges)[:2] == [ApiKey.API_VERSIONS, ApiKey.METADATA]
    expected = [
        ApiKey.FIND_COORDINATOR,
        ApiKey.JOIN_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.OFFSET_FETCH,
        ApiKey.LIST_OFFSETS,  # as nothing was committed
        ApiKey.FETCH,
        ApiKey.OFFSET_COMMIT,
        ApiKey.LEAVE_GROUP,
    ]
    assert [api for api in in_order(exchanges) if api in expected] == expected
    first, second = log.of(ApiKey.JOIN_GROUP, client_id="member")
    assert (first.request.member_id, first.response.error_code) == ("", 79)
    member_id = first.response.member_id
    assert member_id.startswith("member-")
    assert (second.request.member_id, second.response.error_code) == (member_id, 0)
    [leave] = log.of(ApiKey.LEAVE_GROUP, client_id="member")
    assert leave.request.member_id == member_id


@pytest.mark.covers("S323")
def test_what_members_tell_each_other_is_in_the_requests(kafka: Cluster, log: RequestLog) -> None:
    """The broker hands subscriptions and assignments on; whoever wants to can read them."""
    config = {"group_id": "g", "partition_assignment_strategy": "range,roundrobin"}
    with open_consumer(kafka.bootstrap_servers, **config) as consumer:
        consumer.subscribe(["t"])
        until(lambda: len(owned(consumer)) == 4, consumer)
    *_, join = log.of(ApiKey.JOIN_GROUP)
    assert join.request.protocol_type == "consumer"
    subscriptions = {
        each.name: decode_subscription(each.metadata) for each in join.request.protocols
    }
    assert set(subscriptions) == {"range", "roundrobin"}
    assert {tuple(each.topics) for each in subscriptions.values()} == {("t",)}
    [sync] = log.of(ApiKey.SYNC_GROUP)
    [given] = sync.request.assignments
    assert bytes(given.assignment) == bytes(sync.response.assignment)
    [topic] = decode_assignment(sync.response.assignment).assigned_partitions
    assert (topic.topic, sorted(topic.partitions)) == ("t", [0, 1, 2, 3])


@pytest.mark.covers("S126")
def test_an_assigned_consumer_does_not_join(kafka: Cluster, log: RequestLog) -> None:
    """It fetches and, if it likes, commits under no generation."""
    produce(kafka.bootstrap_servers, "t", map(str, range(10)))
    with open_consumer(kafka.bootstrap_servers, group_id="g", client_id="simple") as consumer:
        consumer.assign([TopicPartition("t", 0)])
        poll(consumer, 10)
        consumer.commit(asynchronous=False)
    [commit] = log.of(ApiKey.OFFSET_COMMIT)
    assert (commit.request.generation_id_or_member_epoch, commit.request.member_id) == (-1, "")
    assert {each.error_code for t in commit.response.topics for each in t.partitions} == {0}
    joining = (ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP)
    assert log.of(*joining) == []


@pytest.mark.covers("S132")
def test_librdkafka_joins_without_being_polled(kafka: Cluster, log: RequestLog) -> None:
    with open_consumer(kafka.bootstrap_servers, group_id="g") as consumer:
        consumer.subscribe(["t"])
        log.wait_for(ApiKey.JOIN_GROUP)


@pytest.mark.covers("S153", "S154", "S217")
@pytest.mark.mock_kafka(topics={"t": 3})
def test_three_members_of_one_process_leave_one_by_one(kafka: Cluster, log: RequestLog) -> None:
    """Each has a partition; closing takes no longer though a Fetch waits at the broker."""
    config = {"group_id": "g", "fetch_wait_max_ms": 30_000, "heartbeat_interval_ms": 50}
    members = [
        open_consumer(kafka.bootstrap_servers, client_id=f"member-{n}", **config) for n in range(3)
    ]
    consumers: list[Consumer] = [member.__enter__() for member in members]
    for consumer in consumers:
        consumer.subscribe(["t"])
    until(lambda: sorted(map(owned, consumers)) == [[0], [1], [2]], *consumers)
    begun_s = time.monotonic()
    for member in members:
        member.__exit__(None, None, None)
    assert time.monotonic() - begun_s < 10
    left = {each.client_id for each in log.of(ApiKey.LEAVE_GROUP)}
    assert left == {"member-0", "member-1", "member-2"}


# -- whom ------------------------------------------------------------------------------------------


@pytest.mark.covers("S149")
@pytest.mark.mock_kafka(topics={})
def test_nobody_but_leaders_and_the_coordinator_is_bothered(
    kafka: Cluster, log: RequestLog
) -> None:
    """Broker 2 leads both partitions and broker 1 coordinates, so 3 tells its metadata at most."""
    admin = admin_client(kafka.bootstrap_servers)
    new = NewTopic("led-by-2", 2, replica_assignment=[[2], [2]])
    admin.create_topics([new])["led-by-2"].result(TIMEOUT_S)
    group = group_coordinated_by(kafka, 1)
    produce(kafka.bootstrap_servers, "led-by-2", ["v"])
    config = {"group_id": group, "client_id": "reader", "heartbeat_interval_ms": 50}
    with open_consumer(kafka.bootstrap_servers, **config) as consumer:
        consumer.subscribe(["led-by-2"])
        poll(consumer, 1)
        consumer.commit(asynchronous=False)
    by_node = {
        node: {each.api for each in log.of(client_id="reader") if each.node_id == node}
        for node in (1, 2, 3)
    }
    assert ApiKey.FETCH in by_node[2]
    assert {ApiKey.JOIN_GROUP, ApiKey.OFFSET_COMMIT} <= by_node[1]
    assert ApiKey.FETCH not in by_node[1] | by_node[3]
    assert by_node[3] <= {ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.FIND_COORDINATOR}


def group_coordinated_by(kafka: Cluster, node_id: int) -> str:
    def find(cluster: CoreCluster) -> str:
        partitions = cluster.ensure_internal_topic("__consumer_offsets").partitions
        names = (f"group-{n}" for n in range(1000))
        return next(
            name
            for name in names
            if partitions[cluster.find_coordinator_partition(name)].leader_id == node_id
        )

    return kafka.call(find)


@pytest.mark.covers("S150")
@pytest.mark.mock_kafka(brokers=1, topics={"t": 1})
def test_the_coordinator_has_a_connection_of_its_own(kafka: Cluster, log: RequestLog) -> None:
    """So that heartbeats do not queue behind a Fetch that waits, though it is the same broker."""
    config = {"group_id": "g", "heartbeat_interval_ms": 50, "fetch_wait_max_ms": 200}
    with open_consumer(kafka.bootstrap_servers, client_id="member", **config) as consumer:
        consumer.subscribe(["t"])
        wait_until_fetching(consumer, "t", 0)
        until(lambda: bool(log.of(ApiKey.HEARTBEAT)), consumer)
    fetching = {each.connection for each in log.of(ApiKey.FETCH)}
    coordinating = {each.connection for each in log.of(ApiKey.HEARTBEAT, ApiKey.JOIN_GROUP)}
    assert fetching
    assert coordinating
    assert not fetching & coordinating


# -- what is asked and answered --------------------------------------------------------------------


@pytest.mark.covers("S142")
@pytest.mark.parametrize(
    ("config", "level"),
    [({}, 1), ({"isolation_level": "read_uncommitted"}, 0)],
    ids=["default", "read_uncommitted"],
)
def test_librdkafka_reads_committed_unless_told_otherwise(
    kafka: Cluster, log: RequestLog, config: dict[str, str], level: int
) -> None:
    """Plain records are the same under both."""
    produce(kafka.bootstrap_servers, "t", ["a", "b"])
    with open_consumer(kafka.bootstrap_servers, **config) as consumer:
        consumer.assign([TopicPartition("t", 0, OFFSET_BEGINNING)])
        assert values(poll(consumer, 2)) == ["a", "b"]
    asked = log.of(ApiKey.FETCH, ApiKey.LIST_OFFSETS)
    assert {each.request.isolation_level for each in asked} == {level}


@pytest.mark.covers("S26")
def test_a_fetch_into_a_batch_is_answered_with_the_whole_batch(
    kafka: Cluster, log: RequestLog
) -> None:
    produce(kafka.bootstrap_servers, "t", map(str, range(10)))
    with open_consumer(kafka.bootstrap_servers) as consumer:
        consumer.assign([TopicPartition("t", 0, 7)])
        assert offsets(poll(consumer, 3)) == [7, 8, 9]
    first = fetched(log)[0]
    [asked] = [p for topic in first.request.topics for p in topic.partitions]
    [given] = [p for topic in first.response.responses for p in topic.partitions]
    stored = kafka.call(lambda cluster: cluster.topics["t"].partitions[0].log.size)
    assert asked.fetch_offset == 7
    assert sum(map(len, given.records)) == stored


@pytest.mark.covers("S133")
def test_a_fetch_of_nothing_waits_its_time(kafka: Cluster, log: RequestLog) -> None:
    with open_consumer(kafka.bootstrap_servers, fetch_wait_max_ms=300) as consumer:
        consumer.assign([TopicPartition("t", 0, OFFSET_BEGINNING)])
        wait_until_fetching(consumer, "t", 0)
        until(lambda: len(fetched(log)) >= 3, consumer)
        waited = fetched(log)[1:]  # the client's end cuts the next one short
    for each in waited:
        assert each.request.max_wait_ms == 300
        assert each.waited_ms >= 295


@pytest.mark.covers("S133")
def test_a_fetch_that_waits_is_answered_when_a_record_comes(
    kafka: Cluster, log: RequestLog
) -> None:
    with open_consumer(kafka.bootstrap_servers, fetch_wait_max_ms=20_000) as consumer:
        consumer.assign([TopicPartition("t", 0, OFFSET_BEGINNING)])
        until(lambda: waits(kafka), consumer)
        produce(kafka.bootstrap_servers, "t", ["v"])
        assert values(poll(consumer, 1)) == ["v"]
        [waited] = fetched(log)
    [produced] = log.of(ApiKey.PRODUCE)
    assert waited.request.max_wait_ms == 20_000
    assert waited.answered_ns > produced.arrived_ns
    assert waited.waited_ms < 20_000 / 2


@pytest.mark.covers("S133")
def test_a_fetch_of_many_bytes_waits_for_them(kafka: Cluster, log: RequestLog) -> None:
    """min.bytes 10,000: one small record does not end the wait, as many bytes do."""
    config = {"fetch_min_bytes": 10_000, "fetch_wait_max_ms": 20_000}
    with open_consumer(kafka.bootstrap_servers, **config) as consumer:
        consumer.assign([TopicPartition("t", 0, OFFSET_BEGINNING)])
        until(lambda: waits(kafka), consumer)
        produce(kafka.bootstrap_servers, "t", ["small"])
        assert waits(kafka)
        assert fetched(log) == []
        produce(kafka.bootstrap_servers, "t", ["x" * 10_000])
        assert len(poll(consumer, 2)) == 2


@pytest.mark.covers("S138")
def test_the_next_fetch_is_sent_while_the_application_works(
    kafka: Cluster, log: RequestLog
) -> None:
    """There is never more than one under way to a broker."""
    produce(kafka.bootstrap_servers, "t", map(str, range(10)))
    with open_consumer(kafka.bootstrap_servers, fetch_wait_max_ms=50) as consumer:
        consumer.assign([TopicPartition("t", 0, 0)])
        assert values(poll(consumer, 1)) == ["0"]
        # Nobody polls now.
        log.wait_for(ApiKey.FETCH, lambda each: 10 in asked_offsets(each))
        assert values(poll(consumer, 9)) == [str(n) for n in range(1, 10)]
    one_by_one = sorted(fetched(log), key=lambda each: each.arrived_ns)
    for before, after in pairwise(one_by_one):
        assert before.answered_ns <= after.arrived_ns


@pytest.mark.covers("S140")
def test_fetches_stay_below_the_limits_of_bytes(kafka: Cluster, log: RequestLog) -> None:
    """Two batches fit below 25,000 bytes and three do not."""
    for _ in range(12):
        produce(kafka.bootstrap_servers, "t", ["x" * 10_000])
    limits = {
        "fetch_max_bytes": 100_000,
        "fetch_message_max_bytes": 25_000,
        "message_max_bytes": 100_000,
    }
    with open_consumer(kafka.bootstrap_servers, **limits) as consumer:
        consumer.assign([TopicPartition("t", 0, 0)])
        assert len(poll(consumer, 12)) == 12
    sizes = [
        sum(map(len, part.records or ()))
        for each in fetched(log)
        for topic in each.response.responses
        for part in topic.partitions
    ]
    assert max(sizes) <= 25_000
    assert len([size for size in sizes if size]) == 6


@pytest.mark.covers("S136")
def test_the_id_of_a_deleted_topic_is_unknown(kafka: Cluster, log: RequestLog) -> None:
    """A Fetch that waits when the topic goes is told 3, one that comes later UNKNOWN_TOPIC_ID
    (100). Both send the client for new metadata, which has the new topic's id.
    """
    produce(kafka.bootstrap_servers, "t", map(str, range(10)))
    with open_consumer(kafka.bootstrap_servers, topic_metadata_refresh_interval_ms=50) as consumer:
        consumer.assign([TopicPartition("t", 0, 0)])
        poll(consumer, 10)
        delete_topic(kafka.bootstrap_servers, "t")
        kafka.topic("t").create()
        produce(kafka.bootstrap_servers, "t", ["anew"])
        deadline = time.monotonic() + TIMEOUT_S
        found = []
        while not found:
            assert time.monotonic() < deadline
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                found.append(message)
    assert (offsets(found), values(found)) == ([0], ["anew"])
    by_id = {
        (topic.topic_id, part.error_code)
        for each in fetched(log)
        for topic in each.response.responses
        for part in topic.partitions
    }
    new_id = kafka.call(lambda cluster: cluster.topics["t"].topic_id)
    assert {0} < {error for topic_id, error in by_id if topic_id != new_id} <= {0, 3, 100}
    assert 0 in {error for topic_id, error in by_id if topic_id == new_id}


@pytest.mark.covers("S127")
def test_latest_is_looked_up_where_nothing_is_committed(kafka: Cluster, log: RequestLog) -> None:
    produce(kafka.bootstrap_servers, "t", map(str, range(10)))
    with open_consumer(kafka.bootstrap_servers) as consumer:
        consumer.assign([TopicPartition("t", 0, OFFSET_END)])
        wait_until_fetching(consumer, "t", 10)
    [looked_up] = log.of(ApiKey.LIST_OFFSETS)
    assert looked_up.request.topics[0].partitions[0].timestamp == -1
    assert looked_up.response.topics[0].partitions[0].offset == 10
