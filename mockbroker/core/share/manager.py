"""The share partitions and share sessions of one broker.

A share partition is created by the first ShareFetch of its group for a partition that the broker
leads. It is fenced and removed when another broker leads the partition, the topic is deleted, the
last connection of the group closes, a write is fenced, or its initialization fails. The next
ShareFetch begins with the state of the share coordinator then.

Source: SharePartitionManager, SharePartitionCache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from mockbroker.core.brokers.broker_life import PAUSED
from mockbroker.core.brokers.host import HostBroker
from mockbroker.core.errors import ApiError
from mockbroker.core.events import ShareSessionChanged
from mockbroker.core.share.acknowledgement import expire_locks, release_acquired
from mockbroker.core.share.configs import ShareGroupConfigs
from mockbroker.core.share.partition import SharePartition
from mockbroker.core.share.persisted import SharePartitionKey
from mockbroker.core.share.sessions import (
    CONNECTION,
    FINAL,
    SessionKey,
    ShareSessionCache,
    ShareTarget,
    TopicPartitionKey,
)
from mockbroker.core.timing.timers import DueTimers
from mockbroker.core.timing.turns import in_parts, in_turns
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from mockbroker.core.log.dirs import LogDirs
    from mockbroker.core.replication.partition import Partition
    from mockbroker.core.runtime import Runtime
    from mockbroker.core.share.operations import StateSender

# A write with one of these errors ends the share partition; the client fetches again.
FENCING_ERRORS = frozenset(
    (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_STATE_EPOCH,
        ErrorCode.GROUP_ID_NOT_FOUND,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    )
)
# A release is a write of the share coordinator.
RELEASES_PER_TURN = 100
ENDS_PER_TURN = 1_000


class ShareBroker(HostBroker, Protocol):
    """The broker of the share partitions."""

    @property
    def log_dirs(self) -> LogDirs: ...
    @property
    def share_persister(self) -> StateSender: ...


class SharePartitionManager:
    """All share partitions and share sessions of one broker."""

    __slots__ = (
        "_broker",
        "_left_groups",
        "_lock_timers",
        "_locks",
        "_partitions",
        "_unreleased",
        "node_id",
        "sessions",
    )

    def __init__(self, broker: ShareBroker) -> None:
        self._broker = broker
        self.node_id = broker.node_id
        self._locks = broker.services.clock_domains.locks
        self._lock_timers: DueTimers[SharePartitionKey] = DueTimers(lambda: broker.state == PAUSED)
        self._partitions: dict[SharePartitionKey, SharePartition] = {}
        # What members whose session has ended still have, and groups whose last connection closed.
        self._unreleased: dict[SessionKey, dict[TopicPartitionKey, None]] = {}
        self._left_groups: set[str] = set()
        services = broker.services
        sessions_max = services.configs.get_int("group.share.max.share.sessions")
        room = services.session_room()
        self.sessions = ShareSessionCache(sessions_max, self._session_changed, room)

    # -- the environment of a share partition ------------------------------------------------------

    @property
    def persister(self) -> StateSender:
        return self._broker.share_persister

    @property
    def runtime(self) -> Runtime:
        return self._broker.services.runtime

    def now_ms(self) -> int:
        return self._locks.now_ms()

    def set_lock_timer(self, share_partition: SharePartition, deadline_ms: int) -> None:
        self._lock_timers.arm(self._locks, share_partition.key, deadline_ms, self._locks_due)

    def _locks_due(self, key: SharePartitionKey) -> None:
        share_partition = self._partitions.get(key)
        if share_partition is not None:
            following_ms = expire_locks(share_partition)
            self._lock_timers.arm(self._locks, key, following_ms, self._locks_due)

    def fence(self, share_partition: SharePartition) -> None:
        key = share_partition.key
        if self._partitions.get(key) is share_partition:
            del self._partitions[key]
            self._lock_timers.cancel(key)
            share_partition.fence()

    # -- share partitions --------------------------------------------------------------------------

    def get(self, group_id: str, topic_id: bytes, index: int) -> SharePartition | None:
        """The share partition, or None if no ShareFetch has created it."""
        return self._partitions.get((group_id, topic_id, index))

    def all(self) -> list[SharePartition]:
        return list(self._partitions.values())

    def get_or_create(self, group_id: str, target: ShareTarget) -> SharePartition:
        """The share partition of a target. Raises ApiError unless this broker leads it."""
        key = (group_id, *target.key)
        known = self._partitions.get(key)
        if known is not None:
            return known
        configs = ShareGroupConfigs(self._broker.services.configs, group_id)
        partition = self._led(target)
        created = SharePartition(self, group_id, target.topic_id, partition, configs)
        self._partitions[key] = created
        partition.watch(created)
        return created

    def _led(self, target: ShareTarget) -> Partition:
        partition = self._broker.image.partition(target.topic or "", target.partition)
        if partition is None:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if self._broker.log_dirs.is_offline(partition):
            raise ApiError(ErrorCode.KAFKA_STORAGE_ERROR)
        if partition.leader_id != self.node_id:
            raise ApiError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return partition

    def fence_if(self, share_partition: SharePartition, error: ApiError | None) -> None:
        """Fence the share partition if the error of a read or write says that it is not current."""
        if error is not None and error.error in FENCING_ERRORS:
            self.fence(share_partition)

    def initialization_failed(self, share_partition: SharePartition, error: ApiError) -> bool:
        """Remove a share partition that could not be initialized.

        Returns False if it is being initialized; then the fetch waits.
        """
        if error.error is ErrorCode.LEADER_NOT_AVAILABLE:
            return False
        self.fence(share_partition)
        return True

    # -- sessions ----------------------------------------------------------------------------------

    def _session_changed(self, key: SessionKey, reason: str) -> None:
        runtime = self.runtime
        if runtime.on_event:
            change = "closed" if reason else "opened"
            runtime.emit(ShareSessionChanged(runtime.now_ms(), self.node_id, *key, change, reason))

    def release_session(self, key: SessionKey, reason: str = FINAL) -> None:
        """Close a member's session, and release its acquired records, very many in turns."""
        session = self.sessions.drop(key, reason)
        if session is None:
            return
        left = dict.fromkeys(session.partitions)
        if key in self._unreleased:
            self._unreleased[key].update(left)
        else:
            self._unreleased[key] = left
            in_turns(self.runtime.timers, self._release_all(key, left))

    def _release_all(self, key: SessionKey, left: dict[TopicPartitionKey, None]) -> Iterator[None]:
        while left:
            for partition in list(islice(left, RELEASES_PER_TURN)):
                self.release_left(key, partition)
            if left:
                yield
        if self._unreleased.get(key) is left:
            del self._unreleased[key]
            self._end_if_left(key[0])

    def release_left(self, key: SessionKey, partition: TopicPartitionKey) -> None:
        """Release what a former session of the member still has of a partition: it uses the
        partition again.
        """
        left = self._unreleased.get(key)
        if left is None or partition not in left:
            return
        del left[partition]
        group_id, member_id = key
        share_partition = self.get(group_id, *partition)
        if share_partition is not None:
            release_acquired(share_partition, member_id, self._released(share_partition))
            share_partition.notify()

    def _released(self, share_partition: SharePartition) -> Callable[[ApiError | None], None]:
        return lambda error: self.fence_if(share_partition, error)

    def connection_closed(self, connection_id: int) -> None:
        """Close the session that a connection opened; without members, end the group's share
        partitions.
        """
        opened = self.sessions.connection_closed(connection_id)
        if opened is None:
            return
        key, is_open = opened
        if is_open:
            self.release_session(key, CONNECTION)
        self._left_groups.add(key[0])
        self._end_if_left(key[0])

    def _end_if_left(self, group_id: str) -> None:
        """End the share partitions of a group whose last connection is closed, once its members'
        records are released.
        """
        if group_id not in self._left_groups:
            return
        if any(group == group_id for group, _ in self._unreleased):
            return
        self._left_groups.discard(group_id)
        if not self.sessions.has_members(group_id):
            in_turns(self.runtime.timers, self._end_all(group_id))

    def _end_all(self, group_id: str) -> Iterator[None]:
        """End the share partitions of a group, until a member is back."""
        of_group = [each for each in self.all() if each.group_id == group_id]
        for some in in_parts(of_group, ENDS_PER_TURN):
            if self.sessions.has_members(group_id):
                return
            for share_partition in some:
                self.fence(share_partition)
            yield

    # -- life --------------------------------------------------------------------------------------

    def unload(self) -> None:
        """Drop everything: the broker's process ends, or share groups were disabled."""
        self.sessions.clear()
        for left in self._unreleased.values():
            left.clear()
        self._unreleased.clear()
        self._left_groups.clear()
        for share_partition in self.all():
            self.fence(share_partition)

    def resume(self) -> None:
        """Resume the broker: end the locks that were due while it was paused."""
        self._lock_timers.resume()
