"""When logs are looked after: on the cluster's clock, where there is reason to, and on demand."""

from __future__ import annotations

import pytest

from mockbroker.core.errors import ApiError
from mockbroker.core.log.added_age import CompactionDomain
from mockbroker.core.log.compaction import CompactionResult
from mockbroker.core.log.manager import PARTITIONS_PER_TURN, RetentionResult
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.replication.partition import Partition
from mockbroker.core.replication.replica import Replica
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import BatchHeader, Record, build_batch, update_crc
from tests.support.requests import NOW_MS, Node, batch_of, values_of

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
RETENTION_ROUND_MS = 300_000
CLEANER_ROUND_MS = 15_000
SIZE = len(batch_of(b"v"))


class Calls:
    """A cluster whose clock is stepped from deadline to deadline, and how many there were."""

    def __init__(self, **configs: str) -> None:
        named = {key.replace("_", "."): value for key, value in configs.items()}
        self.node = Node(configs=named)
        self.turns = 0

    def advance(self, by_ms: int) -> None:
        node, timers = self.node, self.node.cluster.runtime.timers
        until = node.now_ms + by_ms
        while (deadline := timers.deadline_ms()) is not None and deadline <= until:
            node.now_ms = max(node.now_ms, deadline)
            timers.run_due(node.now_ms)
            self.turns += 1
        node.now_ms = until

    def write(self, *values: bytes | None, topic: str = "t", key: bytes | None = b"k") -> None:
        for value in values:
            batch = batch_of(value, timestamp=self.node.now_ms, key=key)
            assert self.node.produced(batch, topic=topic).error_code == 0


def shown(partition: Partition) -> list[int]:
    """The base offsets of the batches that are left."""
    return [BatchHeader(batch).base_offset for batch in partition.log.batches()]


# -- retention on the clock ------------------------------------------------------------------------


@pytest.mark.covers("S7")
def test_old_segments_go_at_the_first_check_after_they_expired():
    world = Calls()
    partition = world.node.topic(retention_ms=str(DAY_MS), internal_segment_bytes=str(2 * SIZE))
    world.write(b"a", b"b", b"c")
    world.advance(DAY_MS)
    world.write(b"d", b"e")
    assert partition.log_start_offset == 0
    world.advance(RETENTION_ROUND_MS)
    # The newest record of [c, d] is a day younger than those of [a, b].
    assert (partition.log_start_offset, shown(partition)) == (2, [2, 3, 4])
    world.advance(2 * DAY_MS)
    assert (partition.log_start_offset, partition.log_end_offset, shown(partition)) == (5, 5, [])


def test_the_time_until_then_costs_a_few_turns_however_long_it_is():
    world = Calls()
    for name in ("a", "b", "c"):
        world.node.topic(name, retention_ms=str(1000 * DAY_MS))
        world.write(b"v", topic=name)
    world.advance(999 * DAY_MS)
    assert world.turns <= 2
    world.advance(2 * DAY_MS)
    assert world.turns <= 4
    assert all(
        topic.partitions[0].log.batch_count == 0 for topic in world.node.cluster.topics.values()
    )
    assert world.node.cluster.runtime.timers.deadline_ms() is None


def test_checks_are_held_every_log_retention_check_interval_ms_from_the_start_on():
    world = Calls(log_retention_check_interval_ms="1000")
    partition = world.node.topic(retention_ms="100")
    world.advance(30_000)  # nothing is looked at in the first half minute
    world.write(b"a")
    world.advance(999)
    assert shown(partition) == [0]
    world.advance(1)
    assert shown(partition) == []


def test_a_check_of_very_many_partitions_lets_requests_in_between():
    """A topic that is deleted meanwhile is passed by."""
    world = Calls()
    many = PARTITIONS_PER_TURN + 50
    world.node.topic("few", partitions=1, retention_ms="1000")
    world.node.topic(partitions=many, retention_ms="1000")
    batch = batch_of(b"v", timestamp=world.node.now_ms)
    partitions = world.node.cluster.topics["t"].partitions
    for partition in partitions:
        if partition.index == PARTITIONS_PER_TURN + 10:
            world.node.produced(batch, topic="few")
        world.node.produced(batch, partition=partition.index)
    [last] = world.node.cluster.topics["few"].partitions
    timers = world.node.cluster.runtime.timers
    deadline_ms = timers.deadline_ms()
    assert deadline_ms is not None
    world.node.now_ms = max(deadline_ms, world.node.now_ms + 2_000)
    kept = []
    while timers.are_due(world.node.now_ms) or timers.deadline_ms() == 0:
        timers.run_due(world.node.now_ms)
        kept.append(sum(1 for each in partitions if shown(each)))
        if len(kept) == 1:
            world.node.cluster.delete_topic("few")
    assert kept == [50, 0]
    assert shown(last) == [0]


def test_whoever_waits_at_the_log_is_told_that_its_start_has_moved():
    world = Calls()
    world.node.topic(retention_ms="1000", internal_segment_bytes=str(SIZE))
    world.write(b"a", b"b", b"c")
    partition = world.node.cluster.topics["t"].partitions[0]
    seen = []

    class Watching:
        def partition_changed(self, changed: Partition) -> None:
            seen.append(changed.log_start_offset)

    partition.watch(Watching())
    world.advance(HOUR_MS)
    assert seen == [3]


def test_what_a_transaction_holds_back_is_refreshed_when_its_beginning_is_gone():
    world = Calls()
    partition = world.node.topic(retention_bytes=str(SIZE), internal_segment_bytes="150")
    more = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    batch = memoryview(batch_of(b"open", **more))
    partition.append(batch, BatchHeader(batch), -1, world.node.now_ms)
    world.write(b"a", b"b", b"c", b"d", b"e", b"f")
    assert partition.last_stable_offset == 0
    world.node.cluster.run_retention("t")
    assert partition.log_start_offset > 0
    assert partition.last_stable_offset == partition.log_start_offset


def test_a_leader_without_the_controller_has_its_last_stable_offset_refreshed():
    node = Node(racks=(None, None, None))
    topic = node.cluster.create_topic(
        "t",
        assignments={0: [2]},
        configs={"retention.bytes": str(SIZE), "internal.segment.bytes": "150"},
    )
    partition = topic.partitions[0]
    more = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    batch = memoryview(batch_of(b"open", **more))
    partition.append(batch, BatchHeader(batch), -1, node.now_ms)
    for value in (b"a", b"b", b"c", b"d", b"e", b"f"):
        partition.append_records(batch_of(value), node.now_ms)
    node.cluster.cut_network(2)
    led = node.cluster.processes[2].image.partition("t", 0)
    assert (led.leader_id, led.last_stable_offset) == (2, 0)
    node.cluster.run_retention("t")
    assert led.last_stable_offset == led.log_start_offset > 0


def test_a_segment_held_by_the_high_watermark_goes_once_that_moves():
    world = Calls()
    node = world.node = Node(racks=(None, None))
    partition = node.topic(retention_ms="1000")
    world.write(b"a", b"b")
    partition.own_replicas[2] = Replica(2, ReplicaLog(), 0)
    partition.high_watermark = 1
    world.advance(HOUR_MS)
    assert partition.log_start_offset == 0
    del partition.own_replicas[2]
    partition.set_isr([1])
    world.advance(RETENTION_ROUND_MS)
    assert partition.log_start_offset == 2


def test_a_shorter_retention_counts_for_what_is_there_already():
    world = Calls()
    partition = world.node.topic()
    world.write(b"a")
    world.advance(HOUR_MS)
    cluster = world.node.cluster
    cluster.replace_topic_configs(cluster.topics["t"], {"retention.ms": "1000"})
    world.advance(RETENTION_ROUND_MS)
    assert partition.log_start_offset == 1


def test_deleted_records_are_freed_and_their_segments_go_at_the_next_check():
    world = Calls()
    partition = world.node.topic(internal_segment_bytes=str(2 * SIZE))
    world.write(*[b"v"] * 6)
    partition.delete_records(3)
    assert shown(partition) == [3, 4, 5]
    assert (partition.log.size, len(partition.log.segments)) == (6 * SIZE, 3)
    world.advance(RETENTION_ROUND_MS)
    assert (partition.log.size, len(partition.log.segments)) == (4 * SIZE, 2)
    assert partition.log_start_offset == 3


def test_topics_that_are_gone_are_not_looked_at():
    world = Calls()
    world.node.topic(retention_ms="1000")
    world.write(b"a")
    world.node.cluster.delete_topic("t")
    world.advance(HOUR_MS)
    assert world.node.cluster.runtime.timers.deadline_ms() is None


# -- retention on demand ---------------------------------------------------------------------------


def test_retention_on_demand_tells_what_it_removed():
    world = Calls()
    for name in ("t", "u"):
        world.node.topic(name, partitions=2, retention_ms="1000")
        world.write(b"a", b"b", topic=name)
    world.node.now_ms += 1001
    cluster = world.node.cluster
    assert cluster.run_retention("t", 1) == []
    gone = RetentionResult("t", 0, 1, 1, 2 * SIZE, 0, 2)
    assert cluster.run_retention("t") == [gone]
    assert cluster.run_retention() == [gone._replace(topic="u")]
    assert cluster.run_retention() == []


@pytest.mark.parametrize("unknown", [("nope", None), ("t", 7)])
def test_an_unknown_partition_is_refused(unknown):
    node = Node()
    node.topic()
    for run in (node.cluster.run_retention, node.cluster.run_compaction):
        with pytest.raises(ApiError) as caught:
            run(*unknown)
        assert caught.value.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# -- compaction on the clock -----------------------------------------------------------------------


def test_the_cleaner_takes_on_what_is_dirty_enough_every_log_cleaner_backoff_ms():
    world = Calls()
    partition = world.node.topic(cleanup_policy="compact", internal_segment_bytes=str(2 * SIZE))
    world.write(b"1", b"2", b"3", b"4", b"5")
    world.advance(CLEANER_ROUND_MS - 1)
    assert shown(partition) == [0, 1, 2, 3, 4]
    world.advance(1)
    assert shown(partition) == [3, 4]
    assert values_of(world.node.fetched(("t", 0, 0))) == [b"4", b"5"]
    turns = world.turns
    world.advance(DAY_MS)
    assert world.turns <= turns + 1


def test_the_active_segment_is_not_cleaned_however_long_nothing_comes():
    world = Calls()
    partition = world.node.topic(cleanup_policy="compact")
    world.write(b"1", b"2")
    world.advance(30 * DAY_MS)
    assert shown(partition) == [0, 1]


def test_what_is_not_dirty_enough_waits():
    world = Calls(log_cleaner_min_cleanable_ratio="0.8")
    partition = world.node.topic(cleanup_policy="compact", internal_segment_bytes=str(SIZE))
    for key in (b"a", b"b", b"c"):
        world.write(b"1", key=key)
    world.advance(CLEANER_ROUND_MS)
    assert partition.log.first_dirty_offset == 2
    for key in (b"a", b"b", b"c", b"d", b"e", b"f", b"g"):
        world.write(b"2", key=key)
    world.advance(DAY_MS)
    assert partition.log.first_dirty_offset == 2  # 7 of 9 closed segments are dirty: 0.78
    assert len(shown(partition)) == 10
    world.write(b"2", b"2", key=b"h")
    world.advance(CLEANER_ROUND_MS)
    assert partition.log.first_dirty_offset == 11


def test_with_log_cleaner_enable_false_nothing_is_cleaned_by_itself():
    world = Calls(log_cleaner_enable="false")
    partition = world.node.topic(cleanup_policy="compact", internal_segment_bytes=str(SIZE))
    world.write(b"1", b"2", b"3")
    world.advance(DAY_MS)
    assert shown(partition) == [0, 1, 2]


@pytest.mark.parametrize(
    ("configs", "from_ms"),
    [
        ({"min_compaction_lag_ms": "3600000"}, HOUR_MS),
        ({"max_compaction_lag_ms": "3600000", "min_cleanable_dirty_ratio": "1"}, HOUR_MS + 1),
    ],
)
def test_both_lags_end_on_the_clock(configs, from_ms):
    world = Calls()
    partition = world.node.topic(
        cleanup_policy="compact", internal_segment_bytes=str(SIZE), **configs
    )
    world.write(b"1", b"2", b"3")
    world.advance(from_ms - CLEANER_ROUND_MS)
    assert shown(partition) == [0, 1, 2]
    world.advance(2 * CLEANER_ROUND_MS)
    assert shown(partition) == [1, 2]
    assert world.turns <= 4


def test_compact_and_delete_together_are_looked_after_by_the_cleaner():
    world = Calls()
    partition = world.node.topic(
        cleanup_policy="compact,delete",
        retention_ms=str(HOUR_MS),
        internal_segment_bytes=str(SIZE),
    )
    world.write(b"1", b"2", b"3")
    world.advance(CLEANER_ROUND_MS)
    assert shown(partition) == [1, 2]
    world.advance(HOUR_MS)
    assert (partition.log_start_offset, shown(partition)) == (3, [])
    world.advance(CLEANER_ROUND_MS)
    assert world.node.cluster.runtime.timers.deadline_ms() is None


def test_a_topic_that_becomes_compacted_is_looked_after_by_the_cleaner():
    world = Calls()
    partition = world.node.topic(internal_segment_bytes=str(SIZE))
    world.write(b"1", b"2", b"3")
    cluster = world.node.cluster
    overrides = dict(cluster.topics["t"].configs.overrides)
    cluster.replace_topic_configs(cluster.topics["t"], {**overrides, "cleanup.policy": "compact"})
    world.advance(HOUR_MS)
    assert shown(partition) == [1, 2]
    cluster.replace_topic_configs(
        cluster.topics["t"], {**overrides, "cleanup.policy": "delete", "retention.ms": "1"}
    )
    world.advance(HOUR_MS)
    assert shown(partition) == []


def test_an_empty_topic_that_becomes_compacted_is_cleaned_in_the_next_round_of_the_cleaner():
    """And if it is compacted no more, it is looked at in the next check."""
    world = Calls()
    partition = world.node.topic(internal_segment_bytes=str(SIZE))
    cluster = world.node.cluster
    overrides = dict(cluster.topics["t"].configs.overrides)
    partition.notify()  # as of a new leader
    cluster.replace_topic_configs(cluster.topics["t"], {**overrides, "cleanup.policy": "compact"})
    world.write(b"1", b"2", b"3")
    world.advance(CLEANER_ROUND_MS)
    assert shown(partition) == [1, 2]
    partition.truncate(0)
    cluster.replace_topic_configs(cluster.topics["t"], {**overrides, "retention.ms": "1"})
    world.write(b"4")
    world.advance(RETENTION_ROUND_MS)
    assert shown(partition) == []


def test_a_topic_that_is_compacted_no_more_is_not_cleaned():
    """Nor in the round of the cleaner that it was scheduled for."""
    world = Calls()
    partition = world.node.topic(cleanup_policy="compact", internal_segment_bytes=str(SIZE))
    world.write(b"1", b"2", b"3")
    cluster = world.node.cluster
    overrides = dict(cluster.topics["t"].configs.overrides)
    cluster.replace_topic_configs(cluster.topics["t"], {**overrides, "cleanup.policy": "delete"})
    world.advance(HOUR_MS)
    assert shown(partition) == [0, 1, 2]


def test_old_segments_of_a_topic_that_becomes_compacted_wait_for_the_cleaner():
    world = Calls(log_cleaner_backoff_ms=str(HOUR_MS))
    partition = world.node.topic(retention_ms="1000")
    world.write(b"1")
    cluster = world.node.cluster
    overrides = {"retention.ms": "1000", "cleanup.policy": "compact,delete"}
    cluster.replace_topic_configs(cluster.topics["t"], overrides)
    world.advance(HOUR_MS - 1)
    assert shown(partition) == [0]
    world.advance(1)
    assert shown(partition) == []


def test_a_topic_that_becomes_compacted_holds_up_no_other_at_the_next_check():
    world = Calls()
    partitions = [world.node.topic(name, retention_ms="1000") for name in ("t", "u")]
    for name in ("t", "u"):
        world.write(b"1", topic=name)
    cluster = world.node.cluster
    cluster.replace_topic_configs(cluster.topics["t"], {"cleanup.policy": "compact"})
    world.advance(RETENTION_ROUND_MS)
    assert [shown(each) for each in partitions] == [[0], []]


def test_a_log_that_cannot_be_read_is_given_up_and_the_others_are_cleaned():
    world = Calls()
    node = world.node
    broken = node.topic("broken", internal_segment_bytes=str(SIZE))
    fine = node.topic("fine", cleanup_policy="compact", internal_segment_bytes=str(SIZE))
    batch = build_batch([Record(0, NOW_MS, b"k", b"x" * 5000)], codec=4)
    batch[61:] = bytes(len(batch) - 61)
    update_crc(batch)
    broken.append_records(batch, NOW_MS)
    world.write(b"1", topic="broken")
    cluster = node.cluster
    cluster.replace_topic_configs(cluster.topics["broken"], {"cleanup.policy": "compact"})
    world.write(b"1", b"2", topic="fine")
    world.advance(CLEANER_ROUND_MS)
    assert list(cluster.log_manager.uncleanable) == [broken.key]
    assert (shown(broken), shown(fine)) == ([0, 1], [0, 1])
    world.write(b"3", b"4", topic="fine")
    world.advance(CLEANER_ROUND_MS)
    assert shown(fine) == [2, 3]
    cluster.delete_topic("broken")
    assert cluster.log_manager.uncleanable == {}


def test_a_large_log_is_cleaned_in_slices_with_turns_for_others_in_between():
    world = Calls()
    partition = world.node.topic(cleanup_policy="compact", internal_segment_bytes="2000000")
    for _ in range(60):
        batch = build_batch([Record(0, NOW_MS, b"k%d" % at, b"v") for at in range(1000)])
        partition.append_records(batch, NOW_MS)
    partition.log.roll()
    world.advance(CLEANER_ROUND_MS)
    turns = world.turns
    assert partition.log.batch_count == 1
    # Indexing alone is 60,000 records, and a slice takes some 1,500 of them.
    assert turns >= 30


# -- compaction on demand --------------------------------------------------------------------------


@pytest.mark.covers("S28")
def test_compaction_on_demand_closes_the_active_segment_and_tells_what_it_removed():
    world = Calls()
    partition = world.node.topic(cleanup_policy="compact")
    world.write(b"1", b"2", b"3")
    removed = world.node.cluster.run_compaction("t").run()
    assert removed == [CompactionResult("t", 0, 1, 2, 1, 2, 2 * SIZE, 3)]
    assert shown(partition) == [2]
    assert partition.log_start_offset == 0
    assert world.node.cluster.run_compaction("t").run() == [
        CompactionResult("t", 0, 1, 0, 1, 0, 0, 3)
    ]


def test_without_roll_the_active_segment_is_left_as_the_cleaner_would():
    world = Calls()
    partition = world.node.topic(cleanup_policy="compact")
    world.write(b"1", b"2", b"3")
    assert world.node.cluster.run_compaction("t", roll=False).run() == []
    assert shown(partition) == [0, 1, 2]


def test_compaction_of_everything_passes_over_what_is_not_compacted():
    world = Calls()
    world.node.topic("plain")
    world.node.topic("t", partitions=2, cleanup_policy="compact")
    world.write(b"1", b"2", topic="plain")
    world.write(b"1", b"2")
    assert [each[:2] for each in world.node.cluster.run_compaction().run()] == [("t", 0)]


def test_compaction_of_a_topic_that_is_not_compacted_is_refused():
    node = Node()
    node.topic()
    with pytest.raises(ApiError) as caught:
        node.cluster.run_compaction("t").run()
    assert caught.value.error is ErrorCode.POLICY_VIOLATION


def test_compaction_on_demand_overtakes_the_one_under_way():
    world = Calls()
    partition = world.node.topic(cleanup_policy="compact", internal_segment_bytes="100000")
    for _ in range(20):
        batch = build_batch([Record(0, NOW_MS, b"k%d" % at, b"v") for at in range(1000)])
        partition.append_records(batch, NOW_MS)
    partition.log.roll()
    node = world.node
    node.advance(CLEANER_ROUND_MS)
    assert partition.log.batch_count == 20
    assert node.cluster.runtime.timers.deadline_ms() == 0
    (result,) = node.cluster.run_compaction("t").run()
    assert result.records_removed == 19_000
    world.advance(CLEANER_ROUND_MS)
    assert partition.log.batch_count == 1


# -- replicas that differ --------------------------------------------------------------------------


def test_each_log_of_a_partition_is_kept_up_to_its_own_high_watermark():
    node = Node(racks=(None, None, None))
    partition = node.topic(cleanup_policy="compact,delete", retention_ms="1000")
    own = ReplicaLog()
    for value in (b"1", b"2", b"3"):
        batch = batch_of(value, timestamp=node.now_ms)
        partition.append_records(batch, node.now_ms)
        if value != b"3":
            copy = bytearray(batch)
            own.append(memoryview(copy), 0, node.now_ms, 0)
    partition.own_replicas[2] = Replica(2, own, 1)
    partition.own_replicas[3] = Replica(3, partition.log, 3)
    results = node.cluster.run_compaction("t").run()
    assert [(result.node_id, result.end_offset) for result in results] == [(1, 3)]
    assert [BatchHeader(batch).base_offset for batch in own.batches()] == [0, 1]
    partition.own_replicas[2].high_watermark = 2
    node.now_ms += 2000
    gone = node.cluster.run_retention("t")
    assert [(result.node_id, result.log_start_offset) for result in gone] == [(1, 3), (2, 2)]
    assert partition.own_replicas[2].log.start_offset == 2


def test_an_advance_of_the_cleaners_clock_does_not_age_records_of_other_topics():
    """They are as old as their timestamps say when their topic is compacted later."""
    world = Calls()
    plain = world.node.topic("plain")
    compacted = world.node.topic("compacted", cleanup_policy="compact")
    for each in ("plain", "compacted"):
        world.write(b"a", topic=each)
    manager = world.node.cluster.log_manager
    manager.add_age_for_cleaner(HOUR_MS)
    assert manager.cleaner_skew(compacted)(compacted.log, 0) == -HOUR_MS
    assert manager.cleaner_skew(plain)(plain.log, 0) == 0


def test_records_that_are_aged_go_at_once_and_later_ones_in_their_time():
    world = Calls()
    partition = world.node.topic(retention_ms=str(DAY_MS), internal_segment_bytes=str(SIZE))
    world.write(b"a", b"b")
    manager = world.node.cluster.log_manager
    manager.age(DAY_MS)
    assert shown(partition) == [0, 1]
    manager.age(1)
    assert shown(partition) == []
    world.write(b"c")
    assert shown(partition) == [2]


def test_a_log_that_becomes_dirty_while_another_is_cleaned_has_its_turn_afterwards():
    world = Calls()
    node = world.node
    large = node.topic("large", cleanup_policy="compact", internal_segment_bytes="2000000")
    small = node.topic("small", cleanup_policy="compact", internal_segment_bytes=str(SIZE))
    for _ in range(20):
        batch = build_batch([Record(0, NOW_MS, b"k%d" % at, b"v") for at in range(1000)])
        large.append_records(batch, NOW_MS)
    large.log.roll()
    node.advance(CLEANER_ROUND_MS)
    world.write(b"1", b"2", b"3", topic="small")
    node.advance(CLEANER_ROUND_MS)
    assert (large.log.batch_count, shown(small)) == (20, [0, 1, 2])
    world.advance(CLEANER_ROUND_MS)
    assert (large.log.batch_count, shown(small)) == (1, [1, 2])


def test_records_that_are_aged_expire_earlier_by_that():
    world = Calls()
    partition = world.node.topic(retention_ms=str(DAY_MS))
    world.write(b"a")
    world.advance(RETENTION_ROUND_MS)
    world.node.cluster.log_manager.age(DAY_MS // 2)
    world.advance(DAY_MS // 2 - 2 * RETENTION_ROUND_MS)
    assert shown(partition) == [0]
    world.advance(2 * RETENTION_ROUND_MS)
    assert shown(partition) == []


def test_the_cleaners_clock_is_ahead_only_of_what_is_appended_after_its_advance():
    world = Calls()
    partition = world.node.topic(cleanup_policy="compact")
    manager = world.node.cluster.log_manager
    domain = CompactionDomain(manager, manager.cleaner_times)
    world.write(b"a")
    domain.jump_to(domain.now_ms() + HOUR_MS)
    partition.log.roll()
    world.write(b"b")
    skew_of = manager.cleaner_skew(partition)
    assert [skew_of(partition.log, index) for index in (0, 1)] == [0, HOUR_MS]


def test_retention_of_a_compacted_log_is_not_early_by_an_advance_of_the_cleaners_clock():
    """Nor is the log visited again and again until then."""
    world = Calls()
    partition = world.node.topic(cleanup_policy="compact,delete", retention_ms=str(DAY_MS))
    manager = world.node.cluster.log_manager
    CompactionDomain(manager, manager.cleaner_times).jump_to(world.node.now_ms + HOUR_MS)
    world.write(b"a")
    world.advance(DAY_MS)
    assert (shown(partition), world.turns <= 3) == ([0], True)
    world.advance(2 * CLEANER_ROUND_MS)
    assert shown(partition) == []


def test_a_deleted_topic_leaves_no_ages_behind():
    world = Calls()
    world.node.topic(cleanup_policy="compact")
    world.write(b"a")
    manager = world.node.cluster.log_manager
    manager.age(1)
    manager.add_age_for_cleaner(1)
    assert len(manager._added_ages) == len(manager._cleaner_added_ages) == 1
    world.node.cluster.delete_topic("t")
    assert (manager._added_ages, manager._cleaner_added_ages) == ({}, {})
