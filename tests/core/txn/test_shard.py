"""A shard stores what its ids decide, answers when that is replicated, lets go when it moves."""

from __future__ import annotations

import gc
import weakref

import pytest

from mockbroker.core.events import Event, TransactionMoved
from mockbroker.core.metadata.topic import TRANSACTION_STATE_TOPIC
from mockbroker.core.replication.partition import Partition
from mockbroker.core.txn.events import Effect
from mockbroker.core.txn.events import Event as TransactionEvent
from mockbroker.core.txn.machine import TransactionMetadata, new_image
from mockbroker.core.txn.records import parse
from mockbroker.core.txn.shard import TransactionShard
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import BatchHeader
from tests.support.shard_starts import check_start_in_turns
from tests.support.txn_node import TV2, Txn, TxnNode

E = ErrorCode
THREE = (None, None, None)


@pytest.fixture
def node() -> TxnNode:
    return TxnNode()


def state_partition(node: TxnNode, transactional_id: str = "x") -> Partition:
    index = node.cluster.find_coordinator_partition(transactional_id, TRANSACTION_STATE_TOPIC)
    partition = node.cluster.partition(TRANSACTION_STATE_TOPIC, index)
    assert partition is not None
    return partition


def states_in_log(node: TxnNode, transactional_id: str = "x") -> list[str]:
    index = state_partition(node, transactional_id).index
    states = []
    for _, record in node.stored(TRANSACTION_STATE_TOPIC, index):
        parsed = parse(record)
        assert parsed is not None
        if parsed.transactional_id == transactional_id:
            states.append("tombstone" if parsed.image is None else parsed.image.state.value)
    return states


@pytest.mark.covers("S242")
def test_each_move_of_a_transaction_is_a_record(node: TxnNode) -> None:
    events: list[Event] = []
    node.cluster.runtime.on_event.append(events.append)
    p = node.txn()
    p.add(0, 1)
    p.end()
    node.settle()
    expected = ["Empty", "Ongoing", "PrepareCommit", "CompleteCommit"]
    assert states_in_log(node) == expected
    moves = [event for event in events if isinstance(event, TransactionMoved)]
    assert [move.state for move in moves] == expected
    assert [move.former for move in moves] == ["Empty", *expected[:-1]]
    assert {(move.transactional_id, move.producer_id) for move in moves} == {("x", p.pid)}


def test_records_are_batches_of_no_producer(node: TxnNode) -> None:
    node.txn()
    (stored,) = state_partition(node).log.batches()
    header = BatchHeader(bytes(stored))
    assert (header.producer_id, header.base_sequence, header.attributes) == (-1, -1, 0)


def test_a_record_that_is_not_replicated_yet_holds_the_answer_back() -> None:
    """Meanwhile the id is taken: CONCURRENT_TRANSACTIONS."""
    node = TxnNode(racks=THREE)
    p = node.txn()
    partition = state_partition(node)
    for follower in partition.replicas[1:]:
        node.cluster.lag_follower(TRANSACTION_STATE_TOPIC, partition.index, node=follower)
    pending = p.send_add(0)
    node.settle()
    assert pending.parked
    assert (p.state, p.machine.pending) == ("Empty", p.machine.pending)
    assert p.add(1) == E.CONCURRENT_TRANSACTIONS
    assert p.send_init().response.error_code == E.CONCURRENT_TRANSACTIONS
    for follower in partition.replicas[1:]:
        node.cluster.lag_follower(
            TRANSACTION_STATE_TOPIC, partition.index, node=follower, release=True
        )
    node.advance(1000)
    assert not pending.parked
    assert p.state == "Ongoing"


def test_a_record_that_is_not_replicated_in_time_is_given_up() -> None:
    node = TxnNode(racks=THREE, configs={"broker.session.timeout.ms": "3600000"})
    p = node.txn()
    partition = state_partition(node)
    for follower in partition.replicas[1:]:
        node.cluster.lag_follower(TRANSACTION_STATE_TOPIC, partition.index, node=follower)
    partition.topic.configs.replace({"min.insync.replicas": "3"})
    pending = p.send_add(0)
    node.advance(40_000)
    answer = pending.response.results_by_topic_v3_and_below[0].results_by_partition[0]
    assert answer.partition_error_code == E.COORDINATOR_NOT_AVAILABLE


@pytest.mark.covers("S244")
def test_without_enough_replicas_nothing_can_be_decided() -> None:
    """transaction.state.log.min.isr=2 with one live replica; with 1 it goes on."""
    for min_isr, error in (("2", E.COORDINATOR_NOT_AVAILABLE), ("1", E.NONE)):
        node = TxnNode(racks=THREE, configs={"transaction.state.log.min.isr": min_isr})
        p = node.txn()
        p.add(0)
        leader = state_partition(node).leader_id
        for node_id in (1, 2, 3):
            if node_id != leader:
                node.cluster.stop_broker(node_id, "unclean")
        assert state_partition(node).leader_id == leader
        assert p.end().error_code == error
        q = Txn(node, "x", leader)
        assert q.init().error_code in (error, E.CONCURRENT_TRANSACTIONS)


def test_a_completion_without_enough_replicas_is_stored_later(node: TxnNode) -> None:
    node = TxnNode(racks=THREE)
    p = node.txn()
    p.add(0)
    p.end()
    partition = state_partition(node)
    before = partition.isr
    partition.topic.configs.replace({"min.insync.replicas": "3"})
    partition.isr = before[:1]
    node.settle()
    assert (p.state, p.machine.partitions) == ("PrepareCommit", {})
    partition.isr = before
    node.advance(200)
    assert p.state == "CompleteCommit"


def test_the_value_is_of_version_0_below_transaction_version_1(node: TxnNode) -> None:
    for level, version in ((0, 0), (1, 1), (2, 1)):
        node.cluster.features.set_levels({"transaction.version": level})
        node.txn(f"x{level}")
        index = state_partition(node, f"x{level}").index
        _, record = node.stored(TRANSACTION_STATE_TOPIC, index)[-1]
        assert record.value is not None
        assert record.value[:2] == bytes((0, version))


def test_an_id_whose_record_is_too_large_is_refused(node: TxnNode) -> None:
    state_partition(node).topic.configs.replace({"max.message.bytes": "80"})
    assert Txn(node, "x" * 100).init().error_code == E.UNKNOWN_SERVER_ERROR


# ----------------------------------------------------------------------------------------- time


@pytest.mark.covers("S251")
def test_a_transaction_left_open_is_aborted_at_the_next_scan() -> None:
    """The scans are every 10 s from when the coordinator began."""
    node = TxnNode()
    p = Txn(node)
    p.init(transaction_timeout_ms=12_000)
    p.add(0)
    p.produce(version=11)
    node.advance(19_999)
    assert p.state == "Ongoing"
    assert p.node.cluster.partition("t", 0).last_stable_offset == 0  # type: ignore[union-attr]
    node.advance(1)
    assert p.state == "CompleteAbort"
    assert node.words() == ["v", "ABORT"]
    assert p.node.cluster.partition("t", 0).last_stable_offset == 2  # type: ignore[union-attr]
    assert p.produce(sequence=1, version=11).error_code == E.INVALID_PRODUCER_EPOCH
    assert p.add(0) == E.PRODUCER_FENCED
    assert p.end().error_code == E.PRODUCER_FENCED


def test_the_timeout_counts_from_the_first_partition() -> None:
    node = TxnNode(configs={"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000"})
    p = Txn(node)
    p.init(transaction_timeout_ms=5_000)
    node.advance(4_500)
    p.add(0)
    node.advance(5_000)
    assert p.state == "Ongoing"
    node.advance(1_000)
    assert p.state == "CompleteAbort"


def test_an_id_has_one_timer_however_many_transactions(node: TxnNode) -> None:
    p = node.txn()

    def live() -> int:
        return sum(timer.callback is not None for _, _, timer in node.cluster.runtime.timers._heap)

    def transact() -> None:
        p.produce()
        p.end(version=TV2)
        node.settle()

    transact()
    before = live()
    for _ in range(5):
        transact()
    assert live() == before
    node.advance(70_000)
    assert live() < before


@pytest.mark.parametrize("level", [0, 2])
def test_a_timeout_goes_by_the_clusters_transaction_version(node: TxnNode, level: int) -> None:
    """Either way the epoch rises by one, which the marker carries."""
    node.cluster.features.set_levels({"transaction.version": level})
    p = Txn(node)
    p.init(transaction_timeout_ms=1)
    p.add(0)
    node.advance(10_001)
    header, _ = node.stored("t")[-1]
    assert (header.producer_epoch, p.machine.epoch) == (1, 1)
    assert p.machine.version == level


def test_ids_expire_after_seven_days_and_leave_a_tombstone(node: TxnNode) -> None:
    day_ms = 86_400_000
    p = node.txn()
    q = node.txn("open")
    q.send_init(transaction_timeout_ms=900_000)
    node.advance(7 * day_ms - 3_600_000)
    assert "x" in node.txn_shard().transactions
    node.advance(2 * 3_600_000)
    assert "x" not in node.txn_shard().transactions
    assert states_in_log(node)[-1] == "tombstone"
    assert p.add(0) == E.INVALID_PRODUCER_ID_MAPPING
    assert p.init().producer_epoch == 0


def test_very_many_ids_expire_in_turns(node: TxnNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mockbroker.core.txn.shard.IDS_PER_TURN", 2)
    node.txn()
    shard = node.txn_shard()
    for name in ("a", "b", "c", "d"):
        shard.transactions[name] = TransactionMetadata(name, new_image(1, 60_000, node.now_ms))
    node.now_ms += 1
    left = [len(shard.transactions) for _ in shard.expire(1)]
    assert left == [3, 1]
    assert shard.transactions == {}


@pytest.mark.parametrize("unloaded", [False, True])
def test_very_many_ids_are_started_in_turns(
    node: TxnNode, monkeypatch: pytest.MonkeyPatch, *, unloaded: bool
) -> None:
    """A load that is overtaken by an unload starts no more of them."""
    monkeypatch.setattr("mockbroker.core.txn.shard.IDS_PER_TURN", 2)
    now_ms = node.now_ms
    started: list[str] = []

    class Noted(TransactionMetadata):
        def handle(self, event: TransactionEvent, now_ms: int) -> list[Effect]:
            started.append(self.transactional_id)
            return super().handle(event, now_ms)

    shard = TransactionShard(node.cluster.brokers[1].transactions, state_partition(node))
    for name in ("a", "b", "c", "d", "e"):
        shard.transactions[name] = Noted(name, new_image(1, 60_000, now_ms))
    check_start_in_turns(shard, started, unloaded=unloaded)


def test_a_call_waits_until_the_pending_transition_is_stored() -> None:
    node = TxnNode(racks=THREE)
    p = node.txn()
    partition = state_partition(node)
    followers = partition.replicas[1:]
    for follower in followers:
        node.cluster.lag_follower(TRANSACTION_STATE_TOPIC, partition.index, node=follower)
    assert p.send_add(0).parked
    called: list[int] = []
    node.txn_shard().when_not_pending("x", lambda: called.append(1))
    assert p.add(1) == E.CONCURRENT_TRANSACTIONS
    node.settle()
    assert called == []
    for follower in followers:
        node.cluster.lag_follower(
            TRANSACTION_STATE_TOPIC, partition.index, node=follower, release=True
        )
    node.settle()
    assert called == [1]


# ---------------------------------------------------------------------------------------- unloading


def test_whoever_waits_is_sent_to_the_new_coordinator() -> None:
    node = TxnNode(racks=THREE)
    p = node.txn()
    partition = state_partition(node)
    for follower in partition.replicas[1:]:
        node.cluster.lag_follower(TRANSACTION_STATE_TOPIC, partition.index, node=follower)
    pending = p.send_add(0)
    assert pending.parked
    shard = node.txn_shard()
    node.cluster.stop_broker(partition.leader_id, "unclean")
    answer = pending.response.results_by_topic_v3_and_below[0].results_by_partition[0]
    assert answer.partition_error_code == E.NOT_COORDINATOR
    assert (shard.unloaded, shard.transactions) == (True, {})


def test_a_coordinator_that_moved_holds_no_call_that_waited_for_it() -> None:
    node = TxnNode(racks=THREE)
    p = node.txn()
    shard = node.txn_shard()

    class Call:
        def __call__(self) -> None:
            raise AssertionError("the id's new coordinator is asked instead")

    call = Call()
    held = weakref.ref(call)
    shard.when_not_pending(p.id, call)
    del call
    assert held() is not None
    node.cluster.stop_broker(p.broker, "unclean")
    node.settle()
    gc.collect()
    assert (shard.unloaded, held()) == (True, None)


def due_times(node: TxnNode) -> list[int]:
    """When timers of transactions are due."""
    return [due_ms for due_ms, _ in node.cluster.clock_domains.transactions.pending(100)]


def test_an_id_that_expires_before_the_timeout_of_its_last_transaction_takes_the_timer_along() -> (
    None
):
    configs = {
        "transactional.id.expiration.ms": "1000",
        "transaction.remove.expired.transaction.cleanup.interval.ms": "10000",
    }
    node = TxnNode(configs=configs)
    p = Txn(node)
    p.init(transaction_timeout_ms=900_000)
    timeout_ms = node.now_ms + 900_000
    p.add(0)
    p.end()
    node.settle()
    assert any(due_ms >= timeout_ms for due_ms in due_times(node))
    node.advance(20_000)
    assert node.txn_shard().transactions == {}
    assert not any(due_ms >= timeout_ms for due_ms in due_times(node))


def test_an_end_that_was_not_stored_when_the_coordinator_moved_sets_no_timer_there() -> None:
    node = TxnNode(racks=THREE)
    p = node.txn()
    p.add(0)
    partition = state_partition(node)
    for follower in partition.replicas[1:]:
        node.cluster.lag_follower(TRANSACTION_STATE_TOPIC, partition.index, node=follower)
    pending = p.send_end()
    assert pending.parked
    shard = node.txn_shard()
    scan_ms = node.now_ms + 70_000  # the first one after the transaction's timeout of a minute
    assert scan_ms in due_times(node)
    shard.unload()
    assert pending.response.error_code == E.NOT_COORDINATOR
    assert scan_ms not in due_times(node)
