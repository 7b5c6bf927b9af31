"""A partition's append, watermarks, leadership and watchers."""

from __future__ import annotations

import pytest

from mockbroker.core.events import Event, ProducersExpired, RecordsRemoved
from mockbroker.core.ids import uuid_text
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.log.verification import NO_GUARD, VerificationGuard
from mockbroker.core.replication.partition import AppendResult, Partition
from mockbroker.core.replication.replica import FollowerState, Replica
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import BatchHeader, ControlType, build_marker, split_batches
from tests.support.replicas import follow
from tests.support.requests import NOW_MS, Node, batch_of


class Recorder:
    """A watcher that notes the watermarks it was told of."""

    def __init__(self) -> None:
        self.heard: list[tuple[int, int, int]] = []

    def partition_changed(self, partition: Partition) -> None:
        self.heard.append(
            (partition.high_watermark, partition.last_stable_offset, partition.leader_id)
        )


def append(partition: Partition, batch: bytearray, acks: int = -1) -> AppendResult:
    view = memoryview(batch)
    return partition.append(view, BatchHeader(view), acks, NOW_MS)


def lagging(partition: Partition, node_id: int, end_offset: int) -> FollowerState:
    """Give `node_id` a copy of its own that ends at `end_offset`; what the leader knows of it."""
    log = ReplicaLog(end_offset)
    log.start_offset = 0
    return follow(partition, Replica(node_id, log, 0))


def idempotent(*values: bytes, sequence: int, epoch: int = 0, **more) -> bytearray:
    return batch_of(*values, producer_id=9, producer_epoch=epoch, base_sequence=sequence, **more)


@pytest.mark.covers("S1", "S18", "S25")
def test_offsets_are_assigned_in_order_of_append_from_0():
    partition = Node().topic()
    assert partition.log_end_offset == 0
    results = [append(partition, batch_of(*[b"v"] * count)) for count in (1, 3, 2)]
    assert [(r.base_offset, r.last_offset) for r in results] == [(0, 0), (1, 3), (4, 5)]
    assert partition.log_end_offset == partition.high_watermark == 6


def test_read_only_bytes_are_appended_from_a_copy():
    partition = Node().topic()
    batch = bytes(batch_of(b"v"))
    append(partition, batch_of(b"first"))
    result = partition.append(memoryview(batch), BatchHeader(batch), 1, NOW_MS)
    assert result.base_offset == 1
    assert BatchHeader(batch).base_offset == 0


@pytest.mark.covers("S2")
def test_the_high_watermark_is_the_smallest_log_end_of_the_isr():
    partition = Node(racks=(None,) * 3).topic()
    two, three = lagging(partition, 2, 115), lagging(partition, 3, 116)
    append(partition, batch_of(*[b"v"] * 120))
    assert partition.high_watermark == 115
    partition.set_isr([1, 3])
    assert partition.high_watermark == 116
    two.fetched_offset = three.fetched_offset = 120
    partition.set_isr([1, 2, 3])
    assert partition.high_watermark == 120


def test_below_the_minimum_isr_only_acks_all_is_refused_and_the_high_watermark_stays():
    partition = Node(racks=(None,) * 3).topic(min_insync_replicas="2")
    append(partition, batch_of(b"v"))
    partition.set_isr([1])
    refused = append(partition, batch_of(b"v"))
    assert refused.error == ErrorCode.NOT_ENOUGH_REPLICAS
    assert (refused.base_offset, refused.log_start_offset) == (-1, 0)
    assert append(partition, batch_of(b"v"), acks=1).base_offset == 1
    assert not partition.advance_high_watermark()
    assert (partition.log_end_offset, partition.high_watermark) == (2, 1)
    partition.set_isr([1, 2])
    assert partition.high_watermark == 2


def test_the_minimum_isr_is_capped_by_the_number_of_replicas():
    partition = Node().topic(min_insync_replicas="2")
    assert append(partition, batch_of(b"v")).error == ErrorCode.NONE


def test_a_batch_above_the_segment_size_is_refused():
    partition = Node().topic(segment_bytes="1048576", max_message_bytes="9999999")
    refused = append(partition, batch_of(bytes(1_100_000)))
    assert refused.error == ErrorCode.RECORD_LIST_TOO_LARGE
    assert refused.log_start_offset == -1


@pytest.mark.covers("S117")
def test_a_retry_gets_the_answer_of_the_first_attempt():
    partition = Node().topic()
    append(partition, batch_of(b"before"))
    first = append(partition, idempotent(b"a", b"b", sequence=0))
    append(partition, idempotent(b"c", sequence=2))
    retry = append(partition, idempotent(b"a", b"b", sequence=0))
    assert (retry.error, retry.base_offset, retry.last_offset) == (0, 1, 2)
    assert retry.base_offset == first.base_offset
    assert partition.log_end_offset == 4


@pytest.mark.covers("S116", "S117")
def test_a_gap_in_the_sequence_is_refused():
    partition = Node().topic()
    append(partition, idempotent(b"a", sequence=0))
    refused = append(partition, idempotent(b"c", sequence=2))
    assert refused.error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert refused.log_start_offset == 0
    assert partition.log_end_offset == 1


def test_a_fault_of_the_batch_is_found_before_that_of_its_sequence():
    partition = Node().topic()
    append(partition, idempotent(b"a", sequence=0))
    late = idempotent(b"a", sequence=7, timestamp=NOW_MS + 10**8)
    assert append(partition, late).error == ErrorCode.INVALID_TIMESTAMP


def test_a_transaction_opens_only_with_the_guard_of_its_verification():
    """Batches outside of a transaction need none."""
    partition = Node().topic()

    def send(batch: bytearray, guard: VerificationGuard | None) -> int:
        view = memoryview(batch)
        return partition.append(view, BatchHeader(view), -1, NOW_MS, guard).error

    assert send(idempotent(b"plain", sequence=0), NO_GUARD) == ErrorCode.NONE
    batch = idempotent(b"t", sequence=1, transactional=True)
    assert send(batch, NO_GUARD) == ErrorCode.INVALID_TXN_STATE
    guard = partition.log.producers.start_verification(9, 0, 1, NOW_MS, bumps=False)
    assert isinstance(guard, VerificationGuard)
    assert send(batch, guard) == ErrorCode.NONE
    assert partition.log_end_offset == 2


@pytest.mark.covers("S8", "S9", "S16", "S19")
def test_an_open_transaction_holds_the_last_stable_offset_until_its_marker():
    partition = Node().topic()
    append(partition, batch_of(*[b"plain"] * 5))
    append(partition, idempotent(b"t", b"t", b"t", sequence=0, transactional=True))
    append(partition, batch_of(b"plain", b"plain"))
    assert (partition.high_watermark, partition.last_stable_offset) == (10, 5)
    marker = build_marker(
        ControlType.COMMIT, producer_id=9, producer_epoch=0, coordinator_epoch=0, timestamp=1
    )
    ((header, _),) = split_batches(marker)
    assert header.count == 1
    partition.log.append(memoryview(marker), 0, 1, 0)
    partition.log.producers.append_marker(9, 0, 0, 10, 1, aborted=False)
    partition.advance_high_watermark()
    assert (partition.high_watermark, partition.last_stable_offset) == (11, 11)


def test_the_brokers_own_records_are_not_validated():
    partition = Node().topic()
    recorder = Recorder()
    partition.watch(recorder)
    result = partition.append_records(bytes(batch_of(b"a", b"b") + batch_of(b"c")), NOW_MS)
    assert (result.error, result.base_offset, result.last_offset) == (0, 0, 2)
    assert recorder.heard == [(3, 3, 1)]
    bases = [BatchHeader(batch).base_offset for batch in partition.log.batches()]
    assert bases == [0, 2]


def test_the_brokers_own_records_need_the_minimum_isr():
    partition = Node(racks=(None,) * 3).topic(min_insync_replicas="2")
    partition.set_isr([1])
    result = partition.append_records(batch_of(b"a"), NOW_MS)
    assert result.error == ErrorCode.NOT_ENOUGH_REPLICAS
    assert partition.log_end_offset == 0


@pytest.mark.covers("S89")
def test_batches_carry_the_epoch_of_the_leader_that_appended_them():
    partition = Node(racks=(None,) * 3).topic()
    append(partition, batch_of(b"a"))
    partition.become_leader(2, 1, [2, 3])
    append(partition, batch_of(b"b"))
    epochs = [BatchHeader(batch).leader_epoch for batch in partition.log.batches()]
    assert epochs == [0, 1]
    assert partition.log.epochs.entries == [(0, 0), (1, 1)]
    assert (partition.leader_id, partition.leader_epoch_start_offset) == (2, 1)


def test_a_partition_that_loses_its_leader_begins_no_epoch_in_its_log():
    partition = Node().topic()
    append(partition, batch_of(b"a"))
    partition.become_leader(-1, 1, [])
    assert partition.log.epochs.entries == [(0, 0)]
    assert partition.check_leader_epoch(0) == ErrorCode.FENCED_LEADER_EPOCH
    assert partition.check_leader_epoch(2) == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert partition.check_leader_epoch(-1) == ErrorCode.NONE


@pytest.mark.parametrize(("asked", "expected"), [(2, (0, 2)), (-1, (0, 3)), (0, (0, 0))])
def test_deleting_records_moves_the_log_start(asked, expected):
    partition = Node().topic()
    append(partition, batch_of(b"a", b"b", b"c"))
    assert partition.delete_records(asked) == expected
    assert partition.log_start_offset == partition.low_watermark == expected[1]


def test_each_deletion_of_records_is_an_event_with_the_offsets_that_have_gone():
    node = Node()
    partition = node.topic()
    heard: list[Event] = []
    node.cluster.runtime.on_event.append(heard.append)
    append(partition, batch_of(b"a", b"b", b"c"))
    for offset in (1, 1, -1):
        partition.delete_records(offset)
    gone = [each for each in heard if isinstance(each, RecordsRemoved)]
    assert [(each.first_offset, each.last_offset) for each in gone] == [(0, 0), (1, 2)]
    assert {each.reason for each in gone} == {"delete_records"}


@pytest.mark.parametrize("asked", [-2, 4])
def test_records_outside_of_the_log_cannot_be_deleted(asked):
    partition = Node().topic()
    append(partition, batch_of(b"a", b"b", b"c"))
    assert partition.delete_records(asked)[0] == ErrorCode.OFFSET_OUT_OF_RANGE


def test_records_of_a_topic_that_is_only_compacted_cannot_be_deleted():
    partition = Node().topic(cleanup_policy="compact")
    assert partition.delete_records(0)[0] == ErrorCode.POLICY_VIOLATION
    both = Node().topic(cleanup_policy="compact,delete")
    assert both.delete_records(0)[0] == ErrorCode.NONE


@pytest.mark.covers("S5")
def test_the_low_watermark_waits_for_replicas_on_live_brokers_only():
    node = Node(racks=(None,) * 2)
    partition = node.topic()
    append(partition, batch_of(b"a", b"b", b"c"))
    lagging(partition, 2, 3)
    partition.delete_records(2)
    assert partition.low_watermark == 0
    node.cluster.brokers[2].fenced = True
    assert partition.low_watermark == 2


def test_watchers_are_notified_of_leader_changes_truncation_and_deletion():
    partition = Node(racks=(None,) * 2).topic()
    append(partition, batch_of(b"a"))
    append(partition, batch_of(b"b"))
    recorder = Recorder()
    partition.watch(recorder)
    partition.become_leader(2, 1, [2])
    partition.truncate(1)
    partition.delete()
    partition.unwatch(recorder)
    partition.notify()
    assert recorder.heard == [(2, 2, 2), (1, 1, 2), (1, 1, 2)]
    assert partition.deleted


def test_a_broker_without_a_copy_has_no_replica():
    partition = Node().topic()
    assert partition.replica(1) is not None
    assert partition.replica(2) is None


def test_an_empty_partition_is_readable_up_to_0():
    partition = Node().topic()
    assert (partition.high_watermark, partition.last_stable_offset) == (0, 0)


def test_a_copy_for_another_image_has_the_limits_that_rules_have_set():
    partition = Node(racks=(None,) * 3).topic()
    append(partition, batch_of(*[b"v"] * 5))
    partition.high_watermark_limit, partition.last_stable_offset_limit = 3, 2
    copy = partition.copy_with({})
    assert (copy.high_watermark_limit, copy.last_stable_offset_limit) == (3, 2)
    copy.advance_high_watermark()
    assert copy.high_watermark <= partition.high_watermark


def test_producers_expire_at_the_configured_interval():
    """Each client of an idempotent producer has an id of its own, in each partition."""
    node = Node(
        configs={
            "producer.id.expiration.ms": "5000",
            "producer.id.expiration.check.interval.ms": "1000",
        }
    )
    partition = node.topic()
    for producer_id in range(100):
        view = memoryview(batch_of(b"v", producer_id=producer_id, base_sequence=0))
        partition.append(view, BatchHeader(view), -1, NOW_MS + 1000 * producer_id)
    assert len(partition.log.producers.entries) <= 7


def test_a_retry_behind_the_expiration_of_its_producer_is_appended_again_and_an_event_tells_why():
    """A partition does not know the producer any more, and takes its batch at any sequence."""
    node = Node(
        configs={
            "producer.id.expiration.ms": "5000",
            "producer.id.expiration.check.interval.ms": "1000",
        }
    )
    heard: list[Event] = []
    node.cluster.runtime.on_event.append(heard.append)
    partition = node.topic()

    def send(after_ms: int, sequence: int) -> AppendResult:
        node.advance(after_ms)
        view = memoryview(idempotent(b"v", sequence=sequence))
        return partition.append(view, BatchHeader(view), -1, node.now_ms)

    assert send(0, 3).base_offset == 0
    assert send(4999, 3).duplicate
    assert [each for each in heard if isinstance(each, ProducersExpired)] == []
    again = send(1000, 3)
    assert (again.base_offset, again.duplicate) == (1, False)
    topic_id = uuid_text(partition.topic.topic_id)
    expired = ProducersExpired(node.now_ms, "t", topic_id, 0, 1, (9,))
    assert [each for each in heard if isinstance(each, ProducersExpired)] == [expired]
    assert send(1, 3).duplicate
    assert send(0, 9).error == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_producers_that_expire_on_a_follower_alone_are_no_event():
    """Only the leader's state decides about batches."""
    node = Node(racks=(None,) * 2, configs={"producer.id.expiration.ms": "5000"})
    heard: list[Event] = []
    node.cluster.runtime.on_event.append(heard.append)
    partition = node.topic()
    append(partition, idempotent(b"v", sequence=0))
    copy = Replica(2, partition.log.fork(), 1)
    follow(partition, copy)
    partition.expire_producers(copy.log, NOW_MS)
    partition.expire_producers(copy.log, NOW_MS + 5000)
    assert (list(copy.log.producers.entries), list(partition.log.producers.entries)) == ([], [9])
    assert [each for each in heard if isinstance(each, ProducersExpired)] == []


def test_a_batch_may_fill_a_whole_segment():
    size = len(batch_of(b"v"))
    for segment_bytes, error in ((size, 0), (size - 1, ErrorCode.RECORD_LIST_TOO_LARGE)):
        partition = Node().topic(internal_segment_bytes=str(segment_bytes))
        assert append(partition, batch_of(b"v")).error == error


def test_a_batch_that_does_not_fit_begins_a_segment():
    size = len(batch_of(b"v"))
    partition = Node().topic(internal_segment_bytes=str(2 * size))
    for _ in range(3):
        append(partition, batch_of(b"v"))
    partition.append_records(batch_of(b"a") + batch_of(b"b"), NOW_MS)
    assert [each.base_offset for each in partition.log.segments] == [0, 2, 4]


def test_records_above_the_high_watermark_cannot_be_deleted():
    partition = Node().topic()
    partition.high_watermark_limit = 2
    append(partition, batch_of(b"a", b"b", b"c"))
    assert partition.delete_records(3)[0] == ErrorCode.OFFSET_OUT_OF_RANGE
    assert partition.delete_records(-1) == (ErrorCode.NONE, 2)


def test_the_last_stable_offset_is_never_below_the_log_start():
    """Neither by an open transaction nor by a limit."""
    partition = Node(racks=(None,) * 2).topic()
    append(partition, idempotent(b"t", b"t", sequence=0, transactional=True))
    append(partition, batch_of(b"a", b"b"))
    copy = Replica(2, partition.log.fork(), 4)
    partition.delete_records(1)
    assert partition.last_stable_offset == 1
    partition.limit_last_stable_offset(0)
    copy.log.move_start(1)
    partition.own_replicas[2] = copy
    assert (partition.last_stable_offset_on(1), partition.last_stable_offset_on(2)) == (1, 1)


def test_a_limit_of_the_last_stable_offset_holds_until_it_is_removed_and_watchers_hear_of_both():
    partition = Node().topic()
    append(partition, batch_of(b"a", b"b", b"c"))
    recorder = Recorder()
    partition.watch(recorder)
    partition.limit_last_stable_offset(1)
    partition.limit_last_stable_offset(None)
    assert recorder.heard == [(3, 1, 1), (3, 3, 1)]


def test_a_high_watermark_that_is_put_below_a_marker_opens_its_transaction_for_consumers_again():
    partition = Node().topic()
    append(partition, idempotent(b"t", sequence=0, transactional=True))
    marker = build_marker(
        ControlType.COMMIT, producer_id=9, producer_epoch=0, coordinator_epoch=0, timestamp=1
    )
    partition.append_records(marker, NOW_MS)
    assert partition.last_stable_offset == 2
    partition.force_high_watermark(1)
    assert (partition.high_watermark, partition.last_stable_offset) == (1, 0)


@pytest.mark.parametrize("leader_id", [-1, 2])
def test_a_change_of_the_leader_ends_what_the_former_one_knew_and_had_asked_for(leader_id):
    """Also if the new one does not know of it yet."""
    node = Node(racks=(None,) * 3)
    partition = node.topic()
    node.cluster.cut_network(2, fence_after_ms=10**9)
    partition = node.cluster.topics["t"].partitions[0]
    lagging(partition, 3, 0)
    partition.isr_in_flight = [1]
    partition.become_leader(leader_id, 1, [2, 3])
    assert (partition.followers, list(partition.isr_in_flight)) == ({}, [])


def test_a_copy_for_another_image_says_the_same_of_the_partition():
    partition = Node(racks=(None,) * 3).topic()
    append(partition, batch_of(b"a", b"b"))
    partition.become_leader(1, 4, [1, 3])
    partition.raise_partition_epoch(3)
    partition.elr, partition.last_known_elr = (2,), (1,)
    copy = partition.copy_with({})
    same = (
        *("key", "index", "replicas", "isr", "leader_id", "leader_epoch", "partition_epoch"),
        *("elr", "last_known_elr", "leader_epoch_start_offset", "log", "high_watermark"),
        *("last_stable_offset", "topic"),
    )
    assert {name: getattr(copy, name) for name in same} == {
        name: getattr(partition, name) for name in same
    }
    assert copy.leader_epoch_start_offset == 2
    assert (copy.own_replicas, copy.followers) == ({}, {})
    other = Node(racks=(None,) * 3).topic()
    other.isr_in_flight = [1]
    other.copy_metadata_from(partition)
    taken = (
        *("replicas", "isr", "leader_id", "leader_epoch", "partition_epoch"),
        *("elr", "last_known_elr"),
    )
    assert {name: getattr(other, name) for name in taken} == {
        name: getattr(partition, name) for name in taken
    }
    assert list(other.isr_in_flight) == []
