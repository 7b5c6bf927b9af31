"""Markers on their way: late, lost, repeated, refused, and always there in the end."""

from __future__ import annotations

import pytest

from mockbroker.core.metadata.topic import TRANSACTION_STATE_TOPIC
from mockbroker.core.replication.partition import Partition
from mockbroker.core.replication.reassignment import reassign
from mockbroker.core.txn.marker_channel_manager import RETRY_MS
from mockbroker_protocol import ErrorCode
from tests.support.hops import add_hop_rule, remove_rule
from tests.support.txn_node import TV2, Txn, TxnNode

E = ErrorCode
THREE = (None, None, None)


def far_leader(node: TxnNode, p: Txn) -> Partition:
    """A partition of "t" that another broker than the coordinator leads."""
    topic = node.cluster.topics["t"]
    partition = topic.partitions[0]
    if partition.leader_id == p.broker:
        others = [n for n in partition.replicas if n != p.broker]
        partition.become_leader(others[0], partition.leader_epoch + 1, partition.isr)
    return partition


def open_and_end(p: Txn) -> None:
    p.add(0)
    p.produce(version=11)
    assert p.end().error_code == E.NONE


def log_ends(node: TxnNode) -> list[int]:
    """The log ends of the partitions of `__transaction_state`."""
    return [each.log_end_offset for each in node.cluster.topics["__transaction_state"].partitions]


def test_an_end_is_answered_before_any_marker_is_written() -> None:
    """What comes in between is told CONCURRENT_TRANSACTIONS, and comes before the marker."""
    node = TxnNode()
    p = node.txn()
    open_and_end(p)
    assert (p.state, node.words()) == ("PrepareCommit", ["v"])
    assert p.add(1) == E.CONCURRENT_TRANSACTIONS
    assert p.init().error_code == E.CONCURRENT_TRANSACTIONS
    assert p.end().error_code == E.CONCURRENT_TRANSACTIONS
    node.produced(node_batch())
    node.settle()
    assert (p.state, node.words()) == ("CompleteCommit", ["v", "plain", "COMMIT"])


def node_batch() -> bytearray:
    from tests.support.requests import batch_of

    return batch_of(b"plain")


def test_markers_may_take_their_time_one_after_the_other() -> None:
    """Whoever goes on with the id meanwhile has to ask again."""
    node = TxnNode(racks=THREE, configs={"mockbroker.transaction.marker.delay.ms": "40"})
    p = node.txn()
    p.add(0, 1)
    p.produce(version=11)
    assert p.end().error_code == E.NONE
    states = []
    for _ in range(3):
        marked = [node.words(index).count("COMMIT") for index in (0, 1)]
        states.append((p.state, *marked, p.add(2)))
        node.advance(40)
    concurrent = E.CONCURRENT_TRANSACTIONS
    assert states == [
        ("PrepareCommit", 0, 0, concurrent),
        ("PrepareCommit", 1, 0, concurrent),
        ("CompleteCommit", 1, 1, E.NONE),
    ]


@pytest.mark.covers("S240")
def test_each_partition_has_its_marker_in_its_own_time() -> None:
    """The end is complete with the last of them."""
    node = TxnNode(racks=THREE)
    p = node.txn()
    p.add(0, 1, 2)

    for partition in (1, 2):
        delay = {"delay": 1000 * partition}
        add_hop_rule(node.cluster, delay, api="WriteTxnMarkers", partition=partition)
    p.end()
    node.settle()
    assert [len(node.words(i)) for i in range(3)] == [1, 0, 0]
    assert list(p.machine.partitions) == [("t", 1), ("t", 2)]
    node.advance(1000)
    assert list(p.machine.partitions) == [("t", 2)]
    assert p.state == "PrepareCommit"
    node.advance(1000)
    assert p.state == "CompleteCommit"


@pytest.mark.parametrize("lost", ["drop_request", "drop_reply"])
def test_what_is_lost_is_sent_again(lost: str) -> None:
    """A lost answer means that the marker is written twice, which ends nothing the second time."""
    node = TxnNode(racks=THREE)
    p = node.txn()
    far_leader(node, p)
    rule = add_hop_rule(node.cluster, {lost: {}}, {"times": 1}, api="WriteTxnMarkers")
    p.send()
    node.settle()
    p.end(version=TV2)
    node.settle()
    assert (p.state, rule.hits) == ("PrepareCommit", 1)
    node.advance(60_000)
    assert p.state == "CompleteCommit"
    assert node.words() == ["v", "COMMIT"] + ["COMMIT"] * (lost == "drop_reply")
    assert p.node.cluster.brokers[p.broker].transactions.markers.pending_markers == {}


def test_a_link_that_is_cut_holds_the_end_until_it_heals() -> None:
    node = TxnNode(racks=THREE)
    p = node.txn()
    partition = far_leader(node, p)
    network = node.cluster.replication.network
    open_and_end(p)
    network.cut([(p.broker, partition.leader_id)])
    node.advance(5_000)
    assert (p.state, partition.last_stable_offset) == ("PrepareCommit", 0)
    network.heal()
    node.advance(31_000)
    assert p.state == "CompleteCommit"
    assert partition.last_stable_offset == partition.high_watermark == 2


def test_a_paused_leader_gets_its_marker_when_it_goes_on() -> None:
    node = TxnNode(racks=THREE)
    p = node.txn()
    partition = far_leader(node, p)
    open_and_end(p)
    node.cluster.pause_broker(partition.leader_id, fence_after_ms=3_600_000)
    node.advance(40_000)
    assert p.state == "PrepareCommit"
    node.cluster.resume_broker(partition.leader_id)
    node.advance(31_000)
    assert (p.state, node.words()) == ("CompleteCommit", ["v", "COMMIT"])


def test_a_paused_coordinator_takes_the_answer_to_a_marker_when_it_goes_on() -> None:
    node = TxnNode(racks=THREE)
    p = node.txn()
    partition = far_leader(node, p)
    open_and_end(p)
    node.cluster.replication.network.delay([(partition.leader_id, p.broker)], 500)
    node.advance(100)
    node.cluster.pause_broker(p.broker, fence_after_ms=3_600_000)
    decided = log_ends(node)
    node.advance(5_000)
    assert log_ends(node) == decided
    assert (p.state, node.words()) == ("PrepareCommit", ["v", "COMMIT"])
    node.cluster.replication.network.heal()
    node.cluster.resume_broker(p.broker)
    node.settle()
    assert (p.state, node.words()) == ("CompleteCommit", ["v", "COMMIT"])


def test_a_paused_coordinator_sends_no_marker_until_it_goes_on() -> None:
    node = TxnNode(racks=THREE)
    p = node.txn()
    partition = far_leader(node, p)
    network = node.cluster.replication.network
    open_and_end(p)
    network.cut([(p.broker, partition.leader_id)])
    node.advance(5_000)
    node.cluster.pause_broker(p.broker, fence_after_ms=3_600_000)
    network.heal()
    node.advance(60_000)
    assert (p.state, node.words()) == ("PrepareCommit", ["v"])
    node.cluster.resume_broker(p.broker)
    node.settle()
    assert (p.state, node.words()) == ("CompleteCommit", ["v", "COMMIT"])


@pytest.mark.parametrize("late", ["request", "answer"])
def test_a_paused_coordinator_writes_nothing_before_it_goes_on(late: str) -> None:
    """Neither where its marker was to set out, nor where the answer to it comes meanwhile."""
    delays = {"mockbroker.transaction.marker.delay.ms": "40"} if late == "request" else {}
    node = TxnNode(racks=THREE, configs=delays)
    p = node.txn()
    partition = far_leader(node, p)
    if late == "answer":
        delay = {"delay": {"by": 40, "phase": "after"}}
        add_hop_rule(node.cluster, delay, api="WriteTxnMarkers")
    open_and_end(p)
    if late == "answer":
        node.settle()
    node.cluster.pause_broker(p.broker, fence_after_ms=3_600_000)
    node.advance(5_000)
    markers = 0 if late == "request" else 1
    assert (p.state, node.words().count("COMMIT")) == ("PrepareCommit", markers)
    assert partition.last_stable_offset == 2 * markers
    node.cluster.resume_broker(p.broker)
    node.advance(5_000)
    assert (p.state, node.words()) == ("CompleteCommit", ["v", "COMMIT"])


def test_a_marker_follows_the_leadership() -> None:
    """The leader dies before it has the marker: the connection breaks, the next one gets it."""
    node = TxnNode(racks=THREE)
    p = node.txn()
    partition = far_leader(node, p)
    open_and_end(p)
    node.cluster.stop_broker(partition.leader_id, "unclean", fence_after_ms=5_000)
    node.advance(4_900)
    assert p.state == "PrepareCommit"
    node.advance(100 + 2 * RETRY_MS)
    assert (p.state, node.words()) == ("CompleteCommit", ["v", "COMMIT"])


def test_a_partition_without_a_leader_is_waited_for() -> None:
    node = TxnNode(racks=THREE)
    p = node.txn()
    partition = far_leader(node, p)
    open_and_end(p)
    leader_id = partition.leader_id
    partition.become_leader(-1, partition.leader_epoch + 1, partition.isr)
    node.advance(10 * RETRY_MS)
    assert p.state == "PrepareCommit"
    partition.become_leader(leader_id, partition.leader_epoch + 1, partition.isr)
    node.advance(10 * RETRY_MS)
    assert p.state == "CompleteCommit"


def test_a_topic_that_is_deleted_needs_no_marker() -> None:
    node = TxnNode()
    p = node.txn()
    open_and_end(p)
    node.cluster.delete_topic("t")
    node.advance(RETRY_MS)
    assert p.state == "CompleteCommit"


def test_a_marker_that_is_refused_for_good_is_not_sent_again() -> None:
    """Another coordinator was there since: the id stays, until somebody takes it over."""
    node = TxnNode()
    p = node.txn()
    open_and_end(p)
    partition = node.cluster.partition("t", 0)
    assert partition is not None
    partition.log.producers.entries[p.pid].coordinator_epoch = 9
    node.advance(120_000)
    assert (p.state, node.words()) == ("PrepareCommit", ["v"])
    assert node.cluster.brokers[1].transactions.markers.pending_markers == {}


def test_without_enough_replicas_the_leader_is_asked_again() -> None:
    node = TxnNode(racks=THREE)
    p = node.txn()
    partition = far_leader(node, p)
    open_and_end(p)
    isr = partition.isr
    partition.topic.configs.replace({"min.insync.replicas": "2"})
    partition.isr = isr[:1]
    node.advance(5 * RETRY_MS)
    assert (p.state, node.words()) == ("PrepareCommit", ["v"])
    partition.isr = isr
    node.advance(5 * RETRY_MS)
    assert p.state == "CompleteCommit"


def test_nothing_is_left_on_its_way_when_the_coordinator_moves() -> None:
    node = TxnNode(racks=THREE)
    p = node.txn()
    far_leader(node, p)
    open_and_end(p)
    sender = node.cluster.brokers[p.broker].transactions.markers
    assert len(sender.pending_markers) == 1
    node.cluster.stop_broker(p.broker, "unclean")
    node.advance(61_000)
    assert sender.pending_markers == {}
    # What the dead broker had sent arrives; the next coordinator cannot know, and sends it too.
    assert node.words() == ["v", "COMMIT", "COMMIT"]


def test_a_release_sends_no_marker_that_is_on_its_way() -> None:
    node = TxnNode(racks=THREE)
    p = node.txn()
    far_leader(node, p)
    rule = add_hop_rule(node.cluster, {"hold": {}}, api="WriteTxnMarkers")
    open_and_end(p)
    node.settle()
    node.cluster.hang_transaction(p.id)
    node.cluster.hang_transaction(p.id, release=True)
    node.settle()
    assert rule.hits == 1
    remove_rule(node.cluster, rule)
    node.settle()
    assert (p.state, node.words()) == ("CompleteCommit", ["v", "COMMIT"])


def test_a_marker_that_is_withheld_sets_out_with_the_release() -> None:
    node = TxnNode(racks=THREE)
    p = node.txn()
    node.cluster.hang_transaction(p.id)
    open_and_end(p)
    node.advance(120_000)
    assert (p.state, node.words()) == ("PrepareCommit", ["v"])
    node.cluster.hang_transaction(p.id, release=True)
    node.settle()
    assert (p.state, node.words()) == ("CompleteCommit", ["v", "COMMIT"])


def test_a_marker_is_withheld_on_a_broker_that_was_added_later() -> None:
    node = TxnNode(racks=THREE)
    p = node.txn()
    node.cluster.hang_transaction(p.id)
    node.cluster.add_broker(4)
    open_and_end(p)
    index = node.cluster.find_coordinator_partition(p.id, TRANSACTION_STATE_TOPIC)
    control = node.cluster.replication_control
    reassign(control, TRANSACTION_STATE_TOPIC, index, [4], may_change_factor=True)
    node.advance(120_000)
    assert node.coordinator_of(p.id) == 4
    assert node.words() == ["v"]
    node.cluster.hang_transaction(p.id, release=True)
    node.settle()
    assert node.words() == ["v", "COMMIT"]


def test_a_marker_that_was_sent_again_does_not_arrive_after_all() -> None:
    """It would end the producer's next transaction, which has the same epoch before TV2."""
    node = TxnNode(racks=THREE, configs={"request.timeout.ms": "1000"})
    p = node.txn()
    far_leader(node, p)
    rule = add_hop_rule(node.cluster, {"hold": {}}, {"times": 1}, api="WriteTxnMarkers")
    open_and_end(p)
    node.advance(2_000)
    assert (p.state, node.words()) == ("CompleteCommit", ["v", "COMMIT"])
    remove_rule(node.cluster, rule)  # what it holds goes on
    node.settle()
    assert node.words() == ["v", "COMMIT"]


def test_a_process_that_has_ended_has_no_markers_to_send() -> None:
    hour_ms = 3_600_000
    node = TxnNode(configs={"mockbroker.transaction.marker.delay.ms": str(hour_ms)})
    timers, due_ms = node.cluster.runtime.timers, node.now_ms + hour_ms
    sender = node.cluster.brokers[1].transactions.markers
    open_and_end(node.txn())
    assert len(sender.pending_markers) == 1
    assert due_ms in [each for each, _ in timers.pending(1000)]
    node.cluster.stop_broker(1, "unclean")
    assert sender.pending_markers == {}
    assert due_ms not in [each for each, _ in timers.pending(1000)]


def test_a_marker_without_an_answer_is_sent_again_when_its_request_has_timed_out() -> None:
    """And when there are no markers, there is no look at them either."""
    node = TxnNode(racks=THREE, configs={"request.timeout.ms": "1000"})
    p = node.txn()
    far_leader(node, p)
    add_hop_rule(node.cluster, {"drop_request": {}}, {"times": 1}, api="WriteTxnMarkers")
    open_and_end(p)
    node.advance(999)
    assert (p.state, node.words()) == ("PrepareCommit", ["v"])
    node.advance(1)
    assert (p.state, node.words()) == ("CompleteCommit", ["v", "COMMIT"])
    timers = node.cluster.runtime.timers
    assert node.now_ms + 1_000 in [due_ms for due_ms, _ in timers.pending(1000)]
    node.advance(1_000)
    assert node.now_ms + 1_000 not in [due_ms for due_ms, _ in timers.pending(1000)]


@pytest.mark.parametrize("late", ["request", "answer"])
def test_a_coordinator_that_moved_is_done_with_its_markers(late: str) -> None:
    """Also when the answer to one comes after all."""
    delays = {"mockbroker.transaction.marker.delay.ms": "40"} if late == "request" else {}
    node = TxnNode(racks=THREE, configs={**delays, "request.timeout.ms": "1000"})
    p = node.txn()
    far_leader(node, p)
    if late == "answer":
        delay = {"delay": {"by": 2_000, "phase": "after"}}
        add_hop_rule(node.cluster, delay, {"times": 1}, api="WriteTxnMarkers")
    open_and_end(p)
    node.settle()
    sender = node.cluster.brokers[p.broker].transactions.markers
    assert len(sender.pending_markers) == 1
    other = next(n for n in (1, 2, 3) if n != p.broker)
    node.cluster.move_coordinator(p.id, other, "transaction")
    node.advance(1_000)
    assert sender.pending_markers == {}
    node.advance(5_000)
    assert p.state == "CompleteCommit"
