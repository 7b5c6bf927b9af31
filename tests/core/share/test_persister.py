"""The persister: requests about share partitions reach their coordinators, and are repeated."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from mockbroker.core.metadata.topic import SHARE_GROUP_STATE_TOPIC
from mockbroker.core.replication.network import links_between
from mockbroker.core.replication.partition import Partition
from mockbroker.core.share.operations import DELETE, INITIALIZE, READ, READ_SUMMARY, WRITE
from mockbroker.core.share.persister import ATTEMPTS_PER_FLIGHT, SharePersister
from mockbroker_protocol import ErrorCode
from tests.support.hops import add_hop_rule, remove_rule
from tests.support.requests import Node
from tests.support.share_states import (
    ACKNOWLEDGED,
    ARCHIVED,
    delete_request,
    initialize_request,
    read_request,
    state_partition,
    summary_request,
    write_request,
)

E = ErrorCode
THREE = (None, None, None)
BACKOFFS_MS = (2_000, 4_000, 8_000, 16_000)


class PersisterNode(Node):
    """Three brokers with a topic "t" of four partitions; requests go to the persister of one that
    coordinates none of the share partition g:t:0.
    """

    def __init__(self, **configs: str) -> None:
        super().__init__(racks=THREE, configs=configs)
        self.topic_id = self.topic("t", 4).topic.topic_id
        self.answers: list[Any] = []

    @property
    def state(self) -> Partition:
        return state_partition(self.cluster, self.topic_id)

    @property
    def persister(self) -> SharePersister:
        far = next(n for n in self.cluster.brokers if n != self.state.leader_id)
        return self.cluster.processes[far].share_persister

    def ask(self, method: Callable[..., None], request: Any) -> Any:
        """The results of a request that is answered at once."""
        before = len(self.answers)
        method(request, self.answers.append)
        assert len(self.answers) == before + 1
        return results(self.answers[-1])

    def cut_off_coordinator(self) -> None:
        others = set(self.cluster.brokers) - {self.state.leader_id}
        self.cluster.replication.network.cut(
            links_between(others, [self.state.leader_id], both_ways=True)
        )


def results(response: Any) -> list[Any]:
    return [result for topic in response.results for result in topic.partitions]


def errors(response: Any) -> list[tuple[int, str | None]]:
    return [(result.error_code, result.error_message) for result in results(response)]


@pytest.fixture
def node() -> PersisterNode:
    return PersisterNode()


def test_the_first_request_creates_the_topic() -> None:
    node = Node()
    topic_id = node.topic().topic.topic_id
    assert SHARE_GROUP_STATE_TOPIC not in node.cluster.topics
    answers: list[Any] = []
    node.cluster.brokers[1].share_persister.send(
        INITIALIZE, initialize_request(topic_id), answers.append
    )
    assert errors(answers[0]) == [(0, None)]
    topic = node.cluster.topics[SHARE_GROUP_STATE_TOPIC]
    assert (len(topic.partitions), topic.configs.cleanup_policy) == (50, ("delete",))


def test_a_state_is_initialized_written_read_and_deleted(node: PersisterNode) -> None:
    persister, topic_id = node.persister, node.topic_id
    node.ask(partial(persister.send, INITIALIZE), initialize_request(topic_id, 0, start=5))
    node.ask(
        partial(persister.send, WRITE),
        write_request(topic_id, {0: [(6, 9, ACKNOWLEDGED, 1)]}, start=6, complete=4),
    )
    (read,) = node.ask(partial(persister.send, READ), read_request(topic_id))
    assert (read.state_epoch, read.start_offset) == (1, 6)
    (batch,) = read.state_batches
    assert (batch.first_offset, batch.last_offset) == (6, 9)
    assert (batch.delivery_state, batch.delivery_count) == (ACKNOWLEDGED, 1)
    (summary,) = node.ask(partial(persister.send, READ_SUMMARY), summary_request(topic_id))
    assert (summary.start_offset, summary.delivery_complete_count) == (6, 4)
    (deleted,) = node.ask(partial(persister.send, DELETE), delete_request(topic_id))
    assert deleted.error_code == 0
    (summary,) = node.ask(partial(persister.send, READ_SUMMARY), summary_request(topic_id))
    assert (summary.start_offset, summary.delivery_complete_count) == (-1, -1)


def test_the_share_partitions_of_a_request_may_have_several_coordinators(
    node: PersisterNode,
) -> None:
    partitions = range(4)
    leaders = {state_partition(node.cluster, node.topic_id, each).leader_id for each in partitions}
    assert len(leaders) > 1
    answer = node.ask(
        partial(node.persister.send, INITIALIZE), initialize_request(node.topic_id, *partitions)
    )
    assert [(line.partition, line.error_code) for line in answer] == [(p, 0) for p in partitions]


def test_a_request_without_partitions_has_an_empty_answer(node: PersisterNode) -> None:
    request = read_request(node.topic_id)
    request.topics.clear()
    assert node.ask(partial(node.persister.send, READ), request) == []


def test_an_error_that_stays_is_passed_on_with_the_coordinators_words(node: PersisterNode) -> None:
    request = write_request(node.topic_id, {0: []})
    (line,) = node.ask(partial(node.persister.send, WRITE), request)
    assert (line.error_code, line.error_message) == (
        E.INVALID_REQUEST,
        "Error in write state RPC. Write operation on uninitialized share partition not allowed.",
    )


def test_an_unknown_partition_is_asked_for_five_times(node: PersisterNode) -> None:
    """Metadata of the coordinator may lag behind, so it is no final error at first."""
    node.persister.send(READ_SUMMARY, summary_request(node.topic_id, 9), node.answers.append)
    for backoff_ms in BACKOFFS_MS:
        node.advance(backoff_ms - 1)
        assert node.answers == []
        node.advance(1)
    assert errors(node.answers[0]) == [
        (
            E.UNKNOWN_TOPIC_OR_PARTITION,
            "Error in read state summary RPC. "
            "Exhausted max retries to complete read state summary RPC without success.",
        )
    ]


def test_without_a_coordinator_five_lookups_fail(node: PersisterNode) -> None:
    state, persister = node.state, node.persister
    for node_id in list(state.replicas):
        if node_id != persister._host.node_id:
            node.cluster.stop_broker(node_id, "unclean")
    assert state.leader_id == persister._host.node_id
    state.become_leader(-1, state.leader_epoch + 1, state.isr)
    persister.send(READ, read_request(node.topic_id), node.answers.append)
    for backoff_ms in BACKOFFS_MS:
        assert node.answers == []
        node.advance(backoff_ms)
    assert errors(node.answers[0]) == [
        (
            E.COORDINATOR_NOT_AVAILABLE,
            "Error in find coordinator. Exhausted max retries to find coordinator without success.",
        )
    ]


def test_a_cut_link_is_tried_again_and_found_healed(node: PersisterNode) -> None:
    node.ask(partial(node.persister.send, INITIALIZE), initialize_request(node.topic_id))
    node.cut_off_coordinator()
    node.persister.send(READ, read_request(node.topic_id), node.answers.append)
    node.advance(BACKOFFS_MS[0])
    node.cluster.replication.network.heal()
    node.advance(BACKOFFS_MS[1] - 1)
    assert len(node.answers) == 1
    node.advance(1)
    assert errors(node.answers[1]) == [(0, None)]


def test_the_fifth_disconnection_is_final(node: PersisterNode) -> None:
    node.cut_off_coordinator()
    node.persister.send(WRITE, write_request(node.topic_id, {0: []}), node.answers.append)
    for backoff_ms in BACKOFFS_MS:
        assert node.answers == []
        node.advance(backoff_ms)
    assert errors(node.answers[0]) == [
        (
            E.NETWORK_EXCEPTION,
            "Error in write state RPC. "
            "Exhausted max retries to complete write state RPC without success.",
        )
    ]


def test_a_lost_answer_is_missed_after_thirty_seconds(node: PersisterNode) -> None:
    """The coordinator has written the state; the same request again changes nothing."""
    node.ask(partial(node.persister.send, INITIALIZE), initialize_request(node.topic_id))
    rule = add_hop_rule(node.cluster, {"drop_reply": {}}, api="WriteShareGroupState")
    request = write_request(node.topic_id, {0: [(0, 4, ARCHIVED, 5)]})
    node.persister.send(WRITE, request, node.answers.append)
    node.advance(0)
    remove_rule(node.cluster, rule)
    node.advance(30_000)
    assert len(node.answers) == 1
    node.advance(BACKOFFS_MS[0])
    assert errors(node.answers[1]) == [(0, None)]
    (read,) = node.ask(partial(node.persister.send, READ), read_request(node.topic_id))
    assert len(read.state_batches) == 1


def test_a_request_between_brokers_is_a_hop_that_rules_can_refuse(node: PersisterNode) -> None:
    rule = add_hop_rule(
        node.cluster, {"error": "FENCED_STATE_EPOCH"}, api="InitializeShareGroupState"
    )
    node.persister.send(INITIALIZE, initialize_request(node.topic_id, 0), node.answers.append)
    node.advance(0)
    (line,) = errors(node.answers[0])
    assert line[0] == E.FENCED_STATE_EPOCH
    assert rule.hits == 1


def test_requests_wait_for_the_one_in_flight_and_are_sent_as_one(node: PersisterNode) -> None:
    """For one coordinator, API and group. (KIP-932's PersisterStateManager batches likewise.)"""
    topic_id, coordinator = node.topic_id, node.state.leader_id
    node.ask(partial(node.persister.send, INITIALIZE), initialize_request(topic_id, 0))
    rule = add_hop_rule(node.cluster, {"observe": {}}, api="WriteShareGroupState")
    network = node.cluster.replication.network
    far = node.persister._host.node_id
    network.delay([(far, coordinator)], 100)
    for offset in range(5):
        request = write_request(topic_id, {0: [(offset, offset, ACKNOWLEDGED, 1)]})
        node.persister.send(WRITE, request, node.answers.append)
    node.advance(100)
    node.advance(0)
    assert (len(node.answers), rule.hits) == (2, 2)
    node.advance(100)
    node.advance(0)
    assert (len(node.answers), rule.hits) == (6, 2)
    network.heal()
    remove_rule(node.cluster, rule)
    (read,) = node.ask(partial(node.persister.send, READ), read_request(topic_id))
    assert [(b.first_offset, b.last_offset) for b in read.state_batches] == [(0, 4)]


@pytest.mark.parametrize("left", [0, 1])
def test_others_are_served_before_the_next_full_flight_but_the_last_one_follows_at_once(
    left: int,
) -> None:
    """Each share partition is refused, because none of them has a state."""
    node = PersisterNode(**{"share.coordinator.state.topic.num.partitions": "1"})
    rows = range(2 * ATTEMPTS_PER_FLIGHT - left)
    node.persister.send(READ, read_request(node.topic_id, *rows), node.answers.append)
    assert len(node.answers) == left
    node.advance(0)
    assert [each.partition for each in results(node.answers[0])] == list(rows)


def test_a_later_write_is_stored_while_an_earlier_one_waits_to_be_repeated(
    node: PersisterNode,
) -> None:
    """The start offset goes back then. (Kafka's coordinator compares nothing either.)"""
    topic_id, persister = node.topic_id, node.persister
    node.ask(partial(persister.send, INITIALIZE), initialize_request(topic_id, 0))
    node.cut_off_coordinator()
    persister.send(WRITE, write_request(topic_id, {0: []}, start=3), node.answers.append)
    node.cluster.replication.network.heal()
    assert [(key.group_id, start) for key, start in persister.repeated_writes()] == [("g", 3)]
    node.ask(partial(persister.send, WRITE), write_request(topic_id, {0: []}, start=7))
    (summary,) = node.ask(partial(persister.send, READ_SUMMARY), summary_request(topic_id))
    assert summary.start_offset == 7
    node.advance(BACKOFFS_MS[0])
    assert errors(node.answers[-1]) == [(0, None)]
    (summary,) = node.ask(partial(persister.send, READ_SUMMARY), summary_request(topic_id))
    assert summary.start_offset == 3
    assert list(persister.repeated_writes()) == []


def test_a_later_write_is_stored_while_a_former_coordinator_has_an_earlier_one(
    node: PersisterNode,
) -> None:
    """What waits for the answer of a broker does not look for the coordinator again
    (PersisterStateManager.SendThread.generateRequests).
    """
    topic_id, persister, state = node.topic_id, node.persister, node.state
    node.ask(partial(persister.send, INITIALIZE), initialize_request(topic_id, 0))
    former = state.leader_id
    links = links_between([former], [persister._host.node_id], both_ways=True)
    node.cluster.replication.network.delay(links, 500)
    for start in (2, 3):
        persister.send(WRITE, write_request(topic_id, {0: []}, start=start), node.answers.append)
    state.become_leader(persister._host.node_id, state.leader_epoch + 1, state.isr)
    persister.send(WRITE, write_request(topic_id, {0: []}, start=7), node.answers.append)
    assert errors(node.answers[-1]) == [(0, None)]
    assert {row.start_offset for _, row in persister.writes()} == {2, 3}
    assert list(persister.repeated_writes()) == []
    for _ in range(4):
        node.advance(500)
    node.advance(BACKOFFS_MS[0])
    assert [errors(each) for each in node.answers[-2:]] == 2 * [[(0, None)]]
    (summary,) = node.ask(partial(persister.send, READ_SUMMARY), summary_request(topic_id))
    assert summary.start_offset == 3


def test_the_new_coordinator_has_the_state(node: PersisterNode) -> None:
    topic_id, state = node.topic_id, node.state
    node.ask(partial(node.persister.send, INITIALIZE), initialize_request(topic_id))
    write = write_request(topic_id, {0: [(0, 2, ARCHIVED, 3)]}, start=0, complete=3)
    node.ask(partial(node.persister.send, WRITE), write)
    former = state.leader_id
    node.cluster.stop_broker(former, "unclean")
    assert state.leader_id not in (former, -1)
    (summary,) = node.ask(partial(node.persister.send, READ_SUMMARY), summary_request(topic_id))
    assert (summary.state_epoch, summary.delivery_complete_count) == (1, 3)


def test_a_process_that_ends_forgets_its_requests(node: PersisterNode) -> None:
    node.cut_off_coordinator()
    persister = node.persister
    persister.send(READ, read_request(node.topic_id), node.answers.append)
    node.cluster.replication.network.heal()
    node.cluster.stop_broker(persister._host.node_id, "unclean")
    node.advance(60_000)
    assert node.answers == []


def test_a_paused_broker_tries_again_when_it_is_resumed(node: PersisterNode) -> None:
    node.ask(partial(node.persister.send, INITIALIZE), initialize_request(node.topic_id))
    node.cut_off_coordinator()
    persister = node.persister
    persister.send(READ, read_request(node.topic_id), node.answers.append)
    node.cluster.replication.network.heal()
    node.cluster.pause_broker(persister._host.node_id)
    node.advance(5_000)
    assert len(node.answers) == 1
    node.cluster.resume_broker(persister._host.node_id)
    node.advance(0)
    assert len(node.answers) == 2
