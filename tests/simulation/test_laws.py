"""Each law catches what breaks it, in a cluster that somebody has meddled with by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from mockbroker.core.events import LeaderChanged, RecordsRemoved
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.partition import Partition
from mockbroker.core.replication.replica import Replica
from mockbroker.simulation import LAWS, Plan, Settings, TopicSettings
from mockbroker.simulation import history as happened
from mockbroker.simulation.history import Commit, Found, Owned, Read, Sent, Transaction
from mockbroker.simulation.laws.base import TIME_GOES_ON
from mockbroker.simulation.laws.replication import OneLeaderAnEpoch
from mockbroker.simulation.observe import replicas
from mockbroker.simulation.script import Call
from mockbroker.simulation.world import AT_ONCE_MAX, StandsStill, World
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.fetch import FetchRequest
from mockbroker_protocol.records import (
    BatchHeader,
    ControlType,
    Record,
    build_batch,
    build_marker,
)


@pytest.fixture
def world() -> World:
    topic = TopicSettings(name="orders", replication_factor=3)
    world = World(Plan(seed=1, settings=Settings(topics=[topic])))
    world.look()
    return world


def partition_of(world: World) -> Partition:
    return world.cluster.topics["orders"].partitions[0]


def batch_of(value: bytes = b"v", **how: object) -> bytearray:
    return build_batch([Record(0, 1_700_000_000_000, b"k", value)], **how)  # type: ignore[arg-type]


def append(partition: Partition, batch: bytearray) -> None:
    """Put a batch into the leader's log behind everybody's back, and let it be replicated."""
    header = BatchHeader(batch)
    partition.log.append(
        memoryview(batch), header.last_offset_delta, header.max_timestamp, partition.leader_epoch
    )
    partition.advance_high_watermark()
    partition.notify()


def marker_of(producer_id: int, epoch: int, *, commit: bool) -> bytearray:
    return build_marker(
        ControlType.COMMIT if commit else ControlType.ABORT,
        producer_id=producer_id,
        producer_epoch=epoch,
        coordinator_epoch=0,
        timestamp=1_700_000_000_000,
    )


def sent_of(partition: Partition, batch: bytearray, offset: int) -> Sent:
    sent = Sent("p", "orders", partition.topic.topic_id, 0, [b"v"], -1, None, 0)
    sent.crc = int.from_bytes(batch[17:21], "big")
    sent.base_offset = offset
    return sent


def read_of(partition: Partition, offset: int, crc: int, *, committed: bool = False) -> Read:
    topic_id = partition.topic.topic_id
    return Read("r", "orders", topic_id, 0, offset, crc, 7, committed=committed, at_ms=0)


# -- what breaks each law --------------------------------------------------------------------------


def watermarks_out_of_order(world: World) -> None:
    partition = partition_of(world)
    partition.high_watermark = 5
    partition.notify()
    world.look()


def a_watermark_that_goes_back(world: World) -> None:
    partition = partition_of(world)
    append(partition, batch_of())
    world.look()
    partition.high_watermark = partition.last_stable_offset = 0
    partition.notify()
    world.look()


def two_leaders_of_an_epoch(world: World) -> None:
    partition = partition_of(world)
    (view,) = replicas(world.cluster, partition)
    other = next(node_id for node_id in partition.replicas if node_id != view.node_id)
    law = OneLeaderAnEpoch(world.laws)
    law.look(partition, [view, view._replace(node_id=other)])


def a_follower_in_sync_that_has_nothing(world: World) -> None:
    partition = partition_of(world)
    append(partition, batch_of())
    follower = next(n for n in partition.replicas if n != partition.leader_id)
    partition.own_replicas[follower] = Replica(follower, ReplicaLog(), 0)
    world.laws.conclude()


def a_follower_in_sync_with_other_records(world: World) -> None:
    partition = partition_of(world)
    follower = next(n for n in partition.replicas if n != partition.leader_id)
    log = partition.log.fork()
    append(partition, batch_of(b"one"))
    other = batch_of(b"two")
    log.append(memoryview(other), 0, 1_700_000_000_000, partition.leader_epoch)
    partition.own_replicas[follower] = Replica(follower, log, 1)
    world.laws.conclude()


def a_gap_in_the_offsets(world: World) -> None:
    partition = partition_of(world)
    append(partition, batch_of())
    partition.log.end_offset += 3
    append(partition, batch_of())
    world.laws.conclude()


def a_record_that_was_acknowledged_and_is_not_there(world: World) -> None:
    partition = partition_of(world)
    world.history.acked.append(sent_of(partition, batch_of(), 0))
    world.laws.conclude()


def a_gap_in_the_sequence_numbers(world: World) -> None:
    partition = partition_of(world)
    for sequence in (0, 2):
        append(partition, batch_of(producer_id=7, producer_epoch=0, base_sequence=sequence))
    world.laws.conclude()


def a_batch_written_twice(world: World) -> None:
    partition = partition_of(world)
    for _ in range(2):
        append(partition, batch_of(producer_id=7, producer_epoch=0, base_sequence=0))
    world.laws.conclude()


def an_old_epoch_after_a_new_one(world: World) -> None:
    partition = partition_of(world)
    for epoch in (1, 0):
        append(partition, batch_of(producer_id=7, producer_epoch=epoch, base_sequence=0))
    world.laws.conclude()


def a_stable_offset_beyond_an_open_transaction(world: World) -> None:
    partition = partition_of(world)
    batch = batch_of(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    append(partition, batch)
    world.look()


def transaction(world: World, state: str, *, commit: bool) -> Sent:
    """One that ended in the log, and that its producer takes for `state`."""
    partition = partition_of(world)
    batch = batch_of(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    sent = sent_of(partition, batch, partition.log.end_offset)
    append(partition, batch)
    append(partition, marker_of(7, 0, commit=commit))
    one = Transaction("t", "tx")
    one.state = state
    one.batches.append(sent)
    sent.transaction = one
    world.history.transactions.append(one)
    return sent


def an_aborted_transaction_that_is_committed(world: World) -> None:
    transaction(world, happened.ABORTED, commit=True)
    world.laws.conclude()


def a_committed_transaction_that_is_aborted(world: World) -> None:
    transaction(world, happened.COMMITTED, commit=False)
    world.laws.conclude()


def a_reader_that_is_given_what_was_aborted(world: World) -> None:
    sent = transaction(world, happened.ABORTED, commit=False)
    read = read_of(partition_of(world), sent.base_offset, sent.crc, committed=True)
    world.history.reads.append(read)
    world.laws.conclude()


def readers_that_see_different_logs(world: World) -> None:
    partition = partition_of(world)
    world.history.reads += [read_of(partition, 0, 1), read_of(partition, 0, 2)]
    world.laws.conclude()


def a_partition_that_two_members_own(world: World) -> None:
    for member in ("a", "b"):
        own = frozenset({("orders", 0)})
        world.history.owned.append(Owned("classic", "g", member, member, 3, own, 0))
    world.laws.conclude()


def a_member_that_goes_back_to_an_earlier_epoch(world: World) -> None:
    for epoch in (4, 3):
        world.history.owned.append(Owned("consumer", "g", "a", "a", epoch, frozenset(), 0))
    world.laws.conclude()


def a_committed_offset_that_is_forgotten(world: World) -> None:
    commit = Commit("g", "orders", 0, 12, 1)
    commit.acked = 2
    world.history.commits.append(commit)
    world.history.found.append(Found("g", "orders", 0, -1, 3, 4, 0))
    world.laws.conclude()


def a_request_without_an_answer(world: World) -> None:
    call = Call(1, ApiKey.FETCH, 12, FetchRequest(max_wait_ms=100), 5_000)
    world.laws.silent("r", call, world.laws.start_ms)


def a_broker_that_runs_and_stays_fenced(world: World) -> None:
    world.cluster.brokers[2].fenced = True
    world.laws.conclude()


def a_controller_that_is_fenced(world: World) -> None:
    world.cluster.brokers[world.cluster.controller_id].fenced = True
    partition_of(world).notify()
    world.look()


def an_unclean_election_that_nobody_allows(world: World) -> None:
    config = Settings(kafka_version="3.9", topics=world.plan.settings.topics)
    older = World(Plan(seed=1, settings=config))
    older.cluster.tell(LeaderChanged(0, "orders", 0, 2, 1, 1, (2,), unclean=True, reason="fenced"))
    world.laws.violations += older.laws.violations


def an_answer_that_nobody_asked_for(world: World) -> None:
    world.history.misfits.append("reader was told of orders-0, and did not ask")
    world.laws.conclude()


BREAKERS: tuple[tuple[str, Callable[[World], None]], ...] = (
    ("watermarks are in order", watermarks_out_of_order),
    ("the high watermark rises", a_watermark_that_goes_back),
    ("one leader an epoch", two_leaders_of_an_epoch),
    ("replicas agree", a_follower_in_sync_that_has_nothing),
    ("replicas agree", a_follower_in_sync_with_other_records),
    ("offsets are dense", a_gap_in_the_offsets),
    ("what was acknowledged is kept", a_record_that_was_acknowledged_and_is_not_there),
    ("sequence numbers are whole", a_gap_in_the_sequence_numbers),
    ("sequence numbers are whole", a_batch_written_twice),
    ("old producer epochs are fenced", an_old_epoch_after_a_new_one),
    ("the last stable offset follows", a_stable_offset_beyond_an_open_transaction),
    ("transactions are whole", an_aborted_transaction_that_is_committed),
    ("transactions are whole", a_committed_transaction_that_is_aborted),
    ("transactions are whole", a_reader_that_is_given_what_was_aborted),
    ("readers see one log", readers_that_see_different_logs),
    ("partitions are owned once", a_partition_that_two_members_own),
    ("partitions are owned once", a_member_that_goes_back_to_an_earlier_epoch),
    ("committed offsets are kept", a_committed_offset_that_is_forgotten),
    ("requests are answered in time", a_request_without_an_answer),
    ("the controller is alive", a_controller_that_is_fenced),
    ("unclean elections are allowed", an_unclean_election_that_nobody_allows),
    ("fetches are answered as asked", an_answer_that_nobody_asked_for),
    ("everything comes to rest", a_broker_that_runs_and_stays_fenced),
)


@pytest.mark.parametrize(
    ("law", "breaks"), BREAKERS, ids=[breaks.__name__ for _, breaks in BREAKERS]
)
def test_a_law_catches(law: str, breaks: Callable[[World], None], world: World) -> None:
    breaks(world)
    assert law in {violation.law for violation in world.laws.violations}


def test_every_law_is_broken_by_one_of_these_tests() -> None:
    assert {law.name for law in LAWS} == {law for law, _ in BREAKERS}


def test_no_law_is_broken_where_nothing_happens(world: World) -> None:
    world.laws.conclude()
    assert world.laws.violations == []


# -- what laws forgive -----------------------------------------------------------------------------


def test_an_unclean_election_may_take_what_was_acknowledged(world: World) -> None:
    partition = partition_of(world)
    batch = batch_of()
    append(partition, batch)
    world.history.acked.append(sent_of(partition, batch, 0))
    follower = next(n for n in partition.replicas if n != partition.leader_id)
    partition.own_replicas[follower] = Replica(follower, ReplicaLog(), 0)
    partition.isr = [node_id for node_id in partition.isr if node_id != follower]
    world.cluster.elect_unclean("orders", 0, follower)
    world.look()
    world.laws.conclude()
    assert "what was acknowledged is kept" not in {v.law for v in world.laws.violations}


def test_a_deletion_may_take_what_was_acknowledged(world: World) -> None:
    partition = partition_of(world)
    batch = batch_of()
    append(partition, batch)
    world.history.acked.append(sent_of(partition, batch, 0))
    partition.delete_records(-1)
    world.laws.conclude()
    assert world.laws.violations == []


def test_a_commit_that_may_still_be_carried_out_explains_an_earlier_offset(world: World) -> None:
    late, known = Commit("g", "orders", 0, 3, 1), Commit("g", "orders", 0, 12, 2)
    late.acked, late.doubtful, known.acked = 2, True, 3
    world.history.commits += [late, known]
    world.history.found.append(Found("g", "orders", 0, 3, 4, 5, 0))
    world.laws.conclude()
    assert world.laws.violations == []


def test_what_goes_round_without_time_passing_is_stopped(world: World) -> None:
    event = RecordsRemoved(0, "orders", "", 0, 0, 0, "retention", "")
    world.clock.now_ms += 1
    for _ in range(AT_ONCE_MAX):
        world.cluster.tell(event)
    with pytest.raises(StandsStill):
        world.cluster.tell(event)


def test_time_that_stands_still_is_a_broken_law(monkeypatch: pytest.MonkeyPatch) -> None:
    from mockbroker.simulation import generate, run

    def stands_still(self: World) -> None:
        raise StandsStill("nothing moves")

    monkeypatch.setattr(World, "calm", stands_still)
    assert run(generate(1)).laws == [TIME_GOES_ON]


def test_a_leader_that_was_deposed_uncleanly_may_lose_what_it_acknowledges(world: World) -> None:
    partition = partition_of(world)
    former = partition.leader_id
    batch = batch_of()
    append(partition, batch)
    follower = next(n for n in partition.replicas if n != former)
    partition.own_replicas[follower] = Replica(follower, ReplicaLog(), 0)
    partition.isr = [node_id for node_id in partition.isr if node_id != follower]
    world.cluster.elect_unclean("orders", 0, follower)
    world.look()
    sent = sent_of(partition, batch, 0)
    sent.node_id, sent.acked_ms = former, world.clock.now_ms + 1
    world.history.acked.append(sent)
    world.laws.conclude()
    assert sent.voided == "unclean election"
