"""A broker's own copy of a partition, and what the leader knows of a follower.

A *replica* belongs to the broker that holds it: a log, the high watermark that this broker has
heard of, and the fetcher that keeps the log up to date. A follower that is caught up has none: it
shares the leader's log (see `replica_manager`).

A *follower state* belongs to the leader, and is as old as the follower's last fetch: how far the
follower had come then, and when it was caught up for the last time. The ISR, the high watermark and
the low watermark follow from it.

Source: kafka.cluster.Replica, ReplicaState.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.log.replica_log import ReplicaLog

if TYPE_CHECKING:
    from mockbroker.core.replication.fetcher import ReplicaFetcher

UNKNOWN_OFFSET = -1
UNKNOWN_EPOCH = -1
NEVER = 0


class Replica:
    """The copy of a partition on broker `node_id`."""

    __slots__ = ("fetcher", "high_watermark", "log", "node_id")

    def __init__(self, node_id: int, log: ReplicaLog, high_watermark: int) -> None:
        self.node_id = node_id
        self.log = log
        self.high_watermark = high_watermark
        self.fetcher: ReplicaFetcher | None = None  # there is one once it follows a leader

    @property
    def last_stable_offset(self) -> int:
        """What a read_committed consumer may read up to on this broker."""
        unstable = self.log.producers.first_unstable_offset()
        if not 0 <= unstable < self.high_watermark:
            return self.high_watermark
        return max(unstable, self.log.start_offset)

    def follow_high_watermark(self, offset: int) -> bool:
        """Take over what the leader said, as far as the log reaches; False if nothing changes.

        A new leader may know less than the one before it: then a follower's HW goes back, too.
        """
        offset = max(min(offset, self.log.end_offset), self.log.start_offset)
        if offset == self.high_watermark:
            return False
        self.log.high_watermark_moved(self.high_watermark, offset)
        self.high_watermark = offset
        return True

    def truncate(self, offset: int) -> bool:
        """Cut the log back to `offset`, and the high watermark with it; False if it ends before."""
        if not self.log.truncate(offset):
            return False
        self.high_watermark = min(self.high_watermark, offset)
        self.log.producers.high_watermark_moved(self.high_watermark)
        return True

    def start_anew(self, offset: int) -> None:
        """Drop everything: the leader's log begins at `offset`, beyond the end of this one."""
        self.log.truncate_fully(offset)
        self.high_watermark = offset


class FollowerState:
    """What a leader knows of one follower."""

    __slots__ = (
        "broker_epoch",
        "caught_up_ms",
        "fetched_log_start",
        "fetched_offset",
        "last_fetch_end_offset",
        "last_fetch_ms",
        "node_id",
    )

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        # Of the process that fetched last. Another one may have lost what that had (KIP-903).
        self.broker_epoch = UNKNOWN_EPOCH
        self.fetched_offset = self.fetched_log_start = UNKNOWN_OFFSET
        self.caught_up_ms = self.last_fetch_ms = NEVER
        self.last_fetch_end_offset = UNKNOWN_OFFSET  # where the leader's log ended then

    @classmethod
    def caught_up(cls, node_id: int, log: ReplicaLog, now_ms: int) -> FollowerState:
        """The state of a follower that has all of the leader's log."""
        state = cls(node_id)
        state.fetched_offset = state.last_fetch_end_offset = log.end_offset
        state.fetched_log_start = log.start_offset
        state.caught_up_ms = state.last_fetch_ms = now_ms
        return state

    @classmethod
    def unknown(cls, node_id: int, *, in_sync: bool, now_ms: int) -> FollowerState:
        """The state that a new leader begins with: it knows who is in sync, and nothing else
        (Replica.resetReplicaState).
        """
        state = cls(node_id)
        state.caught_up_ms = now_ms if in_sync else NEVER
        return state

    def fetched(
        self,
        offset: int,
        log_start: int,
        leader_end_offset: int,
        now_ms: int,
        broker_epoch: int = UNKNOWN_EPOCH,
    ) -> None:
        """Take note of a fetch from `offset`; the follower has everything below it
        (Replica.updateFetchStateOrThrow).
        """
        self.broker_epoch = broker_epoch
        caught_up_ms = 0
        if offset >= leader_end_offset:
            caught_up_ms = now_ms
        elif offset >= self.last_fetch_end_offset:
            caught_up_ms = self.last_fetch_ms
        self.caught_up_ms = max(self.caught_up_ms, caught_up_ms)
        self.fetched_offset = offset
        self.fetched_log_start = log_start
        self.last_fetch_end_offset = max(self.last_fetch_end_offset, leader_end_offset)
        self.last_fetch_ms = now_ms

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_ms_max: int) -> bool:
        """Whether it counts as in sync: at the leader's end now, or not long ago."""
        return self.fetched_offset == leader_end_offset or now_ms - self.caught_up_ms < lag_ms_max
