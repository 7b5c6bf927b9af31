"""Violations of the laws of the controller, of replicas and of restarts, made by hand."""

from __future__ import annotations

from collections.abc import Callable

from mockbroker.core.brokers.broker_life import PAUSED
from mockbroker.core.events import (
    BrokerChanged,
    IsrChanged,
    LeaderChanged,
    LogDirFailed,
    MarkerWritten,
    NetworkChanged,
    ReplicasChanged,
    TransactionMoved,
)
from mockbroker.core.ids import uuid_text
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.metadata.topic import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from mockbroker.core.replication.partition import Partition
from mockbroker.core.replication.replica import FollowerState, Replica
from mockbroker.core.replication.replication_control import Reassignment
from mockbroker.core.txn.events import TransactionImage
from mockbroker.core.txn.machine import TransactionMetadata
from mockbroker.core.txn.shard import TransactionShard
from mockbroker.core.txn.states import TransactionState
from mockbroker.simulation import plan as plans
from mockbroker.simulation.clients.producer import Producer
from mockbroker.simulation.history import AnsweredAborts, Disordered, Sent, Unfenced
from mockbroker.simulation.plan import ClientSettings, Step
from mockbroker.simulation.script import Call
from mockbroker.simulation.world import World
from mockbroker_protocol import ApiKey, ErrorCode
from mockbroker_protocol.messages.elect_leaders import ElectLeadersRequest
from mockbroker_protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from mockbroker_protocol.records import ControlType, Record, build_batch, build_marker


def _partition(world: World) -> Partition:
    return world.cluster.topics["orders"].partitions[0]


def _changed(world: World, partition: Partition) -> None:
    partition.notify()
    world.look()


def _follower(partition: Partition) -> int:
    return next(n for n in partition.replicas if n != partition.leader_id)


def _led(world: World, leader_id: int, isr: list[int], *, unclean: bool = False) -> None:
    """Let the controller tell of another leader."""
    partition = _partition(world)
    former = partition.leader_id
    partition.partition_epoch += 1
    partition.leader_epoch += 1
    partition.leader_id, partition.isr = leader_id, isr
    epoch = partition.leader_epoch
    event = LeaderChanged(0, "orders", 0, leader_id, epoch, former, tuple(isr), unclean, "fenced")
    world.cluster.runtime.emit(event)


def _write(partition: Partition) -> None:
    batch = build_batch([Record(0, 1_700_000_000_000, b"k", b"v")])
    partition.log.append(memoryview(batch), 0, 1_700_000_000_000, partition.leader_epoch)


def a_change_without_a_partition_epoch(world: World) -> None:
    partition = _partition(world)
    partition.isr = partition.isr[:1]
    _changed(world, partition)


def a_leader_without_an_epoch_of_its_own(world: World) -> None:
    partition = _partition(world)
    partition.partition_epoch += 1
    partition.leader_id = _follower(partition)
    _changed(world, partition)


def a_broker_that_knows_another_state(world: World) -> None:
    partition = _partition(world)
    node_id = _follower(partition)
    world.cluster.processes[node_id].image = world.cluster.image.frozen()
    world.cluster.metadata.all_have_newest_image = False
    known = partition.copy_with({})
    known.isr = [node_id]
    world.cluster.processes[node_id].image.put(known)
    _changed(world, partition)


def an_eligible_leader_where_the_isr_is_alive(world: World) -> None:
    partition = _partition(world)
    leader, other = partition.leader_id, _follower(partition)
    partition.partition_epoch += 1
    partition.isr, partition.elr = [leader], (other,)
    _changed(world, partition)
    _led(world, other, [other])


def an_unclean_leader_with_others_in_sync(world: World) -> None:
    partition = _partition(world)
    _led(world, _follower(partition), list(partition.replicas), unclean=True)


def a_fenced_broker_in_sync(world: World) -> None:
    partition = _partition(world)
    world.cluster.brokers[_follower(partition)].fenced = True
    _changed(world, partition)


def a_lost_directory_in_sync(world: World) -> None:
    partition = _partition(world)
    broker = world.cluster.brokers[_follower(partition)]
    path = broker.log_dirs.dir_of(partition)
    broker.log_dirs.failed.add(path)
    world.cluster.runtime.emit(LogDirFailed(0, broker.node_id, path))
    world.look()


def a_leader_that_adds_two_at_once(world: World) -> None:
    partition = _partition(world)
    replicas = partition.replicas
    partition.partition_epoch += 1
    partition.isr = replicas[:1]
    _changed(world, partition)
    partition.partition_epoch += 1
    partition.isr = list(replicas)
    former, isr = tuple(replicas[:1]), tuple(replicas)
    world.cluster.runtime.emit(IsrChanged(0, "orders", 0, former, isr, 0, 0, "caught_up"))


def an_unclean_end_that_is_forgotten(world: World) -> None:
    broker = world.cluster.brokers[_follower(_partition(world))]
    broker.stopped_how = "unclean"
    for change in ("stopped", "unfenced"):
        world.cluster.runtime.emit(BrokerChanged(0, broker.node_id, change, broker.epoch))


def a_reassignment_that_ends_out_of_sync(world: World) -> None:
    partition = _partition(world)
    one, two, three = partition.replicas
    world.cluster.reassignments[partition.key] = Reassignment([three], [one])
    partition.partition_epoch += 1
    partition.isr = [one, two]
    _changed(world, partition)
    del world.cluster.reassignments[partition.key]
    partition.partition_epoch += 1
    partition.isr, partition.replicas = [two], [two, three]
    event = ReplicasChanged(0, "orders", 0, (one, two, three), (two, three), (), ())
    world.cluster.runtime.emit(event)


def nobody_leads_where_somebody_could(world: World) -> None:
    _led(world, -1, list(_partition(world).isr))
    _changed(world, _partition(world))


def an_orderly_end_in_the_isr(world: World) -> None:
    node_id = _follower(_partition(world))
    for change in ("shutting down", "stopped"):
        world.cluster.runtime.emit(BrokerChanged(0, node_id, change, 1))


def a_controller_among_the_few(world: World) -> None:
    few = world.cluster.controller_id
    network = world.cluster.replication.network
    links = {(few, n) for n in world.cluster.processes if n != few}
    network.cut(links | {(b, a) for a, b in links})
    world.cluster.runtime.emit(NetworkChanged(0, "cut", (few,), (), 0, True))
    world.laws.after(Step(at_ms=0, do="cut_network"))


def a_watermark_that_waits_for_nobody(world: World) -> None:
    partition = _partition(world)
    follower = _follower(partition)
    state = FollowerState.caught_up(follower, partition.log, 0)
    partition.followers[follower] = state
    _write(partition)
    partition.high_watermark = partition.last_stable_offset = 1
    _changed(world, partition)


def a_leader_that_takes_a_follower_for_further(world: World) -> None:
    partition = _partition(world)
    follower = _follower(partition)
    _write(partition)
    partition.own_replicas[follower] = Replica(follower, ReplicaLog(), 0)
    partition.followers[follower] = FollowerState.caught_up(follower, partition.log, 0)
    _changed(world, partition)


def a_paused_broker_whose_log_grows(world: World) -> None:
    partition = _partition(world)
    world.cluster.processes[_follower(partition)].state = PAUSED
    _changed(world, partition)
    _write(partition)
    _changed(world, partition)


def a_log_ahead_of_its_broker(world: World) -> None:
    partition = _partition(world)
    partition.log.epochs.assign(7, 0)
    _changed(world, partition)


def a_change_of_the_isr_without_an_answer(world: World) -> None:
    partition = _partition(world)
    partition.isr_in_flight = list(partition.isr)
    _changed(world, partition)
    world.clock.now_ms += 31_000
    _changed(world, partition)


class _Waiting:
    def partition_changed(self, partition: Partition) -> None:
        """Nothing is taken for an answer."""


def somebody_who_waits_for_a_former_leader(world: World) -> None:
    former = _partition(world)
    world.cluster.image.put(former.copy_with({}))
    former.watch(_Waiting())
    world.cluster.metadata.changed()
    world.look()


def a_coordinator_that_sleeps(world: World) -> None:
    topic = world.cluster.create_topic(GROUP_METADATA_TOPIC, 1, 1)
    _write(topic.partitions[0])
    topic.partitions[0].notify()
    world.look()
    world.clock.now_ms += 1
    world.look()


def a_forwarded_request_that_is_forgotten(world: World) -> None:
    since_ms = world.clock.now_ms
    world.clock.now_ms += 5_000
    request = ElectLeadersRequest(0, None, 1_000)
    world.laws.timed_out("a", Call(1, ApiKey.ELECT_LEADERS, 2, request, 5_000), since_ms)


def a_restart_that_forgets(world: World) -> None:
    world.laws.before(Step(at_ms=0, do=plans.RESTART), None)
    world.performed[plans.RESTART] += 1
    _partition(world).elr = (2,)
    world.laws.after(Step(at_ms=0, do=plans.RESTART))


def a_log_that_knows_of_no_producer(world: World) -> None:
    partition = _partition(world)
    batch = build_batch(
        [Record(0, 1_700_000_000_000, b"k", b"v")],
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
    )
    partition.log.append(memoryview(batch), 0, 1_700_000_000_000, partition.leader_epoch)
    partition.log.producers.replay(batch)
    partition.log.producers.entries[7].last_sequence = 5
    _changed(world, partition)


def a_timeout_of_what_is_replicated(world: World) -> None:
    partition = _partition(world)
    batch = build_batch([Record(0, 1_700_000_000_000, b"k", b"v")])
    partition.log.append(memoryview(batch), 0, 1_700_000_000_000, partition.leader_epoch)
    partition.advance_high_watermark()
    (stored,) = partition.log.batches()
    data = PartitionProduceData(0, memoryview(bytes(stored)))
    request = ProduceRequest(
        acks=-1, topic_data=[TopicProduceData(name="orders", partition_data=[data])]
    )
    answer = PartitionProduceResponse(0, int(ErrorCode.REQUEST_TIMED_OUT))
    response = ProduceResponse(
        responses=[TopicProduceResponse(name="orders", partition_responses=[answer])]
    )
    call = Call(partition.leader_id, ApiKey.PRODUCE, 9, request)
    client = Producer(ClientSettings(kind="producer", name="p"), "4.3", [1], world.history)
    world.laws.on_response(client, call, response, since_ms=world.clock.now_ms)


def a_transaction_complete_without_its_marker(world: World) -> None:
    partition = _partition(world)
    batch = build_batch(
        [Record(0, 1_700_000_000_000, b"k", b"v")],
        producer_id=7,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    partition.log.append(memoryview(batch), 0, 1_700_000_000_000, partition.leader_epoch)
    partition.log.producers.replay(batch)
    moved = TransactionMoved(0, 1, "app", "PrepareCommit", "CompleteCommit", 7, 0, 60_000, 0)
    world.cluster.runtime.emit(moved)


def a_former_producer_that_is_acknowledged(world: World) -> None:
    world.history.unfenced.append(Unfenced("a wrote under epoch 0 after epoch 1 was given"))
    world.laws.conclude()


def _decided_end(world: World) -> None:
    """A transaction in orders whose end is decided, and nothing else has happened."""
    world.cluster.create_topic(TRANSACTION_STATE_TOPIC, 1, 3)
    leader_id = world.cluster.topics[TRANSACTION_STATE_TOPIC].partitions[0].leader_id
    shard = world.cluster.processes[leader_id].transactions.shard_of("tx")
    assert isinstance(shard, TransactionShard)
    image = TransactionImage(
        state=TransactionState.PREPARE_COMMIT,
        producer_id=7,
        epoch=0,
        timeout_ms=1_000,
        partitions=(("orders", 0),),
    )
    shard.transactions["tx"] = TransactionMetadata("tx", image)


def a_marker_that_is_not_on_its_way(world: World) -> None:
    _decided_end(world)
    world.cluster.runtime.emit(
        TransactionMoved(0, 1, "tx", "Ongoing", "PrepareCommit", 7, 0, 60_000, 0)
    )
    _changed(world, _partition(world))


def a_marker_that_no_loaded_coordinator_sends(world: World) -> None:
    _decided_end(world)
    _changed(world, world.cluster.topics[TRANSACTION_STATE_TOPIC].partitions[0])


def _append_marker(partition: Partition, *, coordinator_epoch: int) -> int:
    """Write a marker of producer 7 behind everybody's back; returns its offset."""
    marker = build_marker(
        ControlType.COMMIT,
        producer_id=7,
        producer_epoch=0,
        coordinator_epoch=coordinator_epoch,
        timestamp=1_700_000_000_000,
    )
    partition.log.append(memoryview(marker), 0, 1_700_000_000_000, partition.leader_epoch)
    partition.log.producers.replay(marker)
    return partition.log.end_offset - 1


def a_marker_of_a_former_coordinator(world: World) -> None:
    for epoch in (1, 0):
        _append_marker(_partition(world), coordinator_epoch=epoch)
    world.laws.conclude()


def a_batch_that_is_still_verified_after_the_marker(world: World) -> None:
    partition = _partition(world)
    offset = _append_marker(partition, coordinator_epoch=0)
    partition.log.producers.start_verification(7, 0, 1, 0, bumps=False)
    topic_id = uuid_text(partition.topic.topic_id)
    world.cluster.runtime.emit(MarkerWritten(0, "orders", topic_id, 0, 0, offset, 7, 0, True))


def an_epoch_that_two_producers_were_given(world: World) -> None:
    world.history.epoch_given("tx", 7, 2)
    world.history.epoch_given("tx", 7, 2)
    world.laws.conclude()


def a_retry_that_is_out_of_order(world: World) -> None:
    topic_id = _partition(world).topic.topic_id
    sent = Sent("p", "orders", topic_id, 0, [b"v"], -1, None, 0)
    world.history.disordered.append(Disordered(sent, 1, 1, 2))
    world.laws.conclude()


def a_reader_that_is_told_of_no_such_abort(world: World) -> None:
    told = AnsweredAborts(
        "r", "orders", _partition(world).topic.topic_id, 0, 0, 5, frozenset({(7, 0)})
    )
    world.history.aborts.append(told)
    world.laws.conclude()


BREAKERS: tuple[tuple[str, Callable[[World], None]], ...] = (
    ("a partition epoch is one state", a_change_without_a_partition_epoch),
    ("a partition epoch is one state", a_leader_without_an_epoch_of_its_own),
    ("a partition epoch is one state", a_broker_that_knows_another_state),
    ("leaders come from the ISR", an_eligible_leader_where_the_isr_is_alive),
    ("leaders come from the ISR", an_unclean_leader_with_others_in_sync),
    ("in-sync replicas are alive", a_fenced_broker_in_sync),
    ("in-sync replicas are alive", a_lost_directory_in_sync),
    ("in-sync replicas are alive", a_leader_that_adds_two_at_once),
    ("unclean shutdowns leave the ISR", an_unclean_end_that_is_forgotten),
    ("reassignments end in sync", a_reassignment_that_ends_out_of_sync),
    ("eligible replicas lead", nobody_leads_where_somebody_could),
    ("controlled shutdowns leave the ISR", an_orderly_end_in_the_isr),
    ("the largest group has the controller", a_controller_among_the_few),
    ("the high watermark waits", a_watermark_that_waits_for_nobody),
    ("followers' positions are real", a_leader_that_takes_a_follower_for_further),
    ("unreachable followers stay as they are", a_paused_broker_whose_log_grows),
    ("logs have no unknown leader epoch", a_log_ahead_of_its_broker),
    ("AlterPartition is answered", a_change_of_the_isr_without_an_answer),
    ("deposed leaders answer waiting requests", somebody_who_waits_for_a_former_leader),
    ("coordinators load their partitions", a_coordinator_that_sleeps),
    ("forwarded requests are answered", a_forwarded_request_that_is_forgotten),
    ("restarts and restores keep the state", a_restart_that_forgets),
    ("the state of a log follows from its batches", a_log_that_knows_of_no_producer),
    ("acknowledgements come in time", a_timeout_of_what_is_replicated),
    ("transactions advance when records are replicated", a_transaction_complete_without_its_marker),
    ("markers are sent until they are written", a_marker_that_is_not_on_its_way),
    ("markers are sent until they are written", a_marker_that_no_loaded_coordinator_sends),
    ("markers end verification", a_batch_that_is_still_verified_after_the_marker),
    ("former coordinators are fenced", a_marker_of_a_former_coordinator),
    ("fenced producers stay fenced", a_former_producer_that_is_acknowledged),
    ("fenced producers stay fenced", an_epoch_that_two_producers_were_given),
    ("consecutive sequences are accepted", a_retry_that_is_out_of_order),
    ("aborted transactions are listed", a_reader_that_is_told_of_no_such_abort),
)
