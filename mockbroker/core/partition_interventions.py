"""What people, tests and rules may do to a partition: its leader, its followers, its watermarks.

Each function is a method of `Cluster` under the same name, see `interventions`. Where `partition`
may be None, all partitions of the topic are meant. Raises ActionError, and then nothing has
changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mockbroker.core.errors import ActionError
from mockbroker.core.partition import NO_LEADER, Partition
from mockbroker.core.replication.elections import Election, PartitionChange, can_lead

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.topic import Topic


# -- leaders ---------------------------------------------------------------------------------------


def move_leader(cluster: Cluster, topic: str, partition: int, node_id: int) -> None:
    """Let another replica lead that is alive and in sync; nothing is lost by that."""
    found = _partition(cluster, topic, partition)
    _check_replica(found, node_id)
    if node_id not in found.isr:
        raise ActionError(
            f"broker {node_id} is not in the ISR of {_name(found)}, which is {found.isr}; "
            "elect_unclean would let it lead, with the records it has not got lost"
        )
    if not can_lead(cluster, found, node_id):
        raise ActionError(f"broker {node_id} is not alive, or has lost its log directory")
    change = PartitionChange(cluster, found)
    change.election, change.wanted_leader = Election.CHOSEN, node_id
    change.apply("moved")


def elect_unclean(cluster: Cluster, topic: str, partition: int, node_id: int) -> None:
    """Let any live replica lead, in sync or not: what only others have is lost."""
    found = _partition(cluster, topic, partition)
    _check_replica(found, node_id)
    if not can_lead(cluster, found, node_id):
        raise ActionError(f"broker {node_id} is not alive, or has lost its log directory")
    change = PartitionChange(cluster, found)
    change.election, change.wanted_leader = Election.CHOSEN, node_id
    change.isr = [node_id]
    change.apply("unclean election")


def drop_leader(cluster: Cluster, topic: str, partition: int) -> None:
    """Leave a partition without a leader until somebody elects one; the ISR stays."""
    found = _partition(cluster, topic, partition)
    if found.leader_id == NO_LEADER:
        raise ActionError(f"{_name(found)} has no leader already")
    change = PartitionChange(cluster, found)
    change.election, change.wanted_leader = Election.CHOSEN, NO_LEADER
    change.apply("dropped")


def shuffle_leaders(cluster: Cluster, topic: str | None = None) -> int:
    """Let a random member of the ISR lead each partition, of one topic or of all; how many moved.

    The cluster's seed decides.
    """
    topics = cluster.topics.values() if topic is None else [_topic(cluster, topic)]
    moved = 0
    for found in [partition for each in topics for partition in each.partitions]:
        able = [node_id for node_id in found.isr if can_lead(cluster, found, node_id)]
        if not able:
            continue
        change = PartitionChange(cluster, found)
        change.election = Election.CHOSEN
        change.wanted_leader = able[cluster.ids.below(len(able))]
        moved += change.apply("shuffled")
    return moved


# -- followers -------------------------------------------------------------------------------------


def lag_follower(
    cluster: Cluster,
    topic: str,
    partition: int | None,
    node_id: int,
    by_ms: int | None = None,
    *,
    hold: bool = False,
) -> None:
    """Let a follower get what it fetches `by_ms` late, or with `hold` fetch nothing at all.

    It stays so until it is released, whoever leads meanwhile.
    """
    if (by_ms is None) is not hold:
        raise ActionError("a follower either lags by_ms or is on hold")
    if by_ms is not None and by_ms <= 0:
        raise ActionError(f"a follower lags by a positive number of ms, not by {by_ms}")
    for found in _partitions(cluster, topic, partition, node_id):
        if by_ms is None:
            cluster.replication.hold(found, node_id)
        else:
            cluster.replication.lag(found, node_id, by_ms)


def release_follower(cluster: Cluster, topic: str, partition: int | None, node_id: int) -> None:
    """Let a follower that lags or is on hold catch up, and come back into the ISR."""
    for found in _partitions(cluster, topic, partition, node_id):
        cluster.replication.release(found, node_id)


def shrink_isr(
    cluster: Cluster, topic: str, partition: int | None, node_ids: Sequence[int]
) -> None:
    """Put followers on hold and out of the ISR at once; `release_follower` lets them come back."""
    chosen = [
        _partitions(cluster, topic, partition, node_id) for node_id in dict.fromkeys(node_ids)
    ]
    for node_id, found in zip(dict.fromkeys(node_ids), chosen, strict=True):
        for each in found:
            if each.leader_id == node_id:
                raise ActionError(f"broker {node_id} leads {_name(each)}: it is always in sync")
    for node_id, found in zip(dict.fromkeys(node_ids), chosen, strict=True):
        for each in found:
            cluster.replication.hold(each, node_id)
            cluster.replication.has_lagged(each, node_id)
            change = PartitionChange(cluster, each)
            change.isr = [member for member in each.isr if member != node_id]
            change.apply("shrunk")


# -- watermarks ------------------------------------------------------------------------------------


def hold_high_watermark(cluster: Cluster, topic: str, partition: int | None) -> None:
    """Let the high watermark stay where it is, whatever is replicated, until it is released.

    A Produce with acks=all waits for it, and gets REQUEST_TIMED_OUT (7) after its timeout, as in
    Kafka when followers lag. Its records stay in the log.
    """
    for found in _led(cluster, topic, partition):
        cluster.replication.limit(found, found.high_watermark)


def release_high_watermark(cluster: Cluster, topic: str, partition: int | None) -> None:
    """Let the high watermark go to where it belongs."""
    for found in _led(cluster, topic, partition):
        cluster.replication.unlimit(found)


def set_high_watermark(cluster: Cluster, topic: str, partition: int, offset: int) -> None:
    """Put the high watermark anywhere in the log, back as well, and hold it there.

    Kafka never lets it go back under one leader; clients that saw it higher are in for a surprise.
    Until `release_high_watermark` a Produce with acks=all gets REQUEST_TIMED_OUT (7) after its
    timeout, one that waits already as well, unless all its records lie below `offset`. They stay in
    the log.
    """
    (found,) = _led(cluster, topic, partition)
    log = found.log
    if not log.start_offset <= offset <= log.end_offset:
        raise ActionError(
            f"{offset} is not within the log of {_name(found)}, which goes from "
            f"{log.start_offset} to {log.end_offset}"
        )
    cluster.replication.limit(found, offset)
    found.force_high_watermark(offset)


def hold_last_stable_offset(cluster: Cluster, topic: str, partition: int | None) -> None:
    """Let read_committed consumers see nothing beyond what is stable now, until it is released."""
    for found in _led(cluster, topic, partition):
        found.limit_last_stable_offset(found.last_stable_offset)


def release_last_stable_offset(cluster: Cluster, topic: str, partition: int | None) -> None:
    """Let the last stable offset go to where it belongs."""
    for found in _led(cluster, topic, partition):
        found.limit_last_stable_offset(None)


# -- topics ----------------------------------------------------------------------------------------


def delete_records(
    cluster: Cluster, topic: str, partition: int | None, before_offset: int | None = None
) -> None:
    """Move the log start to an offset, or without one to the high watermark."""
    wanted = -1 if before_offset is None else before_offset
    found = _led(cluster, topic, partition)
    for each in found:
        if wanted > each.high_watermark:
            raise ActionError(
                f"the high watermark of {_name(each)} is {each.high_watermark}, below {wanted}"
            )
    for each in found:
        error, _ = each.delete_records(wanted)
        if error:
            raise ActionError(f"records of {_name(each)} cannot be deleted: its cleanup.policy")


def recreate_topic(cluster: Cluster, topic: str) -> None:
    """Delete a topic and create one of the same name, placement and configs, with another id."""
    found = _topic(cluster, topic)
    assignments = {each.index: list(each.replicas) for each in found.partitions}
    configs = dict(found.configs.overrides)
    with cluster.states.together():
        cluster.delete_topic(topic)
        cluster.create_topic(topic, assignments=assignments, configs=configs)


# -- arguments -------------------------------------------------------------------------------------


def _topic(cluster: Cluster, name: str) -> Topic:
    topic = cluster.topics.get(name)
    if topic is None:
        raise ActionError(f"there is no topic {name!r}")
    return topic


def _partition(cluster: Cluster, topic: str, index: int) -> Partition:
    partitions = _topic(cluster, topic).partitions
    if not 0 <= index < len(partitions):
        raise ActionError(f"topic {topic!r} has partitions 0 to {len(partitions) - 1}, not {index}")
    return partitions[index]


def _partitions(
    cluster: Cluster, topic: str, index: int | None, node_id: int | None = None
) -> list[Partition]:
    """The partition, or all that broker `node_id` holds of the topic."""
    if index is not None:
        found = _partition(cluster, topic, index)
        if node_id is not None:
            _check_replica(found, node_id)
        return [found]
    held = [
        partition
        for partition in _topic(cluster, topic).partitions
        if node_id is None or node_id in partition.replicas
    ]
    if not held:
        raise ActionError(f"broker {node_id} holds no partition of {topic!r}")
    return held


def _led(cluster: Cluster, topic: str, index: int | None) -> list[Partition]:
    """The partition, or all of the topic, as their leaders have them."""
    return [cluster.led(partition) for partition in _partitions(cluster, topic, index)]


def _check_replica(partition: Partition, node_id: int) -> None:
    if node_id not in partition.replicas:
        raise ActionError(
            f"broker {node_id} is no replica of {_name(partition)}; those are {partition.replicas}"
        )


def _name(partition: Partition) -> str:
    return f"{partition.topic.name}-{partition.index}"
