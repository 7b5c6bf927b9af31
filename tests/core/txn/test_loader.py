"""A shard is what the log says it is."""

from __future__ import annotations

from mockbroker.core.metadata.topic import TRANSACTION_STATE_TOPIC
from mockbroker_protocol.records import ControlType, Record, build_batch, build_marker
from tests.support.txn_node import TV2, TxnNode


def reload(node: TxnNode) -> None:
    """The same broker leads anew, and reads its log."""
    shard = node.txn_shard()
    partition = shard.partition
    partition.become_leader(1, partition.leader_epoch + 1, partition.isr)


def test_the_latest_record_of_each_id_counts() -> None:
    node = TxnNode()
    p = node.txn()
    p.produce()
    p.end(version=TV2)
    node.settle()
    p.produce(partition=1)
    reload(node)
    assert (p.state, list(p.machine.partitions), p.machine.epoch) == ("Ongoing", [("t", 1)], 1)
    assert (p.machine.version, p.machine.previous_producer_id) == (2, p.pid)


def test_a_tombstone_removes_the_id() -> None:
    node = TxnNode()
    node.txn()
    node.advance(8 * 86_400_000)
    reload(node)
    assert node.txn_shard().transactions == {}


def test_what_nobody_could_have_written_is_counted_and_passed_over() -> None:
    node = TxnNode()
    node.txn()
    partition = node.txn_shard().partition
    for key, value in ((b"", b""), (b"\0\0\1", b"x"), (b"\0\0\2x", b"\0\1\0"), (b"\0\x09x", b"")):
        partition.append_records(build_batch([Record(key=key, value=value)]), node.now_ms)
    reload(node)
    shard = node.txn_shard()
    assert (list(shard.transactions), shard.unreadable) == (["x"], 3)


def test_records_above_the_high_watermark_count_as_well() -> None:
    """A new leader's watermark may be late: what was acknowledged before is in its log."""
    node = TxnNode(racks=(None, None, None))
    p = node.txn()
    partition = node.txn_shard().partition
    for follower in partition.replicas[1:]:
        node.cluster.lag_follower(TRANSACTION_STATE_TOPIC, partition.index, node=follower)
    p.send_add(0)
    node.settle()
    assert partition.high_watermark < partition.log_end_offset
    leader_id = partition.leader_id
    partition.become_leader(leader_id, partition.leader_epoch + 1, partition.isr)
    assert node.txn_shard().transactions["x"].state.value == "Ongoing"


def test_a_marker_in_the_log_is_passed_over() -> None:
    node = TxnNode()
    node.txn()
    partition = node.txn_shard().partition
    for kind in (ControlType.ABORT, ControlType.COMMIT):
        marker = build_marker(
            kind, producer_id=5, producer_epoch=0, coordinator_epoch=0, timestamp=1
        )
        partition.append_records(marker, node.now_ms)
    reload(node)
    shard = node.txn_shard()
    assert (list(shard.transactions), shard.unreadable) == (["x"], 0)
