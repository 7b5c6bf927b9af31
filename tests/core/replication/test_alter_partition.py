"""A leader asks for another ISR: what it makes of errors, broken connections and silence.

The errors are those of Partition.handleAlterPartitionError.
"""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker.core.replication.alter_partition import (
    RETRY_BACKOFF_MS,
    AlterPartition,
    AlterPartitionHop,
    Reaction,
    reaction_to,
)
from mockbroker.core.replication.elections import alter_partition, clear_eligible_leaders
from mockbroker.core.replication.reassignment import reassign
from mockbroker_protocol import ErrorCode
from tests.support.hops import add_hop_rule
from tests.support.replicas import Replicas

LED_BY_2 = [2, 3]  # the controller is broker 1


def move(node: Replicas, target: list[int]) -> None:
    reassign(node.cluster.replication_control, "t", 0, target, may_change_factor=True)


def refused(error: str, *, times: int = 1) -> Replicas:
    """Follower 3 has caught up, and the request of leader 2 for it got this error."""
    node = Replicas(replicas=LED_BY_2)
    node.cluster.stop_broker(3, "unclean")
    node.sent("a")
    add_hop_rule(node.cluster, {"error": error}, {"times": times}, api="AlterPartition")
    node.cluster.start_broker(3)
    node.settle()
    assert node.partition.isr == [2]
    return node


@pytest.mark.parametrize("error", ["INELIGIBLE_REPLICA", "OPERATION_NOT_ATTEMPTED"])
def test_the_isr_of_a_request_that_was_not_carried_out_is_reverted(error: str) -> None:
    """The follower's next fetch asks again."""
    node = refused(error)
    assert list(node.partition.isr_in_flight) == []
    node.advance(499)
    assert node.partition.isr == [2]
    node.advance(1)
    assert node.partition.isr == [2, 3]


@pytest.mark.parametrize(
    "error",
    [
        "INVALID_UPDATE_VERSION",
        "FENCED_LEADER_EPOCH",
        "INVALID_REQUEST",
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UNKNOWN_TOPIC_ID",
        "NEW_LEADER_ELECTED",
    ],
)
def test_a_leader_that_is_out_of_date_waits_for_metadata(error: str) -> None:
    """The request may have been carried out: the high watermark waits for the follower, and nothing
    is asked, until the partition changes.
    """
    node = refused(error)
    node.cluster.lag_follower("t", 0, node=3)
    answer = node.send("b", timeout_ms=600_000)
    node.advance(120_000)
    assert (list(node.partition.isr_in_flight), answer.done) == ([2, 3], False)
    epoch = node.partition.partition_epoch
    node.cluster.move_leader("t", 0, 2)  # nothing changes
    assert node.partition.partition_epoch == epoch
    assert list(node.partition.isr_in_flight) == [2, 3]
    move(node, [2, 3, 1])
    assert node.partition.partition_epoch == epoch + 1
    assert 3 not in node.partition.isr_in_flight
    node.cluster.lag_follower("t", 0, node=3, release=True)
    node.advance(1_000)
    assert {*node.partition.isr} == {1, 2, 3}


@pytest.mark.parametrize("error", ["UNKNOWN_SERVER_ERROR", "STALE_BROKER_EPOCH", "NOT_CONTROLLER"])
def test_after_any_other_error_the_request_is_sent_again_soon(error: str) -> None:
    node = refused(error, times=2)
    assert list(node.partition.isr_in_flight) == [2, 3]
    node.advance(2 * RETRY_BACKOFF_MS - 1)
    assert node.partition.isr == [2]
    node.advance(1)
    assert node.partition.isr == [2, 3]


def test_all_errors_of_the_table_are_known_refusals() -> None:
    """What is not in the table is sent again, like an answer that never came."""
    again = {error for error in ErrorCode if reaction_to(error) is Reaction.RETRY}
    assert {ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NETWORK_EXCEPTION} <= again
    assert len(ErrorCode) - len(again) == 8


def slow_request(effect: dict[str, str] | None = None, **configs: str) -> Replicas:
    """The request of leader 2 for follower 3 is on its way to broker 1 for two seconds."""
    named = {key.replace("_", "."): value for key, value in configs.items()}
    node = Replicas(replicas=LED_BY_2, configs=named)
    node.cluster.stop_broker(3, "unclean")
    node.sent("a")
    node.cluster.delay_network(2, to=1, by_ms=2_000, both_ways=False)
    if effect is not None:
        add_hop_rule(node.cluster, effect, {"times": 1}, api="AlterPartition")
    node.cluster.start_broker(3)
    node.advance(100)
    assert list(node.partition.isr_in_flight) == [2, 3]
    return node


def test_what_waits_for_a_replica_is_answered_when_the_controller_refuses_the_replica() -> None:
    """The high watermark passes the replica, which has fallen behind meanwhile."""
    refusal = {"error": "INELIGIBLE_REPLICA"}
    node = slow_request(refusal, replica_lag_time_max_ms="1000")
    node.cluster.lag_follower("t", 0, node=3)
    answer = node.send("b", timeout_ms=600_000)
    node.advance(1_899)
    assert (list(node.partition.isr_in_flight), answer.done) == ([2, 3], False)
    node.advance(1)
    assert (list(node.partition.isr_in_flight), answer.done) == ([], True)


def test_cleared_eligible_leaders_replace_the_isr_in_flight() -> None:
    """They raise the partition epoch, so the request is refused; the leader sends another one."""
    node = Replicas(replicas=LED_BY_2, min_insync_replicas="2")
    node.cluster.lag_follower("t", 0, node=3)
    node.cluster.stop_broker(3)
    node.sent("a", acks=1)
    node.cluster.delay_network(2, to=1, by_ms=2_000, both_ways=False)
    node.cluster.lag_follower("t", 0, node=3, release=True)
    node.cluster.start_broker(3)
    node.advance(100)
    assert (list(node.partition.isr_in_flight), node.partition.elr) == ([2, 3], (3,))
    clear_eligible_leaders(node.cluster.replication_control, [node.partition.topic])
    assert node.partition.elr == ()
    assert list(node.partition.isr_in_flight) == []
    node.cluster.heal_network()
    node.settle()
    assert node.partition.isr == [2, 3]


def test_a_request_to_a_controller_that_dies_goes_to_the_next_one() -> None:
    """The connection breaks when the process ends; nobody waits for a timeout."""
    node = slow_request()
    node.cluster.stop_broker(1, "unclean")
    assert node.cluster.controller_id == 2
    node.advance(1_900 + RETRY_BACKOFF_MS - 1)
    assert node.partition.isr == [2]
    node.advance(1)
    assert node.partition.isr == [2, 3]


def test_a_former_controller_answers_not_controller() -> None:
    node = slow_request()
    node.cluster.pause_broker(1, fence_after_ms=0)
    assert node.cluster.controller_id == 2
    node.advance(5_000)
    assert node.partition.isr == [2]  # a paused process answers nothing, and closes nothing
    node.cluster.resume_broker(1)
    node.advance(RETRY_BACKOFF_MS)
    assert node.partition.isr == [2, 3]


def test_a_leader_whose_followers_share_its_log_again_sends_no_alter_partition() -> None:
    """The follower has caught up just when the request was given up: nobody leaves the ISR."""
    node = Replicas(replicas=LED_BY_2)
    add_hop_rule(node.cluster, {"drop_request": {}}, api="AlterPartition")
    node.hold(3)
    node.sent("a", acks=1)
    node.advance(30_000)
    assert list(node.partition.isr_in_flight) == [2]
    node.advance(30_000)
    node.release(3)
    node.settle()
    assert node.with_own_replica() == []
    assert list(node.partition.isr_in_flight) == []


def test_a_request_under_way_counts_although_all_followers_share_the_log_meanwhile() -> None:
    """The controller may still carry it out."""
    node = Replicas(replicas=LED_BY_2)
    add_hop_rule(node.cluster, {"drop_request": {}}, {"times": 1}, api="AlterPartition")
    node.hold(3)
    node.sent("a", acks=1)
    node.advance(31_000)
    node.release(3)
    node.settle()
    assert (node.with_own_replica(), list(node.partition.isr_in_flight)) == ([], [2])
    node.advance(29_000)
    assert (node.partition.isr, list(node.partition.isr_in_flight)) == ([2, 3], [])


def test_a_follower_that_the_controller_keeps_in_the_isr_is_judged_again_later() -> None:
    """After half of the maximum lag time."""
    node = Replicas(replicas=LED_BY_2)
    add_hop_rule(node.cluster, {"error": "INELIGIBLE_REPLICA"}, {"times": 1}, api="AlterPartition")
    node.hold(3)
    node.sent("a", acks=1)
    node.advance(30_000 + 14_999)
    assert (node.partition.isr, list(node.partition.isr_in_flight)) == ([2, 3], [])
    node.advance(1)
    assert node.partition.isr == [2]


def test_a_follower_that_lags_waits_for_the_request_that_is_under_way() -> None:
    """Until it is answered, the replica that it adds to the ISR counts."""
    node = Replicas(4, replicas=[2, 3, 4])
    node.cluster.stop_broker(4, "unclean")
    node.hold(3)
    node.send("a", acks=1)
    node.advance(29_000)
    node.cluster.delay_network(2, to=1, by_ms=5_000, both_ways=False)
    node.cluster.start_broker(4)
    node.advance(2_000)
    assert (node.partition.isr, list(node.partition.isr_in_flight)) == ([2, 3], [2, 3, 4])
    node.advance(3_000)
    assert (node.partition.isr, list(node.partition.isr_in_flight)) == ([2, 3, 4], [2, 4])
    node.advance(5_000)
    assert (node.partition.isr, list(node.partition.isr_in_flight)) == ([2, 4], [])


def test_the_wait_for_an_answer_is_a_config() -> None:
    node = slow_request(controller_socket_timeout_ms="500")
    node.cluster.delay_network(2, to=1, by_ms=0, both_ways=False)
    node.advance(399 + RETRY_BACKOFF_MS)
    assert node.partition.isr == [2]
    node.advance(1)
    assert node.partition.isr == [2, 3]


def test_an_answer_after_the_wait_comes_over_a_closed_connection() -> None:
    """What it says does not matter to the leader, whose next request is under way."""
    node = Replicas(replicas=LED_BY_2, configs={"controller.socket.timeout.ms": "500"})
    node.cluster.stop_broker(3, "unclean")
    node.sent("a")
    late = {"error": "INELIGIBLE_REPLICA", "delay": {"by": 900}}
    add_hop_rule(node.cluster, late, {"times": 1}, api="AlterPartition")
    add_hop_rule(node.cluster, {"drop_request": {}}, api="AlterPartition")
    node.cluster.start_broker(3)
    node.advance(1_000)
    assert list(node.partition.isr_in_flight) == [2, 3]


def test_an_isr_that_completes_a_reassignment_may_end_the_leadership() -> None:
    """The leader, no replica any more, is told so (ReplicationControlManager.alterPartition)."""
    node = Replicas(replicas=[2])
    add_hop_rule(node.cluster, {"drop_request": {}}, api="AlterPartition")
    move(node, [3])
    node.settle()
    partition = node.partition
    request = AlterPartition(
        2, partition.key, partition.leader_epoch, partition.partition_epoch, [2, 3], "caught_up", {}
    )
    control = node.cluster.replication_control
    assert alter_partition(control, request) is ErrorCode.NEW_LEADER_ELECTED
    assert (node.partition.leader_id, node.partition.replicas) == (3, [3])


def hop_for(node: Replicas, isr: list[int]) -> AlterPartitionHop:
    """The leader's request for this ISR; it has heard of broker 3 alone."""
    partition, cluster = node.partition, node.cluster
    epochs = {3: cluster.brokers[3].epoch}
    wanted = AlterPartition(2, partition.key, 4, 7, isr, "test", epochs)
    network, handle = cluster.replication.network, cluster.replication.on_alter_partition
    return AlterPartitionHop(cluster.metadata, network, wanted, handle, lambda _error: None)


def test_a_request_has_the_leaders_state_and_the_epochs_that_it_knows() -> None:
    node = Replicas(replicas=LED_BY_2)
    hop = hop_for(node, [2, 3])
    assert (hop.sender, hop.receiver) == (2, 1)
    request = hop.request()
    assert (request.broker_id, request.broker_epoch) == (2, node.cluster.brokers[2].epoch)
    ((partition,),) = (topic.partitions for topic in request.topics)
    assert request.topics[0].topic_id == node.partition.topic.topic_id
    assert partition.partition_index == 0
    assert (partition.leader_epoch, partition.partition_epoch) == (4, 7)
    members = [(each.broker_id, each.broker_epoch) for each in partition.new_isr_with_epochs]
    assert members == [(2, -1), (3, node.cluster.brokers[3].epoch)]


def test_an_answer_has_the_error_or_else_the_partition_as_the_controller_has_it() -> None:
    node = Replicas(replicas=LED_BY_2)
    hop = hop_for(node, [2])
    node.cluster.move_leader("t", 0, 3)

    def told(error: ErrorCode) -> tuple[int, int, int, list[int], int]:
        ((result,),) = (topic.partitions for topic in hop.response(error).topics)
        assert result.partition_index == 0
        return (
            result.error_code,
            result.leader_id,
            result.leader_epoch,
            result.isr,
            result.partition_epoch,
        )

    assert told(ErrorCode.NONE) == (0, 3, 1, [2, 3], 1)
    refused = told(ErrorCode.FENCED_LEADER_EPOCH)
    assert (refused[0], refused[3]) == (ErrorCode.FENCED_LEADER_EPOCH, [])
    node.cluster.delete_topic("t")
    assert told(ErrorCode.NONE)[3] == []


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({}, ErrorCode.NONE),
        ({"key": (bytes(16), 0)}, ErrorCode.UNKNOWN_TOPIC_ID),
        ({"leader_epoch": 3}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"leader_epoch": 5}, ErrorCode.NOT_CONTROLLER),
        ({"node_id": 3}, ErrorCode.INVALID_REQUEST),
        ({"partition_epoch": 6}, ErrorCode.INVALID_UPDATE_VERSION),
        ({"partition_epoch": 8}, ErrorCode.NOT_CONTROLLER),
        ({"isr": [2, 9]}, ErrorCode.INVALID_REQUEST),
        ({"isr": [3]}, ErrorCode.INVALID_REQUEST),
        ({"isr": [2, 4]}, ErrorCode.INELIGIBLE_REPLICA),
        ({"broker_epochs": {3: 99}}, ErrorCode.INELIGIBLE_REPLICA),
        ({"broker_epochs": {3: -1, 4: 99}}, ErrorCode.NONE),
    ],
)
def test_the_controller_takes_only_a_request_of_the_present_leader_for_active_replicas(
    change: dict[str, Any], error: ErrorCode
) -> None:
    """Broker 2 leads with 4 as epoch and 7 as partition epoch; broker 4 is fenced."""
    node = Replicas(4, replicas=[2, 3, 4])
    node.cluster.shrink_isr("t", 0, nodes=[3])
    node.cluster.stop_broker(4)
    partition = node.partition
    partition.leader_epoch, partition.partition_epoch = 4, 7
    request = AlterPartition(2, partition.key, 4, 7, [2, 3], "test", {})._replace(**change)
    assert alter_partition(node.cluster.replication_control, request) is error
    assert node.partition.isr == ([2] if error else [2, 3])
