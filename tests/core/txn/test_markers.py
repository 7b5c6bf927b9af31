"""Markers in the log of a partition: what they look like, what they end, which are refused."""

from __future__ import annotations

import pytest

from mockbroker.core.replication.partition import Partition
from mockbroker.core.txn.markers import Errors, Marker, write_markers
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import build_marker, parse_marker
from mockbroker_protocol.records.control import ControlType
from tests.support.group_node import fetch_request
from tests.support.txn_node import TV2, TxnNode

E = ErrorCode
THREE = (None, None, None)


@pytest.fixture
def node() -> TxnNode:
    return TxnNode()


def partition_of(node: TxnNode, index: int = 0) -> Partition:
    partition = node.cluster.partition("t", index)
    assert partition is not None
    return partition


def write(node: TxnNode, marker: Marker, *keys: tuple[str, int], broker: int = 1) -> Errors:
    """Write markers and return the errors, which must be there at once."""
    answers: list[Errors] = []
    write_markers(
        node.cluster.brokers[broker],
        marker,
        keys or (("t", 0),),
        answers.append,
    )
    (errors,) = answers
    return errors


@pytest.mark.covers("S16")
def test_a_marker_takes_one_offset_and_looks_as_in_kafka(node: TxnNode) -> None:
    p = node.txn()
    for committed in (True, False):
        p.produce()
        p.end(version=TV2, committed=committed)
        node.settle()
    lines = node.stored("t")
    assert [record.offset for _, record in lines] == [0, 1, 2, 3]
    assert node.words() == ["v", "COMMIT", "v", "ABORT"]
    header, record = lines[1]
    assert (header.is_control, header.is_transactional) == (True, True)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (p.pid, 1, -1)
    assert (record.key, record.value) == (b"\0\0\0\1", b"\0\0\0\0\0\0")
    assert (record.timestamp, parse_marker(record).coordinator_epoch) == (node.now_ms, 0)


def test_its_bytes_are_those_of_the_reference() -> None:
    """78 bytes, as computed by another implementation."""
    marker = build_marker(
        ControlType.COMMIT,
        producer_id=7,
        producer_epoch=1,
        coordinator_epoch=3,
        timestamp=1_700_000_001_000,
        base_offset=10,
        leader_epoch=4,
    )
    assert marker.hex() == (
        "000000000000000a000000420000000402748f17c80030000000000000018bcfe56be80000018bcfe56be8"
        "00000000000000070001ffffffff000000012000000008000000010c00000000000300"
    )


def test_with_tv1_the_marker_has_the_epoch_of_the_records(node: TxnNode) -> None:
    p = node.txn()
    p.add(0)
    p.produce(version=11)
    p.end()
    node.settle()
    assert [header.producer_epoch for header, _ in node.stored("t")] == [0, 0]
    assert p.add(0) == E.NONE
    assert p.produce(sequence=1, version=11).error_code == E.NONE  # the sequence goes on


def test_a_marker_is_written_where_the_producer_wrote_nothing(node: TxnNode) -> None:
    p = node.txn()
    p.add(0, 1)
    p.produce(version=11)
    p.end()
    node.settle()
    assert (node.words(0), node.words(1)) == (["v", "COMMIT"], ["COMMIT"])


# ------------------------------------------------------------------------------------ what is seen


@pytest.mark.covers("S8", "S9", "S19")
def test_the_lso_is_where_the_first_open_transaction_begins(node: TxnNode) -> None:
    partition = partition_of(node)
    for _ in range(5):
        node.produced(plain())
    p = node.txn()
    p.produce((b"5", b"6", b"7"))
    for _ in range(2):
        node.produced(plain())
    assert (partition.high_watermark, partition.last_stable_offset) == (10, 5)
    p.end(version=TV2)
    assert partition.last_stable_offset == 5  # decided, but not written yet
    node.settle()
    assert (partition.high_watermark, partition.last_stable_offset) == (11, 11)


def plain() -> bytearray:
    from tests.support.requests import batch_of

    return batch_of(b"plain")


@pytest.mark.covers("S10")
def test_of_several_open_transactions_the_oldest_holds_the_lso(node: TxnNode) -> None:
    partition = partition_of(node)
    for _ in range(5):
        node.produced(plain())
    a, b = node.txn("a"), node.txn("b")
    a.produce((b"a", b"a"))
    b.produce()
    b.end(version=TV2)
    node.settle()
    assert (partition.high_watermark, partition.last_stable_offset) == (9, 5)
    a.end(version=TV2, committed=False)
    node.settle()
    assert partition.last_stable_offset == partition.high_watermark == 10
    data = node.fetched(("t", 0, 5), isolation_level=1)
    assert [(x.producer_id, x.first_offset) for x in data.aborted_transactions] == [(a.pid, 5)]


@pytest.mark.covers("S11")
def test_the_lso_waits_for_the_marker_to_be_replicated() -> None:
    node = TxnNode(racks=THREE)
    partition = partition_of(node)
    p = node.txn()
    p.produce()
    for follower in partition.replicas[1:]:
        node.cluster.lag_follower("t", 0, node=follower)
    p.end(version=TV2)
    node.settle()
    assert (partition.log_end_offset, partition.high_watermark) == (2, 1)
    assert partition.last_stable_offset == 0
    assert p.state == "PrepareCommit"
    for follower in partition.replicas[1:]:
        node.cluster.lag_follower("t", 0, node=follower, release=True)
    node.advance(1000)
    assert partition.last_stable_offset == partition.high_watermark == 2
    assert p.state == "CompleteCommit"


def test_lso_and_aborted_transactions_survive_a_change_of_leader() -> None:
    """They derive from the log, which every replica has."""
    node = TxnNode(racks=THREE)
    partition = partition_of(node)
    p, q = node.txn("p"), node.txn("q")
    p.produce()
    p.end(version=TV2, committed=False)
    node.settle()
    q.produce()
    partition = partition_of(node)
    for follower in partition.replicas[1:]:
        node.cluster.lag_follower("t", 0, node=follower)  # copies of their own from here
    for follower in partition.replicas[1:]:
        node.cluster.lag_follower("t", 0, node=follower, release=True)
    node.advance(1000)
    node.cluster.stop_broker(partition.leader_id, "unclean")
    assert partition.last_stable_offset == 2
    data = node.fetched(("t", 0, 0), isolation_level=1, broker=partition.leader_id)
    assert (data.last_stable_offset, data.high_watermark) == (2, 3)
    assert [(x.producer_id, x.first_offset) for x in data.aborted_transactions] == [(p.pid, 0)]


def test_a_marker_that_is_truncated_leaves_its_transaction_hanging() -> None:
    """An unclean election takes back what the coordinator takes for done: every copy forgets the
    abort, the LSO goes back, and only an administrator's marker lets readers go on.
    """
    node = TxnNode(racks=THREE)
    partition = partition_of(node)
    p, q = node.txn("p"), node.txn("q")
    p.produce()
    q.produce()
    _, other, _ = partition.replicas
    node.cluster.shrink_isr("t", 0, nodes=partition.replicas[1:])
    p.end(version=TV2, committed=False)
    node.settle()
    assert (partition.last_stable_offset, partition.log_end_offset) == (1, 3)
    assert len(partition.log.producers.aborted) == 1
    node.cluster.elect_unclean("t", 0, other)
    for follower in partition.replicas:
        if follower != other:
            node.cluster.lag_follower("t", 0, node=follower, release=True)
    node.advance(2000)
    assert (p.state, partition.leader_id) == ("CompleteAbort", other)
    for each in partition.replicas:
        replica = partition.replica(each)
        assert replica is not None
        states = replica.log.producers
        assert (replica.log.end_offset, states.first_unstable_offset(), states.aborted) == (
            2,
            0,
            [],
        )
    data = node.fetched(("t", 0, 0), isolation_level=1, broker=other)
    assert (data.last_stable_offset, data.aborted_transactions) == (0, [])
    cure = Marker(p.pid, p.epoch, committed=False, coordinator_epoch=0, version=0)
    assert write(node, cure, ("t", 0), broker=other) == {("t", 0): E.NONE}
    node.advance(1000)
    assert partition.last_stable_offset == 1  # the other one is open still
    assert q.end(version=TV2).error_code == E.NONE
    node.advance(1000)
    data = node.fetched(("t", 0, 0), isolation_level=1, broker=other)
    assert data.last_stable_offset == data.high_watermark == 4
    assert [(x.producer_id, x.first_offset) for x in data.aborted_transactions] == [(p.pid, 0)]


# ----------------------------------------------------------------------------------------- refusals


def test_who_does_not_lead_a_partition_writes_no_marker() -> None:
    node = TxnNode(racks=THREE)
    partition = partition_of(node)
    follower = partition.replicas[1]
    marker = Marker(1, 0, True, 0, 0)
    assert write(node, marker, ("t", 0), ("t", 9), ("u", 0), broker=follower) == {
        ("t", 0): E.NOT_LEADER_OR_FOLLOWER,
        ("t", 9): E.UNKNOWN_TOPIC_OR_PARTITION,
        ("u", 0): E.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert partition.log_end_offset == 0


@pytest.mark.parametrize(
    ("epoch", "coordinator_epoch", "version", "error"),
    [
        (0, 3, 0, E.INVALID_PRODUCER_EPOCH),
        (1, 3, 0, E.NONE),
        (1, 2, 0, E.TRANSACTION_COORDINATOR_FENCED),
        (2, 2, 0, E.TRANSACTION_COORDINATOR_FENCED),
        (2, 4, 0, E.NONE),
        (0, 3, 2, E.INVALID_PRODUCER_EPOCH),
        (1, 3, 2, E.INVALID_PRODUCER_EPOCH),
        (2, 3, 2, E.NONE),
        (-1, 3, 0, E.UNKNOWN_SERVER_ERROR),
    ],
)
def test_stale_producers_and_coordinators_are_refused(
    node: TxnNode, epoch: int, coordinator_epoch: int, version: int, error: ErrorCode
) -> None:
    """The partition last saw epoch 1, its transaction open, and coordinator epoch 3."""
    p = node.txn()
    p.init()
    write(node, Marker(p.pid, 1, True, 3, 0))
    p.add(0)
    p.produce(version=11)
    partition = partition_of(node)
    before = partition.log_end_offset
    errors = write(node, Marker(p.pid, epoch, False, coordinator_epoch, version))
    assert errors == {("t", 0): error}
    assert partition.log_end_offset == before + (error is E.NONE)
    assert partition.log.producers.has_ongoing_transaction(p.pid) == (error is not E.NONE)


def test_a_repeated_marker_ends_nothing_and_does_no_harm(node: TxnNode) -> None:
    p = node.txn()
    p.produce()
    marker = Marker(p.pid, 1, False, 0, 2)
    assert write(node, marker) == write(node, marker) == {("t", 0): E.NONE}
    assert node.words() == ["v", "ABORT", "ABORT"]
    assert len(partition_of(node).log.producers.aborted) == 1


def test_a_marker_waits_for_its_replicas() -> None:
    """REQUEST_TIMED_OUT after request.timeout.ms, though it is in the log by then."""
    node = TxnNode(racks=THREE, configs={"replica.lag.time.max.ms": "100000"})
    partition = partition_of(node)
    for follower in partition.replicas[1:]:
        node.cluster.lag_follower("t", 0, node=follower)
    answers: list[Errors] = []
    leader = node.cluster.brokers[partition.leader_id]
    write_markers(leader, Marker(1, 0, True, 0, 0), (("t", 0),), answers.append)
    node.advance(29_999)
    assert answers == []
    node.advance(1)
    assert answers == [{("t", 0): E.REQUEST_TIMED_OUT}]


def test_a_leader_that_goes_while_a_marker_waits_does_not_vouch_for_it() -> None:
    node = TxnNode(racks=THREE)
    partition = partition_of(node)
    for follower in partition.replicas[1:]:
        node.cluster.lag_follower("t", 0, node=follower)
    answers: list[Errors] = []
    leader = node.cluster.brokers[partition.leader_id]
    write_markers(leader, Marker(1, 0, True, 0, 0), (("t", 0),), answers.append)
    node.cluster.stop_broker(leader.node_id, "unclean")
    assert answers == [{("t", 0): E.NOT_LEADER_OR_FOLLOWER}]


# ------------------------------------------------------------------------------------------ offsets


@pytest.mark.covers("S247")
@pytest.mark.parametrize("committed", [True, False])
def test_a_marker_puts_pending_offsets_in_force_or_drops_them(
    node: TxnNode, committed: bool
) -> None:
    """Until then OffsetFetch that wants stable ones is told UNSTABLE_OFFSET_COMMIT."""
    p = node.txn()
    p.commit_offset(3, version=5)
    p.end(version=TV2)
    node.settle()
    p.commit_offset(8, version=5)

    def fetched() -> tuple[int, int]:
        answer = node.ask(fetch_request({"t": [0]}, require_stable=True))
        line = answer.groups[0].topics[0].partitions[0]
        return line.error_code, line.committed_offset

    assert fetched()[0] == E.UNSTABLE_OFFSET_COMMIT
    p.end(version=TV2, committed=committed)
    assert fetched()[0] == E.UNSTABLE_OFFSET_COMMIT
    node.settle()
    assert fetched() == (E.NONE, 8 if committed else 3)


def test_a_broker_without_a_replica_does_not_know_the_partition() -> None:
    """A replica that does not lead says so instead."""
    node = TxnNode(racks=THREE)
    node.cluster.add_broker(4)
    partition = partition_of(node)
    follower = next(each for each in partition.replicas if each != partition.leader_id)
    marker = Marker(5, 0, committed=True, coordinator_epoch=0, version=0)
    errors = [write(node, marker, broker=broker)["t", 0] for broker in (4, follower)]
    assert errors == [E.UNKNOWN_TOPIC_OR_PARTITION, E.NOT_LEADER_OR_FOLLOWER]
