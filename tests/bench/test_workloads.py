"""The workloads of the scale goals do what their measures say, here at a small scale."""

from __future__ import annotations

import dataclasses
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

import pytest

from bench import model, raw, swarm
from bench.drivers import FRANZ_GO
from bench.model import Running, Workload
from bench.workloads import flat, greedy
from bench.workloads.fairness import Crowd, Fairness, Ordinary, greed
from bench.workloads.flat import FlatGroups, FlatPartitions
from bench.workloads.groups import JOIN, Rebalance, alone, find_coordinators, member, play
from bench.workloads.passing_week import seconds_of_a_week
from bench.workloads.snapshots import seconds_there_and_back
from bench.workloads.wire import Connections, FullMetadata
from mockbroker import Cluster
from mockbroker.core.groups.shard import GroupShard
from mockbroker_protocol import ApiKey, ErrorCode
from tests.support.librdkafka import set_group_configs

SMALL = dataclasses.replace(model.QUICK, groups=5, partitions=200, connections=5, round_trips=40)
SMALL = dataclasses.replace(SMALL, crowd_connections=5, crowd_groups=3)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="CPU time is told on Linux only")


class InThisProcess:
    """A cluster of the fixtures as a peer."""

    name = title = "mockbroker"

    def __init__(self, kafka: Cluster) -> None:
        self.kafka = kafka

    def prepare(self) -> None:
        raise AssertionError

    def start(self) -> AbstractContextManager[Running]:
        raise AssertionError

    def create_topic(self, running: Running, topic: str, partitions: int = 1) -> None:
        self.kafka.topic(topic).create(partitions)

    def create_topics(self, running: Running, topics: Sequence[str], partitions: int) -> float:
        for topic in topics:
            self.kafka.topic(topic).create(partitions)
        return 0.5

    def delete_topic(self, running: Running, topic: str) -> None:
        raise AssertionError


@pytest.fixture
def running() -> Iterator[Running]:
    with Cluster(brokers=3) as kafka:
        yield Running(InThisProcess(kafka), kafka.bootstrap_servers, (os.getpid(),), 0.0)


def states(kafka: Cluster) -> list[tuple[str, int]]:
    """The state and the number of members of each group."""
    return kafka.call(
        lambda cluster: [
            (group.state.value, len(group.members))
            for broker in cluster.brokers.values()
            for shard in broker.groups.shards()
            if isinstance(shard, GroupShard)
            for group in shard.groups.values()
        ]
    )


@pytest.mark.parametrize("workload", [Connections(), FullMetadata(), Rebalance(), Crowd()])
def test_each_measure_gets_a_figure(running: Running, workload: Workload) -> None:
    figures = workload.run(running, SMALL)
    assert figures.keys() == {measure.name for measure in workload.measures}
    assert all(figure >= 0 for figure in figures.values())


@pytest.mark.parametrize("workload", [FlatPartitions(), FlatGroups()])
def test_costs_in_a_large_cluster_are_compared_with_those_in_a_small_one(
    running: Running, workload: Workload
) -> None:
    [ratio] = workload.run(running, SMALL).values()
    assert ratio > 0


def test_groups_end_up_stable_with_two_members_each(running: Running) -> None:
    assert isinstance(running.peer, InThisProcess)
    groups = ["a", "b", "c"]
    coordinators = find_coordinators(running.address, groups)
    swarm.drive((coordinators[group], member(group)) for _ in range(2) for group in groups)
    assert states(running.peer.kafka) == [("Stable", 2)] * len(groups)


def test_a_peer_that_closes_instead_of_answering_is_an_error(running: Running) -> None:
    def nonsense() -> swarm.Script:
        yield (-1).to_bytes(4, "big", signed=True)

    with pytest.raises(ConnectionError, match="closed instead of answering"):
        swarm.drive([(running.address, nonsense())])


def test_a_cluster_is_put_back_and_reset() -> None:
    assert all(seconds > 0 for seconds in seconds_there_and_back().values())


def test_a_week_passes_and_everything_has_expired() -> None:
    assert seconds_of_a_week() > 0


@pytest.mark.parametrize("kind", greedy.KINDS)
def test_an_ordinary_client_is_served_beside_each_kind_of_greed(
    running: Running, kind: str
) -> None:
    running.peer.create_topics(running, [flat.TOPIC, greedy.TOPIC], 3)
    connection = raw.RawConnection(flat.leader(running.address), raw.TIMEOUT_S)
    ordinary = Ordinary(connection, flat.partition_requests(), os.getpid())
    with connection, greed(kind, flat.leader(running.address, greedy.TOPIC)):
        times = ordinary.times(5)
    assert len(times) == 20
    assert all(0 <= each < raw.TIMEOUT_S for each in times)


def test_each_kind_of_greed_has_a_measure() -> None:
    names = {measure.name for measure in Fairness.measures}
    assert names == {f"fairness-{kind}" for kind in greedy.KINDS}


def test_greed_that_comes_to_nothing_is_an_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        address = nobody.getsockname()
    with pytest.raises(RuntimeError, match="dripping"), greed("dripping", address):
        raise AssertionError


@pytest.mark.go
@pytest.mark.slow
def test_the_members_of_a_share_group_consume_all(running: Running):
    running.peer.create_topic(running, "shared")
    bootstrap = running.bootstrap_servers
    set_group_configs(bootstrap, "shared", share_auto_offset_reset="earliest")
    assert FRANZ_GO.consume_shared(bootstrap, "shared", count=2000, members=2) > 0


def test_a_member_joins_anew_where_its_group_was_removed_before_it_was_in() -> None:
    """The check for expired offsets comes between the two requests of a join."""
    with Cluster(brokers=1) as kafka:
        [address] = find_coordinators(kafka.endpoint(1), ["g"]).values()
        errors: list[int] = []

        class Interrupted(raw.RawConnection):
            def round_trip(self, request: bytes) -> memoryview:
                answer = super().round_trip(request)
                if len(errors) < 4:
                    joined = raw.answer(ApiKey.JOIN_GROUP, JOIN, answer)
                    errors.append(joined.error_code)
                if len(errors) == 1:
                    kafka.clock.advance("10m")
                return answer

        with Interrupted(address) as connection:
            assert len(play(connection, alone("g")).members) == 1
        needs_an_id = ErrorCode.MEMBER_ID_REQUIRED
        unknown = ErrorCode.UNKNOWN_MEMBER_ID
        assert errors == [needs_an_id, unknown, needs_an_id, ErrorCode.NONE]
