"""What consumers live through: late answers, cut ones, ends that cannot be had, black holes."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator

import pytest
from confluent_kafka import KafkaError, TopicPartition

from mockbroker import Cluster
from mockbroker.client.connection import Connection
from mockbroker.server.config import ListenerSpec
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from mockbroker_protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.faulty import impatient_consumer
from tests.support.librdkafka import TIMEOUT_S, offsets, open_consumer, poll, produce
from tests.support.waiting import wait_until


@pytest.mark.covers("S131")
def test_a_short_poll_comes_back_empty_from_a_leader_that_is_late(
    kafka: Cluster, topic: str
) -> None:
    """It takes 12 s to answer the Fetch after a seek: whoever polls less gets nothing, whoever goes
    on polling gets the record, and the journal names the request that was late. The 12 s pass on
    the cluster's clock.
    """
    produce(kafka.bootstrap_servers, topic, ["a", "b"])
    with open_consumer(kafka.bootstrap_servers, client_id="poller") as consumer:
        consumer.assign([TopicPartition(topic, 0, 1)])
        assert offsets(poll(consumer, 1)) == [1]
        mark = kafka.journal.last_seq
        late = kafka.faults.add(
            match={"api": "Fetch", "client_id": "poller"}, when={"times": 1}, do={"delay": "12s"}
        )
        try:
            late.wait()
            kafka.clock.freeze()
            consumer.seek(TopicPartition(topic, 0, 1))
            assert consumer.poll(0.3) is None
            kafka.clock.advance("12s")
            assert offsets(poll(consumer, 1)) == [1]
        finally:
            kafka.clock.thaw()
    [name] = [rule.name for rule in late]
    [answer] = kafka.journal.events(kind="response", rule=name, after_seq=mark)
    [request] = [each for each in kafka.journal.events() if each.seq == answer.request_seq]
    assert (answer.api, answer.broker) == ("Fetch", 1)
    assert answer.virtual_ms - request.virtual_ms >= 12_000


@pytest.mark.covers("S279")
@pytest.mark.parametrize(
    "do",
    [
        {"close": {"phase": "before"}},
        {"close": {"phase": "after", "how": "rst"}},
        {"truncate_reply": {"fraction": 0.5, "then": "close"}},
    ],
    ids=["before the answer", "instead of it", "in the middle of it"],
)
def test_a_connection_that_is_cut_before_the_response_was_read(
    kafka: Cluster, topic: str, do: dict[str, object]
) -> None:
    """The client notices, opens another connection and another fetch session, and gets every record
    once.
    """
    count = 200
    errors: list[KafkaError] = []
    values = [str(number) for number in range(count)]
    produce(kafka.bootstrap_servers, topic, values, batch_num_messages=10)
    mark = kafka.journal.last_seq
    cut = kafka.faults.add(match={"api": "Fetch", "client_id": "cut"}, when={"nth": 3}, do=do)
    with impatient_consumer(
        kafka, client_id="cut", error_cb=errors.append, fetch_message_max_bytes=500
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = poll(consumer, count)
        assert cut.hits == 1
        assert consumer.poll(0.1) is None
    assert offsets(found) == list(range(count))
    [name] = [rule.name for rule in cut]
    [hit] = kafka.journal.events(kind="response", rule=name, after_seq=mark)
    after = kafka.journal.events(
        kind="request", api="Fetch", client_id="cut", after_seq=hit.seq, topic=topic
    )
    assert {each.connection for each in after}.isdisjoint({hit.connection})
    assert after[0].message["session_epoch"] in (-1, 0)  # not that of the session before
    kafka.journal.at_least(1, kind="connection", change="closed", connection=hit.connection)
    assert [each.code() for each in errors if each.fatal()] == []


ASKED = 20


def ask_for_the_ends(kafka: Cluster, topic: str, seed: int) -> list[bool]:
    """Whether each of twenty clients was told where a partition of broker 2 ends."""
    kafka.faults.clear()
    kafka.faults.add(
        {
            "seed": seed,
            "rules": [
                {
                    "match": {"api": "ListOffsets", "broker": 2},
                    "when": {"probability": 0.5},
                    "do": {"drop_request": {}},
                }
            ],
        }
    )
    mark = kafka.journal.last_seq
    request = ListOffsetsRequest(
        topics=[ListOffsetsTopic(topic, [ListOffsetsPartition(0, timestamp=-1)])]
    )
    told: list[bool] = []
    with contextlib.ExitStack() as stack:
        peers = []
        for number in range(ASKED):
            peer = Connection(*kafka.endpoint(2), f"asks-{number}", timeout_s=TIMEOUT_S)
            stack.callback(peer.close)
            metadata = peer.send(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 12)
            assert metadata.topics[0].partitions[0].leader_id == 2  # this call always succeeds
            peer.write(request, 8)
            peers.append(peer)
            # The draws come in the order of the requests.
            kafka.journal.wait(number + 1, kind="request", api="ListOffsets", after_seq=mark)
        dropped = {
            each.client_id
            for each in kafka.journal.wait(
                ASKED, kind="response", api="ListOffsets", after_seq=mark
            )
            if each.outcome
        }
        for number, peer in enumerate(peers):
            if f"asks-{number}" in dropped:
                assert not peer.wait_closed(0.01)  # neither an answer nor an end
            else:
                answer = peer.read(ApiKey.LIST_OFFSETS, 8)
                assert answer.topics[0].partitions[0].offset == 0
            told.append(f"asks-{number}" not in dropped)
    return told


@pytest.mark.covers("S271")
def test_the_ends_on_an_unreliable_broker_are_had_by_chance_and_the_chance_by_seed(
    kafka: Cluster,
) -> None:
    """Metadata always works, ListOffsets for half of the clients; the others wait in vain. The same
    seed is the same list, another seed another.
    """
    kafka.call(lambda c: c.create_topic("T-TRADE-1", assignments={0: [2, 1, 3]}))
    first = ask_for_the_ends(kafka, "T-TRADE-1", seed=17)
    assert set(first) == {True, False}
    assert ask_for_the_ends(kafka, "T-TRADE-1", seed=17) == first
    assert ask_for_the_ends(kafka, "T-TRADE-1", seed=18) != first


@contextlib.contextmanager
def black_hole() -> Iterator[tuple[str, int]]:
    """An address where connections are never made: its queue is full, so SYNs are dropped."""
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(socket.socket())
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for _ in range(8):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                filler.connect(server.getsockname())
        yield server.getsockname()


@pytest.mark.covers("S280")
def test_a_connection_that_is_never_made_is_given_up_after_its_own_timeout(
    kafka: Cluster, topic: str
) -> None:
    """Not after that of requests. Metadata sends the consumer into a black hole; when it tells the
    truth again, the record arrives.
    """
    produce(kafka.bootstrap_servers, topic, ["a"])
    stats: list[str] = []
    with black_hole() as (host, port):
        rule = kafka.faults.add(
            match={"api": "Metadata", "client_id": "lost"},
            do={"falsify_metadata": {"address": {"node": 1, "host": host, "port": port}}},
        )
        with open_consumer(
            ",".join(kafka.bootstrap_servers.split(",")[1:]),
            client_id="lost",
            stats_cb=stats.append,
            statistics_interval_ms=100,
            socket_connection_setup_timeout_ms=1000,
            topic_metadata_refresh_interval_ms=200,
            reconnect_backoff_max_ms=100,
        ) as consumer:
            consumer.assign([TopicPartition(topic, 0, 0)])

            def given_up() -> bool:
                assert consumer.poll(0.05) is None
                brokers = json.loads(stats[-1])["brokers"].values() if stats else ()
                return any(each["connects"] > 2 for each in brokers if each["nodeid"] == 1)

            wait_until(given_up, what="a third attempt to connect")
            rule.remove()
            assert offsets(poll(consumer, 1)) == [0]


@pytest.fixture(scope="module")
def two_listeners() -> Iterator[Cluster]:
    with Cluster(
        brokers=1, topics={"t": 2}, listeners=[ListenerSpec("INSIDE"), ListenerSpec("OUTSIDE")]
    ) as cluster:
        yield cluster


@pytest.mark.covers("S325")
@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.LISTENER_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.REPLICA_NOT_AVAILABLE,
    ],
    ids=lambda each: each.name,
)
def test_metadata_tells_an_error_of_one_partition_to_those_who_ask_on_one_listener(
    two_listeners: Cluster, error: ErrorCode
) -> None:
    """The other partition, and whoever asks on the other listener, get what is true."""
    kafka = two_listeners
    kafka.faults.clear()
    kafka.faults.add(
        match={"api": "Metadata", "topic": "t", "partition": 1, "listener": "OUTSIDE"},
        do={"falsify_metadata": {"error": error.name}},
    )
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    found = {}
    for listener in ("INSIDE", "OUTSIDE"):
        with Connection(*kafka.endpoint(1, listener), timeout_s=TIMEOUT_S) as connection:
            [told] = connection.send(request, 12).topics
        found[listener] = {each.partition_index: each.error_code for each in told.partitions}
    assert found == {"INSIDE": {0: 0, 1: 0}, "OUTSIDE": {0: 0, 1: error}}
