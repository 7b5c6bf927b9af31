"""The losses that laws of transactions and producers excuse, and those that they report."""

from __future__ import annotations

from itertools import pairwise

import pytest

from mockbroker.core.events import (
    LeaderChanged,
    MarkerWritten,
    RecordsRemoved,
    TransactionMoved,
    WatermarkMoved,
)
from mockbroker.core.groups.offsets import OffsetAndMetadata
from mockbroker.core.ids import uuid_text
from mockbroker.core.snapshot.capture import capture
from mockbroker.core.snapshot.restore import restore
from mockbroker.core.txn.events import TransactionImage
from mockbroker.core.txn.machine import TransactionMetadata
from mockbroker.core.txn.shard import TransactionShard
from mockbroker.core.txn.states import TransactionState
from mockbroker.simulation import ClientSettings, Plan, Settings, TopicSettings, parse_plan, run
from mockbroker.simulation.clients import transactional
from mockbroker.simulation.clients.base import CallSequence
from mockbroker.simulation.clients.transactional import TransactionalProducer
from mockbroker.simulation.history import AnsweredAborts, Disordered, Unfenced
from mockbroker.simulation.laws.records import FencedStayFenced
from mockbroker.simulation.plan import Step
from mockbroker.simulation.world import World
from tests.simulation.meddling import (
    append,
    batch_of,
    coordinated,
    marker_of,
    partition_of,
    refused_batch,
    sent_of,
)


def decided(world: World, *, epoch: int, version: int) -> None:
    """A transaction in orders whose end is decided under an epoch, and whose marker is missing."""
    world.cluster.create_topic("__transaction_state", 1, 3)
    leader_id = world.cluster.topics["__transaction_state"].partitions[0].leader_id
    shard = world.cluster.processes[leader_id].transactions.shard_of("tx")
    assert isinstance(shard, TransactionShard)
    image = TransactionImage(
        state=TransactionState.PREPARE_COMMIT,
        producer_id=7,
        epoch=epoch,
        timeout_ms=1_000,
        partitions=(("orders", 0),),
        version=version,
    )
    shard.transactions["tx"] = TransactionMetadata("tx", image)
    world.look()


def written_under(world: World, epoch: int) -> None:
    """A batch of producer 7 in orders that opens a transaction."""
    batch = batch_of(producer_id=7, producer_epoch=epoch, base_sequence=0, transactional=True)
    append(partition_of(world), batch)
    partition_of(world).log.producers.replay(batch)


@pytest.mark.parametrize("is_cut", [True, False])
def test_a_transaction_stays_open_in_a_partition_that_its_coordinator_does_not_know(
    world: World, is_cut: bool
) -> None:
    """The topic is created while its broker is cut from the controller."""
    cluster = world.cluster
    controller_id = cluster.controller.node_id
    node_id = next(each for each in cluster.brokers if each != controller_id)
    if is_cut:
        links = {"nodes": [node_id], "to": [controller_id]}
        world.perform(0, Step(at_ms=0, do="cut_network", arguments=links))
    cluster.create_topic("late", 1, 1)
    late = cluster.topics["late"].partitions[0]
    batch = batch_of(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    append(late, batch)
    late.log.producers.replay(batch)
    law = "transactions advance when records are replicated"

    def is_broken() -> bool:
        states = ("Ongoing", "PrepareCommit", "CompleteCommit")
        for former, state in pairwise(states):
            cluster.runtime.emit(TransactionMoved(0, node_id, "tx", former, state, 7, 0, 60_000, 0))
        return law in {each.law for each in world.laws.violations}

    assert is_broken() is not is_cut
    marker = MarkerWritten(0, "late", uuid_text(late.topic.topic_id), 0, 0, 1, 7, 0, True)
    world.perform(1, Step(at_ms=0, do="heal_network"))
    cluster.runtime.emit(marker)
    assert is_broken(), "the next transaction has no excuse"


@pytest.mark.parametrize(
    ("written", "version", "stays"),
    [(4, 0, True), (3, 0, False), (3, 2, True), (2, 2, False), (4, 2, True)],
    ids=[
        "newer-epoch",
        "the-same-epoch-before-version-2",
        "the-same-epoch",
        "an-older-epoch",
        "a-newer-epoch-of-version-2",
    ],
)
def test_an_end_that_partitions_refuse_stays_if_the_coordinator_went_back(
    world: World, written: int, version: int, stays: bool
) -> None:
    """Its marker has an epoch that is over in the partition, and leaders refuse it for good."""
    decided(world, epoch=3, version=version)
    written_under(world, written)
    world.laws.lossy.add(partition_of(world).key)
    sentence = "transaction tx is PrepareCommit"
    assert sentence in world.unsettled()
    world.laws.transactions_lost = True
    assert (sentence not in world.unsettled()) is stays


def test_an_epoch_that_is_given_twice_excuses_what_was_written_under_it(world: World) -> None:
    """A coordinator that has lost its log gives epochs again: the first batch of the second
    producer is taken for the first producer's.
    """
    world.laws.transactions_lost = True
    history, partition = world.history, partition_of(world)
    history.epoch_given("tx", 7, 2)
    batch = batch_of(b"first", producer_id=7, producer_epoch=2, base_sequence=0)
    append(partition, batch)
    first = sent_of(partition, batch, 0)
    second = sent_of(partition, batch_of(b"second", producer_id=7, producer_epoch=2), 0)
    for sent in (first, second):
        sent.producer_id, sent.epoch = 7, 2
    history.batch_sent(first)
    assert not first.voided
    history.epoch_given("tx", 7, 2)
    history.batch_sent(second)
    history.acked += [first, second]
    history.disordered.append(Disordered(second, 1, 1, 2))
    world.laws.conclude()
    assert world.laws.violations == []


def test_an_epoch_may_be_given_again_after_a_restored_snapshot(world: World) -> None:
    """Whoever had it before goes on with it."""
    history, partition = world.history, partition_of(world)
    history.epoch_given("tx", 7, 2)
    FencedStayFenced(world.laws).forget()
    history.epoch_given("tx", 7, 2)
    sent = sent_of(partition, batch_of(), 0)
    sent.producer_id, sent.epoch = 7, 2
    history.batch_sent(sent)
    assert sent.voided
    assert not history.unfenced


@pytest.mark.parametrize(
    ("what", "epoch", "without_bump", "excused"),
    [
        ("END_TXN", 2, True, True),
        ("END_TXN", 2, False, False),
        ("END_TXN", 1, True, False),
        ("TXN_OFFSET_COMMIT", 2, True, False),
    ],
)
def test_an_end_of_a_former_epoch_passes_for_a_retry_after_an_end_without_a_bump(
    world: World, what: str, epoch: int, *, without_bump: bool, excused: bool
) -> None:
    history = world.history
    history.epoch_given("tx", 7, 2)
    history.epoch_given("tx", 7, 3)
    if without_bump:
        history.ended_without_bump.add((7, 3))
    history.accepted(what, "tx", 7, epoch, history.turn())
    assert (history.unfenced == []) is excused
    history.unfenced.clear()
    history.epoch_given("tx", 7, 3)
    assert (history.unfenced == []) is without_bump


def test_an_epoch_that_is_given_to_another_id_excuses_nothing(world: World) -> None:
    history, partition = world.history, partition_of(world)
    history.epoch_given("tx", 7, 2)
    history.epoch_given("tx", 8, 2)
    history.epoch_given("tx", 7, 3)
    sent = sent_of(partition, batch_of(), 0)
    sent.producer_id, sent.epoch = 7, 2
    history.batch_sent(sent)
    assert not sent.voided
    assert not history.unfenced


def batch_in_transaction(sequence: int) -> bytearray:
    return batch_of(producer_id=7, producer_epoch=0, base_sequence=sequence, transactional=True)


def test_a_lost_transaction_log_leaves_decided_ends_without_markers(world: World) -> None:
    """Leaders refuse the marker of an epoch that is over, and nobody sends it again."""
    world.laws.transactions_lost = True
    decided(world, epoch=3, version=0)
    world.cluster.runtime.emit(
        TransactionMoved(0, 1, "tx", "Ongoing", "PrepareCommit", 7, 3, 60_000, 0)
    )
    partition_of(world).notify()
    world.look()
    assert world.laws.violations == []


def test_a_verification_after_the_marker_may_begin(world: World) -> None:
    partition = partition_of(world)
    for epoch in (0, 1):
        append(partition, marker_of(7, epoch, commit=True))
        partition.log.producers.replay(marker_of(7, epoch, commit=True))
    topic_id = uuid_text(partition.topic.topic_id)
    partition.log.producers.start_verification(7, 1, 0, 0, bumps=False)
    world.cluster.runtime.emit(MarkerWritten(0, "orders", topic_id, 0, 0, 0, 7, 0, True))
    assert world.laws.violations == []


def test_a_former_leader_may_verify_what_it_has_at_the_offset_of_the_marker(world: World) -> None:
    partition = partition_of(world)
    append(partition, batch_in_transaction(0))
    partition.log.producers.replay(batch_in_transaction(0))
    partition.log.producers.start_verification(7, 0, 1, 0, bumps=False)
    offset = partition.log.end_offset - 1
    topic_id = uuid_text(partition.topic.topic_id)
    world.cluster.runtime.emit(MarkerWritten(0, "orders", topic_id, 0, 0, offset, 7, 0, True))
    assert world.laws.violations == []


def answered_aborts(world: World, begin: int, *aborted: tuple[int, int]) -> AnsweredAborts:
    topic_id = partition_of(world).topic.topic_id
    end = partition_of(world).log.end_offset
    return AnsweredAborts("r", "orders", topic_id, 0, begin, end, frozenset(aborted))


@pytest.mark.parametrize(
    ("told", "holds"),
    [((7, 0), True), ((7, 1), True), ((7, 3), True), ((7, 2), False), ((8, 0), False)],
)
def test_an_aborted_transaction_may_begin_with_what_was_deleted(
    world: World, told: tuple[int, int], holds: bool
) -> None:
    """The log has its batch at 3, and its broker knows where it began."""
    partition = partition_of(world)
    append(partition, batch_in_transaction(0))
    for _ in range(2):
        append(partition, batch_of())
    append(partition, batch_in_transaction(1))
    append(partition, marker_of(7, 0, commit=False))
    partition.delete_records(2)
    world.history.aborts.append(answered_aborts(world, 2, told))
    world.laws.conclude()
    broken = {v.law for v in world.laws.violations}
    assert ("aborted transactions are listed" not in broken) is holds


def test_an_aborted_transaction_after_another_begins_where_the_log_says(world: World) -> None:
    partition = partition_of(world)
    for sequence in range(2):
        append(partition, batch_in_transaction(sequence))
        append(partition, marker_of(7, 0, commit=False))
    partition.delete_records(1)
    world.history.aborts.append(answered_aborts(world, 1, (7, 0)))
    world.laws.conclude()
    assert "aborted transactions are listed" in {v.law for v in world.laws.violations}


def test_a_marker_is_replicated_that_a_former_leader_has_replicated(world: World) -> None:
    """The next leader knows of a lower high watermark, and may lead before anybody looks."""
    partition = partition_of(world)
    batch = batch_of(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    marker = marker_of(7, 0, commit=True)
    for each in (batch, marker):
        partition.log.append(memoryview(each), 0, 1_700_000_000_000, partition.leader_epoch)
        partition.log.producers.replay(each)
    passed = WatermarkMoved(0, "orders", 0, partition.leader_id, 0, 2, 2)
    complete = TransactionMoved(0, 1, "tx", "PrepareCommit", "CompleteCommit", 7, 0, 60_000, 0)
    world.cluster.runtime.emit(passed)
    world.cluster.runtime.emit(complete)
    assert world.laws.violations == []


@pytest.mark.parametrize("torn", [False, True], ids=["the-whole-log", "a-lost-tail"])
def test_a_partition_that_the_coordinator_has_lost_gets_no_marker(
    world: World, *, torn: bool
) -> None:
    """An unclean election of `__transaction_state` may lose the record with a partition of the
    transaction. The next coordinator ends the transaction without it, as Kafka's does
    (TransactionStateManager.loadTransactionMetadata, TransactionMarkerChannelManager), and the
    transaction stays open in that partition.
    """
    world.cluster.create_topic("__transaction_state", 1, 3)
    written_under(world, 0)
    if torn:
        world.laws.mark_lossy(world.cluster.topics["__transaction_state"].partitions[0])
    complete = TransactionMoved(0, 1, "tx", "PrepareCommit", "CompleteCommit", 7, 0, 60_000, 0)
    world.cluster.runtime.emit(complete)
    broken = {violation.law for violation in world.laws.violations}
    assert ("transactions advance when records are replicated" not in broken) is torn


def test_a_marker_that_no_leader_has_replicated_is_missing(world: World) -> None:
    partition = partition_of(world)
    batch = batch_of(producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    marker = marker_of(7, 0, commit=True)
    for each in (batch, marker):
        partition.log.append(memoryview(each), 0, 1_700_000_000_000, partition.leader_epoch)
        partition.log.producers.replay(each)
    complete = TransactionMoved(0, 1, "tx", "PrepareCommit", "CompleteCommit", 7, 0, 60_000, 0)
    world.cluster.runtime.emit(WatermarkMoved(0, "orders", 0, partition.leader_id, 0, 1, 2))
    world.cluster.runtime.emit(complete)
    assert [v.law for v in world.laws.violations] == [
        "transactions advance when records are replicated"
    ]


@pytest.mark.parametrize(("deleted", "holds"), [(0, False), (1, True)], ids=["kept", "deleted"])
def test_a_sequence_may_be_out_of_order_after_a_deletion(
    world: World, deleted: int, holds: bool
) -> None:
    """A replica that begins after the deletion has the marker of the producer alone."""
    append(partition_of(world), batch_of(producer_id=7, producer_epoch=0, base_sequence=0))
    append(partition_of(world), marker_of(7, 0, commit=True))
    partition_of(world).delete_records(deleted)
    refused_batch(world.history, partition_of(world), node_id=1)
    world.laws.conclude()
    broken = {v.law for v in world.laws.violations}
    assert ("consecutive sequences are accepted" not in broken) is holds


@pytest.mark.parametrize("torn", [False, True])
def test_a_partition_that_lost_a_marker_takes_what_continues_its_transaction(
    world: World, *, torn: bool
) -> None:
    key = partition_of(world).key
    world.history.unfenced.append(Unfenced("a batch was acknowledged", key))
    if torn:
        world.laws.lossy.add(key)
    world.laws.conclude()
    assert (world.laws.violations == []) is torn


@pytest.mark.parametrize("torn", [False, True])
def test_offsets_stay_pending_where_their_marker_was_lost(world: World, *, torn: bool) -> None:
    shard = coordinated(world)
    shard.offsets.commit_pending(7, "g", "orders", 0, OffsetAndMetadata(6))
    if torn:
        world.laws.lossy.add(shard.partition.key)
    world.cluster.runtime.emit(
        TransactionMoved(0, 1, "tx", "PrepareCommit", "CompleteCommit", 7, 0, 60_000, 0)
    )
    assert (world.laws.violations == []) is torn


@pytest.mark.parametrize(("first", "lost"), [(1, True), (2, False)], ids=["loaded", "appended"])
def test_what_a_coordinator_has_loaded_and_lost_excuses_transactions(
    world: World, first: int, lost: bool
) -> None:
    """A leader takes batches of a transaction that its coordinator has loaded, replicated or not.
    A record that was appended later has no effect until it is replicated.
    """
    world.cluster.create_topic("__transaction_state", 1, 3)
    partition = world.cluster.topics["__transaction_state"].partitions[0]
    for _ in range(2):
        append(partition, batch_of())
    leader = partition.leader_id
    emit = world.cluster.runtime.emit
    emit(
        LeaderChanged(0, "__transaction_state", 0, leader, 1, leader, (leader,), False, "unfenced")
    )
    append(partition, batch_of())
    emit(RecordsRemoved(0, "__transaction_state", "", 0, first, 2, "truncation", ""))
    assert world.laws.transactions_lost is lost


def test_unverified_batches_are_sent_only_after_the_transaction_is_complete(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While the transaction is open, the leader needs no verification to append them."""
    sent: list[bool] = []

    def send_unverified(self: TransactionalProducer) -> CallSequence:
        sent.append(bool(self._added))
        yield from ()

    choose = TransactionalProducer.choose_partition

    def choose_existing(self: TransactionalProducer, topic: str) -> int | None:
        return None if topic == "gone" else choose(self, topic)

    monkeypatch.setattr(TransactionalProducer, "choose_partition", choose_existing)
    monkeypatch.setattr(TransactionalProducer, "_send_unverified_batch", send_unverified)
    monkeypatch.setattr(transactional, "_UNVERIFIED_SHARE", 1.0)
    settings = Settings(
        kafka_version="2.8", topics=[TopicSettings(name="orders"), TopicSettings(name="gone")]
    )
    producer = ClientSettings(
        kind="transactional",
        name="p",
        release="2.8",
        topics=["orders", "gone"],
        transactional_id="tx",
        operations=30,
    )
    run(Plan(seed=1, settings=settings, clients=[producer]))
    assert sent
    assert all(sent)


def test_offsets_that_were_sent_again_may_be_committed_with_a_later_transaction() -> None:
    """The first request arrives late, and the epoch is the same: before TV2 nothing refuses it."""
    plan = parse_plan(
        {
            "seed": 600202,
            "settings": {
                "kafka_version": "3.3",
                "configs": {
                    "min.insync.replicas": "2",
                    "mockbroker.transaction.marker.delay.ms": "5",
                },
                "topics": [
                    {"name": "orders", "replication_factor": 2},
                    {"name": "payments", "partitions": 3, "replication_factor": 2},
                ],
                "duration_ms": 5000,
                "latency_ms": [0, 0],
            },
            "clients": [
                {
                    "kind": "transactional",
                    "name": "transactional-2",
                    "topics": ["orders", "payments"],
                    "operations": 4,
                    "start_ms": 1987,
                    "pause_ms": [0, 1250],
                    "transactional_id": "tx-2",
                    "transaction_timeout_ms": 10000,
                    "abort_share": 0.5,
                },
                {
                    "kind": "transactional",
                    "name": "pipeline-3",
                    "topics": ["payments"],
                    "operations": 8,
                    "pause_ms": [0, 1250],
                    "transactional_id": "tx-3",
                    "transaction_timeout_ms": 10000,
                    "abort_share": 0.2,
                    "input": "orders",
                    "group": "pipeline-3",
                },
            ],
            "steps": [
                {"at_ms": 0, "do": "delay_network", "arguments": {"nodes": 1, "by": 300}},
                {"at_ms": 399, "do": "fail_log_dir", "arguments": {"node": 3}},
                {"at_ms": 1158, "do": "delay_network", "arguments": {"nodes": [2]}},
                {
                    "at_ms": 2317,
                    "do": "hang_transaction",
                    "arguments": {"transactional_id": "tx-3"},
                },
                {
                    "at_ms": 2418,
                    "do": "abort_transaction",
                    "arguments": {"transactional_id": "tx-3", "partition": 1},
                },
                {
                    "at_ms": 4349,
                    "do": "hang_transaction",
                    "arguments": {"transactional_id": "tx-3", "release": True},
                },
            ],
        }
    )
    assert run(plan).violations == []


def test_a_watermark_of_before_a_restore_says_nothing_of_a_record_written_after_it(
    world: World,
) -> None:
    """The coordinator gave up waiting for the record, and does not know it."""
    begun(world)
    partition = world.cluster.topics["__transaction_state"].partitions[0]
    image = capture(world.cluster)
    for _ in range(5):
        append(partition, batch_of())
    world.look()
    restore(world.cluster, image)
    world.cluster.hold_high_watermark("__transaction_state", 0)
    wait(world, 1_000)
    begun(world)
    wait(world, 31_000)  # longer than request.timeout.ms
    world.cluster.hold_high_watermark("__transaction_state", 0, release=True)
    world.laws.conclude()
    assert "coordinators agree with their log" not in {v.law for v in world.laws.violations}


def wait(world: World, by_ms: int) -> None:
    world.clock.now_ms += by_ms
    world.cluster.runtime.timers.run_due(world.clock.now_ms)


def begun(world: World) -> None:
    """The coordinator of the id tx has given it an epoch."""
    cluster = world.cluster
    if "__transaction_state" not in cluster.topics:
        cluster.create_topic("__transaction_state", 1, 3)
    leader_id = cluster.topics["__transaction_state"].partitions[0].leader_id
    shard = cluster.processes[leader_id].transactions.shard_of("tx")
    assert isinstance(shard, TransactionShard)
    shard.init("tx", 60_000, -1, -1, lambda _: None)
    world.look()
