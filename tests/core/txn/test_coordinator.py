"""Where a transactional id lives, and what happens to it when that place moves."""

from __future__ import annotations

import pytest

from mockbroker.core.metadata.topic import TRANSACTION_STATE_TOPIC
from mockbroker.core.replication.partition import Partition
from mockbroker.core.txn.shard import TransactionShard
from mockbroker.handlers.find_coordinator import find_coordinator
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.find_coordinator import FindCoordinatorRequest
from tests.support.txn_node import TV1, TV2, Txn, TxnNode

E = ErrorCode
THREE = (None, None, None)


def state_partition(node: TxnNode, transactional_id: str = "x") -> Partition:
    index = node.cluster.find_coordinator_partition(transactional_id, TRANSACTION_STATE_TOPIC)
    partition = node.cluster.partition(TRANSACTION_STATE_TOPIC, index)
    assert partition is not None
    return partition


def move(node: TxnNode, p: Txn) -> None:
    """Stop the id's coordinator; the producer finds the next one."""
    node.cluster.stop_broker(p.broker, "unclean")
    p.broker = node.coordinator_of(p.id)


@pytest.mark.covers("S243")
def test_an_id_belongs_to_the_partition_that_it_hashes_to() -> None:
    """abs(hash) mod 50: 46 for "my-transactional-id"; its leader is the coordinator."""
    node = TxnNode(racks=THREE)
    partition = state_partition(node, "my-transactional-id")
    assert (partition.index, len(partition.topic.partitions)) == (46, 50)
    request = FindCoordinatorRequest(key_type=1, coordinator_keys=["my-transactional-id"])
    (line,) = find_coordinator(node.ctx(4), request).coordinators
    assert (line.error_code, line.node_id) == (E.NONE, partition.leader_id)


def test_other_brokers_do_not_speak_for_it() -> None:
    node = TxnNode(racks=THREE)
    p = node.txn()
    p.broker = next(n for n in (1, 2, 3) if n != p.broker)
    assert p.init().error_code == E.NOT_COORDINATOR
    assert p.add(0) == E.NOT_COORDINATOR
    assert p.add_offsets() == E.NOT_COORDINATOR
    assert p.end().error_code == E.NOT_COORDINATOR


def test_before_the_topic_exists_nobody_coordinates() -> None:
    node = TxnNode()
    node.cluster.delete_topic(TRANSACTION_STATE_TOPIC)
    assert Txn(node, broker=1).init().error_code == E.NOT_COORDINATOR


def test_the_next_coordinator_answers_once_it_has_read_the_log() -> None:
    node = TxnNode(racks=THREE)
    p = node.txn()
    move(node, p)
    assert p.add(0) == E.COORDINATOR_LOAD_IN_PROGRESS
    assert p.init().error_code == E.COORDINATOR_LOAD_IN_PROGRESS
    node.settle()
    assert p.add(0) == E.NONE
    assert p.state == "Ongoing"


STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort")


def bring(node: TxnNode, p: Txn, state: str) -> None:
    """Bring a producer's transaction into a state; it has written "v" unless Empty."""
    if state == "Empty":
        return
    p.add(0)
    p.produce(version=11)
    if state == "Ongoing":
        return
    p.end(committed="Commit" in state)
    if state.startswith("Complete"):
        node.settle()


@pytest.mark.covers("S243")
@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("how", ["unclean", "controlled"])
def test_a_coordinator_that_moves_takes_every_state_with_it(state: str, how: str) -> None:
    """What is open stays open, what is decided is carried through, what is complete stays so."""
    node = TxnNode(racks=THREE)
    p = node.txn()
    bring(node, p, state)
    assert p.state == state
    leader = node.cluster.partition("t", 0)
    assert leader is not None
    node.cluster.stop_broker(p.broker, how)
    p.broker = node.coordinator_of("x")
    node.settle()
    node.advance(31_000)  # markers may be on their way to a leader that is gone
    decided = state.replace("Prepare", "Complete")
    assert (p.state, p.machine.producer_id, p.machine.epoch) == (decided, p.pid, p.epoch)
    if state == "Ongoing":
        assert list(p.machine.partitions) == [("t", 0)]
        assert p.produce(sequence=1, version=11).error_code == E.NONE
        assert p.end().error_code == E.NONE
        node.settle()
        assert node.words() == ["v", "v", "COMMIT"]
    elif state != "Empty":
        assert node.words() == ["v", "COMMIT" if "Commit" in state else "ABORT"]
        assert p.add(0) == E.NONE


def test_markers_carry_the_epoch_of_the_coordinator_that_sends_them() -> None:
    """Higher after each change of leadership, so that leaders know when one is stale."""
    node = TxnNode(racks=THREE)
    p = node.txn()
    epochs = []
    for _ in range(2):
        p.produce()
        p.end(version=TV2)
        node.settle()
        epochs.append(node.cluster.partition("t", 0).log.producers.entries[p.pid].coordinator_epoch)  # type: ignore[union-attr]
        move(node, p)
        node.settle()
    assert epochs == [0, 1]


def test_a_coordinator_whose_leadership_begins_anew_reads_its_log_again() -> None:
    """The same broker under a higher leader epoch has a higher coordinator epoch."""
    node = TxnNode()
    p = node.txn()
    first = node.txn_shard()
    partition = state_partition(node)
    partition.become_leader(1, partition.leader_epoch + 1, partition.isr)
    second = node.txn_shard()
    assert (first.unloaded, second is first, second.epoch) == (True, False, first.epoch + 1)
    assert p.add(0) == E.NONE


@pytest.mark.parametrize("version", [TV1, TV2])
def test_an_end_may_be_retried_at_the_next_coordinator(version: int) -> None:
    """The answer was lost with the broker; the retry is told the same."""
    node = TxnNode(racks=THREE)
    p = node.txn()
    p.add(0)
    before = p.epoch
    first = p.end(version=version)
    move(node, p)
    node.settle()
    node.advance(31_000)
    again = p.end(version=version, epoch=before)
    assert (again.error_code, again.producer_epoch) == (E.NONE, first.producer_epoch)


def test_a_restarted_broker_has_its_transactions_back() -> None:
    node = TxnNode()
    p = node.txn()
    p.add(0)
    node.cluster.stop_broker(1, "unclean")
    node.cluster.start_broker(1)
    node.settle()
    assert p.state == "Ongoing"
    assert p.end().error_code == E.NONE


def test_every_id_is_found_among_the_shards_of_its_broker() -> None:
    node = TxnNode(racks=THREE)
    for i in range(20):
        node.txn(f"x{i}")
    found: set[str] = set()
    for broker in node.cluster.brokers.values():
        for shard in broker.transactions.shards():
            assert isinstance(shard, TransactionShard)
            assert shard.partition.leader_id == broker.node_id
            found |= set(shard.transactions)
    assert found == {f"x{i}" for i in range(20)}


def test_no_id_expires_while_its_coordinator_is_paused() -> None:
    hour_ms = 3_600_000
    node = TxnNode(configs={"transactional.id.expiration.ms": str(3 * hour_ms)})
    p = node.txn()
    shard = node.txn_shard()
    node.advance(hour_ms // 2)
    node.cluster.pause_broker(1, fence_after_ms=1_000 * hour_ms)
    node.advance(20 * hour_ms)
    assert list(shard.transactions) == [p.id]
    node.cluster.resume_broker(1)
    assert list(shard.transactions) == []


def test_a_broker_that_has_stopped_has_no_more_to_do_for_its_ids() -> None:
    """Neither the timeout of a transaction nor the regular look at unused ids is due any more."""
    node = TxnNode()
    node.txn().add(0)
    assert node.cluster.clock_domains.transactions.deadline_ms() is not None
    node.cluster.stop_broker(1, "unclean")
    assert node.cluster.clock_domains.transactions.deadline_ms() is None
