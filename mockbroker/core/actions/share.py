"""Actions on share groups (KIP-932): acquired records, delivery counts, share coordinators.

A share partition is where its partition's leader is. It exists once a member has fetched from it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Annotated

import msgspec

from mockbroker.core.actions.partitions import find_partition, move_leader, name_of
from mockbroker.core.actions.registry import action
from mockbroker.core.errors import ActionError
from mockbroker.core.metadata.topic import SHARE_GROUP_STATE_TOPIC
from mockbroker.core.validation import Count, Length, Ms, Range, nearest

if TYPE_CHECKING:
    from mockbroker.core.cluster_state import ClusterState
    from mockbroker.core.replication.partition import Partition
    from mockbroker.core.share.manager import SharePartitionManager
    from mockbroker.core.share.partition import SharePartition

OFFSETS_MAX = 10_000
DELIVERIES_MAX = 32_767  # an int16

Offsets = Annotated[list[Count], Length(1, OFFSETS_MAX)]


class OneSharePartition(msgspec.Struct, frozen=True):
    """One partition, as one share group reads it."""

    group: str
    topic: str
    partition: Count


class AcquiredRecords(OneSharePartition, frozen=True, kw_only=True):
    """The acquired records of a share partition: those of the members that the glob `member`
    matches, all or those at `offsets`.
    """

    offsets: Offsets | None = None
    member: str = "*"


class RecordsInFlight(OneSharePartition, frozen=True):
    """Records in flight, by their offsets."""

    offsets: Offsets


class DeliveryCount(OneSharePartition, frozen=True, kw_only=True):
    """The delivery count of records in flight, all or those at `offsets`. Without `count` it is
    such that one delivery is left at most: the limit, or one less for a record that no member has.
    """

    offsets: Offsets | None = None
    count: Annotated[int, Range(1, DELIVERIES_MAX)] | None = None


class ShareMember(msgspec.Struct, frozen=True):
    """The members of a share group whose ids the glob `member` matches; by default all."""

    group: str
    member: str = "*"


class MoveShareCoordinator(OneSharePartition, frozen=True):
    """A share partition, and the broker that becomes its share coordinator."""

    node: int


class UnloadShareCoordinator(OneSharePartition, frozen=True, kw_only=True):
    """A share partition. The load takes `load`."""

    load_ms: Ms = msgspec.field(default=0, name="load")


class ShareActions:
    """Actions on share groups."""

    @action(AcquiredRecords)
    @staticmethod
    def expire_acquisition_locks(cluster: ClusterState, wanted: AcquiredRecords) -> int:
        """End acquisition locks now, as at their deadline; returns the number of records.

        The records are delivered again, or archived if their delivery count has reached the limit.
        """
        from mockbroker.core.share import acknowledgement, forcing

        _, share = _share_partition(cluster, wanted)
        chosen = forcing.acquired_by(_glob(wanted.member))
        expired = acknowledgement.expire(share, chosen, _set(wanted.offsets))
        return _some(expired, share, f"record acquired by {wanted.member!r}", wanted.offsets)

    @action(AcquiredRecords)
    @staticmethod
    def hand_out_twice(cluster: ClusterState, wanted: AcquiredRecords) -> int:
        """Let the next fetch acquire records that a member has acquired; returns their number.

        The broker forgets the member without a word. If another member fetches next, two work on
        the record; the acknowledgement of the first is refused.
        """
        from mockbroker.core.share import forcing

        _, share = _share_partition(cluster, wanted)
        number = forcing.hand_out_again(share, _set(wanted.offsets), _glob(wanted.member))
        return _some(number, share, f"record acquired by {wanted.member!r}", wanted.offsets)

    @action(RecordsInFlight)
    @staticmethod
    def archive_records(cluster: ClusterState, wanted: RecordsInFlight) -> int:
        """Archive records in flight, as after a reject; returns their number.

        No member gets them again. The acknowledgement of a member that has one is refused.
        """
        from mockbroker.core.share import forcing

        _, share = _share_partition(cluster, wanted)
        archived = forcing.archive(share, frozenset(wanted.offsets))
        return _some(archived, share, "record that is not final", wanted.offsets)

    @action(DeliveryCount)
    @staticmethod
    def set_delivery_count(cluster: ClusterState, wanted: DeliveryCount) -> int:
        """Set the delivery count of records in flight; returns their number."""
        from mockbroker.core.share import forcing

        _, share = _share_partition(cluster, wanted)
        number = forcing.set_delivery_count(share, _set(wanted.offsets), wanted.count)
        return _some(number, share, "record that is not final", wanted.offsets)

    @action(ShareMember)
    @staticmethod
    def release_records(cluster: ClusterState, wanted: ShareMember) -> int:
        """Release all records that members have acquired, as when their share sessions end; returns
        their number.

        The members keep their sessions. Their acknowledgements of these records are refused.
        """
        from mockbroker.core.share.acknowledgement import release_acquired

        fits = _glob(wanted.member)
        released = 0
        holders: set[str] = set()
        for manager, share in _share_partitions_of(cluster, wanted.group):
            held = _held(share)
            holders.update(held)
            for member_id in filter(fits, held):
                released += held[member_id]
                release_acquired(share, member_id, partial(manager.fence_if, share))
                share.notify()
        if not released:
            shown = ", ".join(sorted(holders)) or "none"
            raise ActionError(
                f"no member {wanted.member!r} of share group {wanted.group!r} has records; "
                f"members with records: {shown}"
            )
        return released

    @action(MoveShareCoordinator)
    @staticmethod
    def move_share_coordinator(cluster: ClusterState, wanted: MoveShareCoordinator) -> None:
        """Move the share coordinator of a share partition to another broker.

        The broker becomes the leader of the partition of `__share_group_state`, so it must be in
        the ISR. All share partitions of that partition move.
        """
        _, state_partition = _state_partition(cluster, wanted)
        move_leader(cluster, state_partition, wanted.node)

    @action(UnloadShareCoordinator)
    @staticmethod
    def unload_share_coordinator(cluster: ClusterState, wanted: UnloadShareCoordinator) -> None:
        """Unload the share coordinator of a share partition, and load it again.

        Meanwhile brokers get COORDINATOR_LOAD_IN_PROGRESS, and acknowledgements wait.
        """
        key, state_partition = _state_partition(cluster, wanted)
        leader = cluster.brokers.get(state_partition.leader_id)
        if leader is None or not leader.share_coordinator.reload(key, wanted.load_ms):
            raise ActionError(f"{name_of(state_partition)} has no leader")


def _set(offsets: list[int] | None) -> Collection[int] | None:
    return None if offsets is None else frozenset(offsets)


def _glob(pattern: str) -> Callable[[str], bool]:
    return lambda member_id: fnmatchcase(member_id, pattern)


def _held(share: SharePartition) -> dict[str, int]:
    """How many records of a share partition each member has acquired."""
    from mockbroker.core.share.forcing import is_acquired

    held: dict[str, int] = {}
    for batch in share.batches:
        for first, last, state in filter(lambda part: is_acquired(part[2]), batch.parts()):
            held[state.member_id] = held.get(state.member_id, 0) + last - first + 1
    return held


def _some(number: int, share: SharePartition, what: str, offsets: list[int] | None) -> int:
    """`number`, which must not be 0. Raises ActionError with the records in flight."""
    if number:
        return number
    in_flight = "no records"
    if share.batches:
        in_flight = f"the offsets {share.batches.first.first_offset} to {share.end_offset}"
    at = "" if offsets is None else f" at {', '.join(map(str, offsets[:10]))}"
    partition = f"{share.partition.topic.name}-{share.partition.index}"
    raise ActionError(
        f"share group {share.group_id!r} has no {what} in {partition}{at}; "
        f"in flight it has {in_flight}"
    )


def _share_partitions_of(
    cluster: ClusterState, group: str
) -> list[tuple[SharePartitionManager, SharePartition]]:
    """The share partitions of a group, by topic and partition. Raises ActionError without any."""
    known = [
        (broker.share_partitions, share)
        for broker in cluster.processes.values()
        if broker.has_share_partitions
        for share in broker.share_partitions.all()
    ]
    found = [each for each in known if each[1].group_id == group]
    if not found:
        hint = nearest(group, {share.group_id for _, share in known})
        raise ActionError(f"no member of a share group {group!r} has fetched records{hint}")
    return sorted(found, key=lambda each: each[1].key)


def _share_partition(
    cluster: ClusterState, wanted: OneSharePartition
) -> tuple[SharePartitionManager, SharePartition]:
    """A share partition that is active. Raises ActionError."""
    partition = find_partition(cluster, wanted.topic, wanted.partition)
    of_group = _share_partitions_of(cluster, wanted.group)
    for manager, share in of_group:
        if share.key[1:] == (partition.topic.topic_id, partition.index) and share.is_active:
            return manager, share
    names = sorted({f"{s.partition.topic.name}-{s.partition.index}" for _, s in of_group})
    raise ActionError(
        f"no member of share group {wanted.group!r} has fetched from "
        f"{wanted.topic}-{wanted.partition}; they have fetched from: {', '.join(names)}"
    )


def _state_partition(cluster: ClusterState, wanted: OneSharePartition) -> tuple[str, Partition]:
    """The coordinator key of a share partition, and its partition of `__share_group_state`."""
    from mockbroker.core.share.coordinator import coordinator_key

    partition = find_partition(cluster, wanted.topic, wanted.partition)
    key = coordinator_key(wanted.group, partition.topic.topic_id, partition.index)
    topic = SHARE_GROUP_STATE_TOPIC
    found = cluster.partition(topic, cluster.find_coordinator_partition(key, topic))
    if found is None:
        raise ActionError(f"there is no share coordinator yet: there is no topic {topic}")
    return key, found
