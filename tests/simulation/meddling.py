"""A cluster with one partition, and batches that get into its log behind everybody's back."""

from __future__ import annotations

from mockbroker.core.groups.offsets import OffsetAndMetadata
from mockbroker.core.groups.shard import GroupShard
from mockbroker.core.replication.partition import Partition
from mockbroker.simulation import Plan, Settings, TopicSettings
from mockbroker.simulation.history import (
    Disordered,
    GroupCall,
    History,
    Read,
    Sent,
    Transaction,
)
from mockbroker.simulation.world import World
from mockbroker_protocol.records import (
    BatchHeader,
    ControlType,
    Record,
    build_batch,
    build_marker,
)


def new_world() -> World:
    """A cluster with the topic orders, of one partition and three replicas."""
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


def refused_batch(history: History, partition: Partition, *, node_id: int) -> None:
    """Broker 1 has acknowledged a producer's first batch, at 0, and `node_id` calls its second out
    of order.
    """
    first, second = (
        sent_of(
            partition, batch_of(producer_id=7, producer_epoch=0, base_sequence=number), number - 1
        )
        for number in (1, 0)
    )
    for sent in (first, second):
        sent.producer_id, sent.epoch = 7, 0
        history.batch_sent(sent)
    first.node_id = 1
    history.disordered.append(Disordered(second, node_id, history.turn(), history.turn()))


def read_of(partition: Partition, offset: int, crc: int, *, committed: bool = False) -> Read:
    topic_id = partition.topic.topic_id
    return Read("r", "orders", topic_id, 0, offset, crc, 7, committed=committed, at_ms=0)


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


def group_call(
    world: World,
    what: str,
    member: str,
    generation: int,
    *,
    protocol: str = "classic",
    instance: str | None = None,
    error: int = 0,
    told: bool = True,
) -> GroupCall:
    """A request of a member, and its answer."""
    call = world.history.group_call(what, protocol, "g", member, member, instance, generation)
    call.answered_member, call.answered_generation = member, generation
    if told:
        world.history.group_answer(call, error)
    return call


def coordinated(world: World) -> GroupShard:
    """The coordinator of the group g, which has committed offset 5."""
    cluster = world.cluster
    cluster.create_topic("__consumer_offsets", 1, 3)
    leader = cluster.processes[cluster.topics["__consumer_offsets"].partitions[0].leader_id]
    shard = leader.groups.shard_of("g")
    assert isinstance(shard, GroupShard)
    shard.classic.create_simple_group("g", world.clock.now_ms)
    shard.commit("g", [("orders", 0, OffsetAndMetadata(5))])
    world.look()
    return shard
