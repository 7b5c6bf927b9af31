"""What leaves a leader's log is told, with the reason and with what led to it."""

from __future__ import annotations

from array import array

import pytest

from mockbroker.core.actions import find_action, parse_action
from mockbroker.core.cluster import Cluster
from mockbroker.core.events import (
    MarkerWritten,
    ProducersExpired,
    RecordsRemoved,
    TopicsChanged,
    WatermarkMoved,
)
from mockbroker.core.ids import uuid_text
from mockbroker.core.journal.reader import ranges_of
from mockbroker.core.log.emitters import (
    PRODUCERS_PER_EVENT_MAX,
    RANGES_PER_EVENT_MAX,
    emit_compacted,
    emit_divergence,
    emit_expired,
)
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.txn.markers import Marker, write_markers
from mockbroker_protocol.records import BatchHeader, Record, build_batch


class Watched:
    """A cluster with a partition of three replicas, and what it told."""

    def __init__(self, **configs: str) -> None:
        self.cluster = Cluster(seed=1)
        self.told: list[object] = []
        self.cluster.runtime.on_event.append(self.told.append)
        topic = self.cluster.create_topic(
            "t",
            assignments={0: [1, 2, 3]},
            configs={k.replace("_", "."): v for k, v in configs.items()},
        )
        self.topic_id = uuid_text(topic.topic_id)
        (self.partition,) = topic.partitions

    def append(self, *keys: bytes | None, value: bytes | None = b"v", producer: int = -1) -> None:
        batch = build_batch(
            [Record(at, 0, key, value) for at, key in enumerate(keys)],
            producer_id=producer,
            producer_epoch=0 if producer >= 0 else -1,
            base_sequence=0 if producer >= 0 else -1,
            transactional=producer >= 0,
        )
        view = memoryview(batch)
        assert self.partition.append(view, BatchHeader(view), -1, 0).error == 0

    def of(self, kind: type) -> list[object]:
        return [each for each in self.told if isinstance(each, kind)]

    def removed(self) -> list[tuple[int, int, str, str]]:
        found = [each for each in self.told if isinstance(each, RecordsRemoved)]
        assert {(each.topic, each.topic_id, each.partition) for each in found} <= {
            ("t", self.topic_id, 0)
        }
        return [(e.first_offset, e.last_offset, e.reason, e.cause) for e in found]


def act(cluster: Cluster, name: str, cause: str | None = None, **arguments: object) -> None:
    cluster.perform(find_action(name), parse_action(name, arguments), cause)


def test_records_that_are_deleted_are_told_with_what_led_to_it():
    watched = Watched()
    watched.append(None, None, None, None)
    assert watched.partition.delete_records(1) == (0, 1)
    watched.partition.delete_records(1)  # there is nothing more to go
    act(watched.cluster, "delete_records", topic="t", partition=0, before_offset=3)
    act(watched.cluster, "delete_records", "my-rule", topic="t", partition=0)
    assert watched.removed() == [
        (0, 0, "delete_records", ""),
        (1, 2, "delete_records", "delete_records"),
        (3, 3, "delete_records", "my-rule"),
    ]
    assert watched.cluster.runtime.cause == ""


def test_each_offset_that_compaction_removed_is_told_once_however_many_there_are():
    watched = Watched()
    gaps = 2 * RANGES_PER_EVENT_MAX + 1
    ranges = array("q", (number for at in range(gaps) for number in (3 * at, 3 * at + 1)))
    emit_compacted(watched.cluster.runtime, watched.partition, ranges)
    assert [(first, last) for first, last, _, _ in watched.removed()] == [
        (0, 3 * RANGES_PER_EVENT_MAX - 2),
        (3 * RANGES_PER_EVENT_MAX, 6 * RANGES_PER_EVENT_MAX - 2),
        (6 * RANGES_PER_EVENT_MAX, 6 * RANGES_PER_EVENT_MAX + 1),
    ]
    told = [each.ranges for each in watched.told if isinstance(each, RecordsRemoved)]
    assert b"".join(told) == ranges.tobytes()


def test_what_retention_removes_is_told_and_not_what_was_gone_before():
    watched = Watched(internal_segment_bytes="1000", retention_bytes="0")
    for _ in range(40):
        watched.append(b"k", value=b"x" * 100)
    watched.partition.delete_records(2)
    watched.cluster.run_retention()
    end = watched.partition.log_start_offset - 1
    assert watched.removed() == [
        (0, 1, "delete_records", ""),
        (2, end, "retention", "run_retention"),
    ]
    assert end > 2


def test_what_compaction_removes_is_told_as_ranges():
    watched = Watched(cleanup_policy="compact")
    watched.append(b"a", b"b", b"a", b"c")
    watched.append(b"a", b"a")
    watched.append(b"b", b"d")
    watched.cluster.run_compaction("t").run()
    (told,) = watched.of(RecordsRemoved)
    assert isinstance(told, RecordsRemoved)
    # Left are c (3), the last a (5), b (6) and d (7).
    assert (told.first_offset, told.last_offset, told.reason) == (0, 4, "compaction")
    assert ranges_of(told.ranges) == [(0, 2), (4, 4)]


def test_what_compaction_removes_from_a_followers_log_alone_is_not_told():
    watched = Watched(cleanup_policy="compact")
    watched.cluster.lag_follower("t", 0, node=3)
    watched.append(b"a", b"a")
    own = watched.partition.own_replicas[3]
    own.log.append(memoryview(build_batch([Record(at, 0, b"a", b"v") for at in (0, 1)])), 1, 0, 0)
    own.high_watermark = 2
    watched.partition.followers[3].fetched_offset = 2
    watched.partition.advance_high_watermark()
    results = watched.cluster.run_compaction("t").run()
    assert [(each.node_id, each.records_removed) for each in results] == [(1, 1), (3, 1)]
    assert watched.removed() == [(0, 0, "compaction", "")]


def test_what_retention_removes_from_a_followers_log_alone_is_not_told():
    watched = Watched(internal_segment_bytes="100")
    watched.append(None, None)
    watched.append(None, None)
    watched.cluster.lag_follower("t", 0, node=3)
    watched.append(None)
    own = watched.partition.own_replicas[3]
    own.log.move_start(2)
    (result,) = watched.cluster.run_retention()
    assert (result.node_id, result.segments_removed) == (3, 1)
    assert watched.removed() == []


def test_a_deleted_topic_tells_its_records_and_itself():
    watched = Watched()
    watched.append(None, None)
    watched.cluster.delete_topic("t")
    assert watched.removed() == [(0, 1, "topic_deleted", "")]
    topics = watched.of(TopicsChanged)
    assert [[t.topic_id for t in each.created] for each in topics] == [[watched.topic_id], []]
    assert [[t.topic_id for t in each.deleted] for each in topics] == [[], [watched.topic_id]]


def test_a_deleted_topic_whose_records_had_gone_before_tells_its_last_offset():
    watched = Watched()
    watched.append(None, None, None)
    watched.partition.delete_records(3)
    watched.cluster.delete_topic("t")
    assert watched.removed() == [(0, 2, "delete_records", ""), (2, 2, "topic_deleted", "")]


def test_a_deleted_topic_of_one_record_tells_it():
    watched = Watched()
    watched.append(None)
    watched.cluster.delete_topic("t")
    assert watched.removed() == [(0, 0, "topic_deleted", "")]


def test_a_topic_that_is_made_anew_has_another_id():
    watched = Watched()
    act(watched.cluster, "recreate_topic", topic="t")
    ids = [t.topic_id for each in watched.of(TopicsChanged) for t in each.created]
    assert len(set(ids)) == 2
    assert watched.removed() == []


@pytest.mark.parametrize("by", ["action", "method"])
@pytest.mark.parametrize("in_sync", [True, False])
def test_what_a_new_leader_has_not_is_told_with_the_action(by, in_sync):
    watched = Watched()
    watched.append(None, None)
    if in_sync:
        watched.cluster.lag_follower("t", 0, node=3)
    else:
        watched.cluster.shrink_isr("t", 0, nodes=[3])
    watched.append(None, None, None)
    if by == "action":
        act(watched.cluster, "elect_unclean", topic="t", partition=0, node=3)
    else:
        watched.cluster.elect_unclean("t", 0, 3)
    reason = "truncation" if in_sync else "unclean_election"
    assert watched.removed() == [(2, 4, reason, "elect_unclean")]


@pytest.mark.parametrize("in_sync", [True, False])
def test_what_a_new_leader_has_not_is_told_when_it_hears_of_its_leadership(in_sync):
    watched = Watched()
    cluster = watched.cluster
    cluster.move_leader("t", 0, 2)
    watched.append(None, None)
    cluster.lag_follower("t", 0, node=3)
    if not in_sync:
        cluster.shrink_isr("t", 0, nodes=[3])
    watched.append(None)
    cluster.cut_network(3, to=cluster.controller_id, fence_after_ms=35_000)
    if in_sync:
        cluster.move_leader("t", 0, 3)
    else:
        cluster.elect_unclean("t", 0, 3)
    assert watched.removed() == []
    act(cluster, "heal_network")
    reason = "truncation" if in_sync else "unclean_election"
    assert watched.removed() == [(2, 2, reason, "heal_network")]


def write_epochs(log: ReplicaLog, epochs: dict[int, int]) -> None:
    """Append so many records of each epoch."""
    for epoch, count in epochs.items():
        for _ in range(count):
            log.append(memoryview(build_batch([Record(0, 0, b"k", b"v")])), 0, 0, epoch)


@pytest.mark.parametrize(
    ("former", "present", "first"),
    [
        pytest.param({0: 4}, {0: 2, 1: 3}, 2, id="the present log is in a later epoch"),
        pytest.param({0: 2, 1: 3}, {0: 4, 2: 3}, 2, id="the former log was in another epoch"),
        pytest.param({0: 2, 1: 1}, {0: 5}, 2, id="the former log was shorter, in a later epoch"),
        pytest.param({0: 2}, {}, 0, id="the present log is empty"),
        pytest.param({1: 3}, {0: 2}, 0, id="the logs have no epoch in common"),
        pytest.param({0: 1, 1: 2}, {0: 1}, 1, id="the present log knows nothing of the epoch"),
        pytest.param({0: 4}, {0: 3}, 3, id="the epochs are the same"),
    ],
)
def test_what_is_lost_begins_where_the_epochs_of_the_two_logs_part(former, present, first):
    watched = Watched()
    log = ReplicaLog()
    write_epochs(log, former)
    watched.partition.log.truncate_fully(0)  # also without the epoch of its first leader
    write_epochs(watched.partition.log, present)
    emit_divergence(watched.cluster.runtime, watched.partition, log, "truncation")
    assert watched.removed() == [(first, log.end_offset - 1, "truncation", "")]


def test_a_leader_that_has_all_loses_nothing():
    watched = Watched()
    watched.append(None, None)
    watched.cluster.lag_follower("t", 0, node=3)
    watched.cluster.move_leader("t", 0, 2)
    watched.cluster.move_leader("t", 0, 1)
    assert watched.removed() == []


def test_markers_are_told():
    watched = Watched()
    watched.append(None, producer=7)
    errors: list[object] = []
    write_markers(
        watched.cluster.brokers[watched.partition.leader_id],
        Marker(7, 0, committed=False, coordinator_epoch=0, version=0),
        (("t", 0),),
        errors.append,
    )
    assert errors == [{("t", 0): 0}]
    (told,) = watched.of(MarkerWritten)
    assert isinstance(told, MarkerWritten)
    assert (told.offset, told.producer_id, told.producer_epoch, told.committed) == (1, 7, 0, False)


def test_a_watermark_that_is_put_somewhere_is_told_with_the_action():
    watched = Watched()
    watched.append(None, None, None)
    watched.cluster.set_high_watermark("t", 0, 1)
    (told,) = watched.of(WatermarkMoved)
    assert isinstance(told, WatermarkMoved)
    assert (told.former, told.high_watermark, told.cause) == (3, 1, "set_high_watermark")


def test_many_expired_producers_are_told_in_several_events():
    watched = Watched()
    ids = range(PRODUCERS_PER_EVENT_MAX + 1)
    emit_expired(watched.cluster.runtime, watched.partition, ids)
    told = [each for each in watched.told if isinstance(each, ProducersExpired)]
    assert {(each.topic, each.topic_id, each.partition) for each in told} == {
        ("t", watched.topic_id, 0)
    }
    assert [len(each.producer_ids) for each in told] == [PRODUCERS_PER_EVENT_MAX, 1]
    assert [each for event in told for each in event.producer_ids] == list(ids)
