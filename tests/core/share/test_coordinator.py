"""The share coordinator: its shards, their records, and its upkeep."""

from __future__ import annotations

from typing import Any

import pytest

from mockbroker.core.coordinator.shard import stored_records
from mockbroker.core.events import Event, ShareStartMoved
from mockbroker.core.metadata.topic import SHARE_GROUP_STATE_TOPIC
from mockbroker.core.replication.partition import Partition
from mockbroker.core.share.coordinator import COLD_INTERVAL, PRUNE_INTERVAL, ShareCoordinator
from mockbroker.core.share.operations import (
    DELETE,
    INITIALIZE,
    READ,
    READ_SUMMARY,
    WRITE,
    StateOperation,
)
from mockbroker.core.share.records import (
    SharePartitionKey,
    ShareSnapshot,
    ShareState,
    ShareUpdate,
    encode,
    parse,
)
from mockbroker.core.share.shard import ROWS_PER_TURN, ShareShard
from mockbroker.core.snapshot.capture import capture
from mockbroker.core.snapshot.restore import restore
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import Record, build_batch
from tests.support.requests import Node
from tests.support.share_states import (
    ACKNOWLEDGED,
    delete_request,
    initialize_request,
    read_request,
    state_partition,
    summary_request,
    write_request,
)
from tests.support.stored_clusters import loaded, whole
from tests.support.stored_clusters import revived as revived_cluster

E = ErrorCode
INTERVAL_MS = 300_000
PER_SNAPSHOT = "share.coordinator.snapshot.update.records.per.snapshot"


class ShareNode(Node):
    """Brokers with a topic "t"; requests go to the coordinator of g:t:0."""

    def __init__(
        self, brokers: int = 1, configs: dict[str, str] | None = None, partitions: int = 4
    ) -> None:
        one = {"share.coordinator.state.topic.num.partitions": "1"}
        super().__init__(racks=(None,) * brokers, configs=one | (configs or {}))
        self.topic_id = self.topic("t", partitions).topic.topic_id
        self.state: Partition = state_partition(self.cluster, self.topic_id)

    @property
    def coordinator(self) -> ShareCoordinator:
        return self.cluster.processes[self.state.leader_id].share_coordinator

    @property
    def shard(self) -> ShareShard:
        shard = self.coordinator.shard(self.state)
        assert isinstance(shard, ShareShard)
        return shard

    def send(self, operation: StateOperation[Any, Any], request: Any) -> list[Any]:
        """Send a request; the result has the response once it comes."""
        answers: list[Any] = []
        self.coordinator.handle(operation, request, answers.append)
        return answers

    def ask(self, operation: StateOperation[Any, Any], request: Any) -> Any:
        """The first result of a request that is answered at once."""
        (answer,) = self.send(operation, request)
        return answer.results[0].partitions[0]

    def initialize(self, *partitions: int, **how: Any) -> None:
        assert not self.ask(
            INITIALIZE, initialize_request(self.topic_id, *partitions, **how)
        ).error_code

    def write(self, partition: int = 0, times: int = 1, **how: Any) -> None:
        for number in range(times):
            batches = {partition: [(number, number, ACKNOWLEDGED, 1)]}
            assert not self.ask(WRITE, write_request(self.topic_id, batches, **how)).error_code

    def records(self) -> list[tuple[int, str, int]]:
        """Offset, kind and partition of each record of the log."""
        found = []
        for _, record in stored_records(self.state.log):
            parsed = parse(record)
            assert parsed is not None
            kind = "update" if isinstance(parsed, ShareUpdate) else "snapshot"
            if isinstance(parsed, ShareSnapshot) and parsed.state is None:
                kind = "tombstone"
            found.append((record.offset, kind, parsed.key.partition))
        return found


@pytest.fixture
def node() -> ShareNode:
    return ShareNode()


def test_results_come_in_the_order_of_javas_hash_maps(node: ShareNode) -> None:
    """Topics with computeIfAbsent, which puts a key before the others of its bucket."""
    ids = [bytes(15) + bytes([each]) for each in (0x11, 2, 1)]  # the first and the last collide
    request = read_request(ids[0], 17, 0, 1)
    for topic_id in ids[1:]:
        request.topics += read_request(topic_id, 0).topics
    (answer,) = node.send(READ, request)
    found = [
        (line.topic_id[-1], each.partition) for line in answer.results for each in line.partitions
    ]
    assert found == [(1, 0), (0x11, 0), (0x11, 17), (0x11, 1), (2, 0)]


def test_a_request_without_a_group_or_rows_has_an_empty_answer(node: ShareNode) -> None:
    no_group = read_request(node.topic_id, 0, group="")
    no_topics, no_rows = read_request(node.topic_id, 0), read_request(node.topic_id, 0)
    no_topics.topics = []
    no_rows.topics[0].partitions = []
    for request in (no_group, no_topics, no_rows):
        (answer,) = node.send(READ, request)
        assert answer.results == []


def test_only_an_initialization_may_have_topics_without_rows(node: ShareNode) -> None:
    initialization, read = initialize_request(node.topic_id, 1), read_request(node.topic_id, 1)
    no_rows = initialize_request(node.topic_id)
    no_rows.topics[0].partitions = []
    initialization.topics += no_rows.topics
    read.topics += read_request(node.topic_id).topics
    read.topics[1].partitions = []
    (answer,) = node.send(INITIALIZE, no_rows)
    assert answer.results == []
    assert node.ask(INITIALIZE, initialization).partition == 1
    (answer,) = node.send(READ, read)
    assert answer.results == []


def test_of_a_share_partition_named_twice_the_later_result_is_told(node: ShareNode) -> None:
    request = write_request(node.topic_id, {0: []}, state_epoch=4)
    request.topics += write_request(node.topic_id, {0: []}, state_epoch=3).topics
    node.initialize(state_epoch=4)
    (answer,) = node.send(WRITE, request)
    (line,) = answer.results[0].partitions
    assert line.error_code == E.FENCED_STATE_EPOCH


# ----------------------------------------------------------------------------------------- records


def test_after_so_many_updates_the_state_is_written_whole() -> None:
    node = ShareNode(configs={PER_SNAPSHOT: "2"})
    node.initialize()
    node.write(times=5)
    kinds = [kind for _, kind, _ in node.records()]
    assert kinds == ["snapshot", "update", "update", "snapshot", "update", "update"]


def test_without_updates_each_write_is_a_snapshot() -> None:
    node = ShareNode(configs={PER_SNAPSHOT: "0"})
    node.initialize()
    node.write(times=2)
    assert [kind for _, kind, _ in node.records()] == ["snapshot"] * 3
    assert next(iter(node.shard.entries.values())).state.snapshot_epoch == 2


def test_the_log_gives_the_same_entries_again(node: ShareNode) -> None:
    """What a new coordinator reads is what the old one had, the fencing epochs too."""
    node.initialize(0, 1, 2, start=0)
    node.ask(READ, read_request(node.topic_id, leader_epoch=5))
    node.write(times=9, leader_epoch=5, start=3, complete=2)
    node.initialize(0, state_epoch=3)
    node.write(1)
    node.ask(DELETE, delete_request(node.topic_id, 2))
    former = dict(node.shard.entries)
    assert len(former) == 2
    node.shard.unload()
    assert node.shard.entries == former


BROKEN = [Record(key=b"\x00\x00\x00\x09", value=b""), Record(key=None)]


def test_records_that_are_none_of_kafkas_are_counted(node: ShareNode) -> None:
    node.initialize()
    node.state.append_records(build_batch(BROKEN), node.now_ms)
    node.shard.unload()
    assert (len(node.shard.entries), node.shard.unreadable) == (1, 1)


def test_without_a_state_and_a_tombstone_no_record_is_deleted(node: ShareNode) -> None:
    node.state.append_records(build_batch(BROKEN), node.now_ms)
    assert not node.shard.entries
    node.advance(INTERVAL_MS)
    assert (node.state.log_start_offset, node.state.log_end_offset) == (0, 2)


def append_update(node: ShareNode) -> None:
    """The log of a share partition that has no snapshot any more, as after a DeleteRecords."""
    update = ShareUpdate(SharePartitionKey("g", node.topic_id, 0), ShareState(0, 0, 0))
    node.state.append_records(build_batch([encode(update, node.now_ms)]), node.now_ms)


def test_without_a_snapshot_updates_are_counted_and_no_state_epoch_is_known() -> None:
    node = ShareNode(configs={PER_SNAPSHOT: "3"})
    append_update(node)
    node.write(times=3, state_epoch=-(2**31))
    kinds = [kind for _, kind, _ in node.records()]
    assert kinds == ["update", "update", "update", "snapshot"]


def test_a_tombstone_that_was_not_written_makes_no_record_redundant(node: ShareNode) -> None:
    append_update(node)
    node.state.topic.configs.replace({"max.message.bytes": "60"})
    line = node.ask(DELETE, delete_request(node.topic_id))
    assert line.error_code == E.UNKNOWN_SERVER_ERROR
    node.advance(INTERVAL_MS)
    assert node.records() == [(0, "update", 0)]


@pytest.mark.parametrize(("start", "count"), [(-1, -1), (0, 0), (5, 0)])
def test_how_many_deliveries_are_complete_is_unknown_until_the_group_has_a_start(
    node: ShareNode, start: int, count: int
) -> None:
    node.initialize(start=start, state_epoch=3)
    line = node.ask(READ_SUMMARY, summary_request(node.topic_id))
    assert (line.start_offset, line.delivery_complete_count) == (start, count)
    assert (line.state_epoch, line.leader_epoch) == (3, 0)


def test_the_beginning_and_the_end_of_a_state_are_emitted_and_no_refusal(node: ShareNode) -> None:
    events: list[Event] = []
    node.cluster.runtime.on_event.append(events.append)
    node.initialize(2, start=7, state_epoch=4)
    node.write(2, state_epoch=4)
    node.ask(INITIALIZE, initialize_request(node.topic_id, 2, state_epoch=3))
    node.ask(DELETE, delete_request(node.topic_id, 2))
    node.ask(DELETE, delete_request(node.topic_id, 2))
    moves = [each for each in events if isinstance(each, ShareStartMoved)]
    assert [(e.change, e.former_offset, e.offset, e.state_epoch) for e in moves] == [
        ("initialized", -1, 7, 4),
        ("deleted", -1, -1, -1),
    ]
    assert {(e.group, e.topic, e.partition) for e in moves} == {("g", "t", 2)}


# ------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("leader_epoch", "state_epoch", "error"),
    [
        (5, 3, E.FENCED_LEADER_EPOCH),
        (5, 4, E.FENCED_LEADER_EPOCH),
        (6, 3, E.FENCED_STATE_EPOCH),
        (-1, 3, E.FENCED_STATE_EPOCH),
        (6, 4, E.NONE),
        (7, 5, E.NONE),
        (-1, -1, E.NONE),
    ],
)
def test_a_write_is_fenced_by_the_highest_leader_epoch_and_then_by_the_state_epoch(
    node: ShareNode, leader_epoch: int, state_epoch: int, error: ErrorCode
) -> None:
    node.initialize(state_epoch=3)
    node.ask(READ, read_request(node.topic_id, leader_epoch=6))
    node.initialize(state_epoch=4)
    write = write_request(
        node.topic_id, {0: []}, leader_epoch=leader_epoch, state_epoch=state_epoch
    )
    line = node.ask(WRITE, write)
    assert (line.error_code, line.error_message) == (error, error.message if error else None)


def test_a_read_is_fenced_by_a_higher_leader_epoch_and_a_summary_is_not(node: ShareNode) -> None:
    node.initialize()
    end = node.state.log_end_offset
    for leader_epoch, error, written in (
        (6, E.NONE, 1),
        (6, E.NONE, 1),
        (-1, E.NONE, 1),
        (5, E.FENCED_LEADER_EPOCH, 1),
        (7, E.NONE, 2),
    ):
        line = node.ask(READ, read_request(node.topic_id, leader_epoch=leader_epoch))
        assert line.error_code == error
        assert node.state.log_end_offset == end + written, "only a new epoch is written"
    line = node.ask(READ_SUMMARY, summary_request(node.topic_id, leader_epoch=5))
    assert (line.error_code, line.leader_epoch) == (E.NONE, 7)


def test_a_state_is_initialized_again_by_the_same_or_a_higher_state_epoch(node: ShareNode) -> None:
    node.initialize(state_epoch=4)
    for state_epoch, error in ((3, E.FENCED_STATE_EPOCH), (4, E.NONE), (5, E.NONE), (-1, E.NONE)):
        request = initialize_request(node.topic_id, state_epoch=state_epoch)
        assert node.ask(INITIALIZE, request).error_code == error
    (entry,) = node.shard.entries.values()
    assert entry.state.snapshot_epoch == 3, "that of the first one is 0"


@pytest.mark.parametrize(
    ("partition", "error"),
    [(3, E.NONE), (4, E.UNKNOWN_TOPIC_OR_PARTITION), (-1, E.INVALID_REQUEST)],
)
def test_a_state_is_that_of_a_partition_that_the_metadata_has(
    node: ShareNode, partition: int, error: ErrorCode
) -> None:
    line = node.ask(INITIALIZE, initialize_request(node.topic_id, partition))
    assert line.error_code == error


def test_another_broker_is_not_the_coordinator() -> None:
    node = ShareNode(brokers=2)
    other = next(n for n in node.cluster.processes if n != node.state.leader_id)
    answers: list[Any] = []
    node.cluster.processes[other].share_coordinator.handle(
        READ, read_request(node.topic_id), answers.append
    )
    line = answers[0].results[0].partitions[0]
    assert (line.error_code, line.error_message) == (
        E.NOT_COORDINATOR,
        "Unable to read share group state: This is not the correct coordinator.",
    )


def test_too_few_replicas_in_sync_time_the_write_out_although_it_is_written() -> None:
    """Coordinators write with acks=1; the record counts once enough replicas have it."""
    node = ShareNode(brokers=2)
    node.initialize()
    other = next(n for n in node.cluster.processes if n != node.state.leader_id)
    node.cluster.stop_broker(other, "unclean")
    written = node.send(WRITE, write_request(node.topic_id, {0: []}, complete=6))
    assert written == []
    node.advance(5_000)
    assert written[0].results[0].partitions[0].error_code == E.COORDINATOR_NOT_AVAILABLE
    node.cluster.start_broker(other)
    node.advance(1_000)
    line = node.ask(READ_SUMMARY, summary_request(node.topic_id))
    assert line.delivery_complete_count == 6


def test_a_record_that_is_too_large_is_as_if_never_written(node: ShareNode) -> None:
    """Kafka's exception has words of its own; the code is the same."""
    node.initialize()
    former, end = dict(node.shard.entries), node.state.log_end_offset
    node.state.topic.configs.replace({"max.message.bytes": "60"})
    for operation, request in (
        (INITIALIZE, initialize_request(node.topic_id, 1)),
        (INITIALIZE, initialize_request(node.topic_id, 0)),
        (WRITE, write_request(node.topic_id, {0: []})),
        (DELETE, delete_request(node.topic_id)),
    ):
        assert node.ask(operation, request).error_code == E.UNKNOWN_SERVER_ERROR
    assert (dict(node.shard.entries), node.state.log_end_offset) == (former, end)


def test_a_write_waits_for_the_followers_and_a_later_read_too() -> None:
    node = ShareNode(brokers=2)
    node.initialize()
    other = next(n for n in node.cluster.processes if n != node.state.leader_id)
    node.cluster.pause_broker(other)
    written = node.send(WRITE, write_request(node.topic_id, {0: []}, complete=1))
    read = node.send(READ_SUMMARY, summary_request(node.topic_id))
    refused = node.send(WRITE, write_request(node.topic_id, {9: []}))
    assert (written, read, refused) == ([], [], [])
    node.advance(5_000)
    (line,) = written[0].results[0].partitions
    assert (line.error_code, line.error_message) == (
        E.COORDINATOR_NOT_AVAILABLE,
        "Unable to write share group state: "
        "CoordinatorWriteEvent(name=write-share-group-state) timed out after 5000ms",
    )
    for answers in (read, refused):
        assert answers[0].results[0].partitions[0].error_code == E.COORDINATOR_NOT_AVAILABLE


def test_a_loading_coordinator_says_so() -> None:
    node = ShareNode(configs={"mockbroker.coordinator.load.ms": "100"})
    assert node.ask(READ_SUMMARY, summary_request(node.topic_id)).error_code == (
        E.COORDINATOR_LOAD_IN_PROGRESS
    )
    node.advance(100)
    assert node.ask(READ_SUMMARY, summary_request(node.topic_id)).error_code == E.NONE


# ------------------------------------------------------------------------------------------ upkeep


def test_records_below_the_oldest_last_snapshot_are_deleted() -> None:
    node = ShareNode(configs={PER_SNAPSHOT: "2", COLD_INTERVAL: str(10**9)})
    node.initialize(0)
    node.initialize(1)
    node.write(0, times=3)
    node.advance(INTERVAL_MS)
    assert node.state.log_start_offset == 1  # the snapshot of partition 1
    node.write(1, times=3)
    node.advance(INTERVAL_MS - 1)
    assert node.state.log_start_offset == 1
    node.advance(1)
    assert node.state.log_start_offset == 4
    entries = dict(node.shard.entries)
    node.shard.unload()
    states = {key: entry.state for key, entry in node.shard.entries.items()}
    assert states == {key: entry.state for key, entry in entries.items()}


def test_records_are_deleted_once_a_paused_broker_is_resumed() -> None:
    node = ShareNode(configs={PRUNE_INTERVAL: "1000"})
    node.initialize(0)
    node.initialize(0)
    node.cluster.pause_broker(1)
    node.advance(1_000)
    assert node.state.log_start_offset == 0
    node.cluster.resume_broker(1)
    node.advance(0)
    assert node.state.log_start_offset == 1


def test_after_the_last_tombstone_only_it_is_kept(node: ShareNode) -> None:
    node.initialize(0)
    node.write(times=3)
    node.ask(DELETE, delete_request(node.topic_id))
    assert node.shard.last_redundant_offset == 4
    node.advance(INTERVAL_MS)
    assert node.records() == [(4, "tombstone", 0)]


def test_cold_share_partitions_are_written_again_while_others_are_in_use() -> None:
    node = ShareNode(configs={PRUNE_INTERVAL: str(10**9)})
    node.initialize(0)
    node.advance(1)
    node.initialize(1)
    node.advance(INTERVAL_MS - 1)
    assert node.records() == [(0, "snapshot", 0), (1, "snapshot", 1), (2, "snapshot", 0)]
    node.advance(INTERVAL_MS)
    assert node.records()[3:] == [(3, "snapshot", 0), (4, "snapshot", 1)]
    node.advance(INTERVAL_MS)
    assert len(node.records()) == 5  # nobody uses any of them
    entry = next(iter(node.shard.entries.values()))
    assert entry.state.snapshot_epoch == 2
    assert entry.state.written_ms - entry.state.created_ms == 2 * INTERVAL_MS


MANY = 2 * ROWS_PER_TURN + 10  # more than the upkeep visits in a turn


def initialize_many(node: ShareNode) -> None:
    for partition in range(MANY):
        node.initialize(partition)


def turn(node: ShareNode) -> int:
    """A turn of the event loop; returns the number of records."""
    node.cluster.runtime.timers.run_due(node.now_ms)
    return len(node.records())


def test_very_many_cold_share_partitions_are_written_in_turns() -> None:
    node = ShareNode(configs={PRUNE_INTERVAL: str(10**9)}, partitions=MANY)
    initialize_many(node)
    node.now_ms += INTERVAL_MS
    written = [turn(node) - MANY for _ in range(5)]
    assert written == [ROWS_PER_TURN, 2 * ROWS_PER_TURN, MANY, MANY, MANY]


def test_states_of_a_deleted_topic_get_tombstones_in_turns() -> None:
    node = ShareNode(partitions=MANY)
    initialize_many(node)
    node.cluster.delete_topic("t")
    assert len(node.records()) == MANY + ROWS_PER_TURN
    for _ in range(3):
        turn(node)
    assert len(node.records()) == 2 * MANY
    assert not node.shard.entries


def test_a_coordinator_that_moves_ends_its_upkeep() -> None:
    node = ShareNode(configs={PRUNE_INTERVAL: str(10**9)}, partitions=MANY)
    initialize_many(node)
    node.now_ms += INTERVAL_MS
    assert turn(node) == MANY + ROWS_PER_TURN
    node.shard.unload()
    assert turn(node) == MANY + ROWS_PER_TURN


@pytest.mark.parametrize("interval", [PRUNE_INTERVAL, COLD_INTERVAL])
def test_below_share_version_1_there_is_no_upkeep_but_requests_are_served(interval: str) -> None:
    """The five requests do not look at the feature."""
    node = ShareNode(configs={interval: "1000"})
    node.cluster.features.set_levels({"share.version": 0})
    node.initialize(0)
    node.initialize(0)
    node.advance(10_000)
    assert (node.state.log_start_offset, node.state.log_end_offset) == (0, 2)
    node.cluster.features.set_levels({"share.version": 1})
    node.advance(1_000)
    assert (node.state.log_start_offset, node.state.log_end_offset) != (0, 2)


def test_states_of_a_deleted_topic_get_tombstones(node: ShareNode) -> None:
    node.initialize(0)
    node.initialize(3)
    other = node.topic("other").topic.topic_id
    assert not node.ask(INITIALIZE, initialize_request(other)).error_code
    node.cluster.delete_topic("t")
    assert [kind for _, kind, _ in node.records()] == ["snapshot"] * 3 + ["tombstone"] * 2
    assert [key.topic_id for key in node.shard.entries] == [other]
    line = node.ask(READ, read_request(node.topic_id))
    assert line.error_code == E.INVALID_REQUEST


def test_the_topic_has_kafkas_configs(node: ShareNode) -> None:
    overrides = node.cluster.topics[SHARE_GROUP_STATE_TOPIC].configs.overrides
    assert dict(overrides) == {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "min.insync.replicas": "2",
        "retention.ms": "-1",
        "segment.bytes": "104857600",
    }


# ----------------------------------------------------------------------------------- other places


def test_a_state_survives_its_coordinator_as_far_as_it_was_written() -> None:
    """An update that the new leader lacks was never answered."""
    node = ShareNode(brokers=3)
    node.initialize(0)
    node.write(complete=1)
    leader = node.state.leader_id
    for other in set(node.cluster.processes) - {leader}:
        node.cluster.pause_broker(other)
    lost = node.send(WRITE, write_request(node.topic_id, {0: []}, complete=2))
    for other in set(node.cluster.processes) - {leader}:
        node.cluster.resume_broker(other)
    node.cluster.stop_broker(leader, "unclean")
    assert node.state.leader_id not in (leader, -1)
    node.advance(0)
    line = node.ask(READ_SUMMARY, summary_request(node.topic_id))
    answered = bool(lost) and lost[0].results[0].partitions[0].error_code == E.NONE
    assert line.delivery_complete_count == (2 if answered else 1)


def test_a_snapshot_of_the_cluster_has_the_states(node: ShareNode) -> None:
    """They are records of a topic, and nothing else."""
    node.initialize(0, 1, start=3)
    node.write(complete=7)
    revived = ShareNode.__new__(ShareNode)
    revived.now_ms, revived.topic_id = node.now_ms, node.topic_id
    image = loaded(whole(capture(node.cluster)))
    revived.cluster = revived_cluster(image, now_ms=lambda: revived.now_ms)
    revived.state = state_partition(revived.cluster, node.topic_id)
    assert revived.shard.entries == node.shard.entries


def test_a_restored_snapshot_takes_later_states_back(node: ShareNode) -> None:
    node.initialize(0, start=3)
    former = dict(node.shard.entries)
    image = capture(node.cluster)
    node.write(complete=7)
    node.initialize(1)
    restore(node.cluster, image)
    node.state = state_partition(node.cluster, node.topic_id)
    assert node.shard.entries == former
