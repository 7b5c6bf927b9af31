"""A broker's own replica of a partition, and the leader's state of a follower.

A *replica* belongs to its broker: a log, the high watermark by the leader's last response, and the
fetcher that extends the log. A caught-up follower has none: it shares the leader's log (see
`replica_manager`).

A *follower state* belongs to the leader and dates from the follower's last fetch: its log end
offset, and the last time when it was caught up. The ISR, the high watermark and the low watermark
follow from it.

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
        self.fetcher: ReplicaFetcher | None = None  # set once the replica follows a leader

    @property
    def last_stable_offset(self) -> int:
        """The limit of a read_committed consumer on this broker."""
        return self.log.last_stable_offset(self.high_watermark)

    def update_high_watermark(self, offset: int) -> bool:
        """Set the leader's high watermark, up to the log end; False if nothing changes.

        A new leader's high watermark may be lower than the former one's; then this one decreases.
        """
        offset = max(min(offset, self.log.end_offset), self.log.start_offset)
        if offset == self.high_watermark:
            return False
        self.log.high_watermark_moved(self.high_watermark, offset)
        self.high_watermark = offset
        return True

    def truncate(self, offset: int) -> bool:
        """Truncate the log and the high watermark to `offset`; False if the log ends before."""
        if not self.log.truncate(offset):
            return False
        self.high_watermark = min(self.high_watermark, offset)
        self.log.producers.high_watermark_moved(self.high_watermark)
        return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop all records: the leader's log begins at `offset`, above the end of this one."""
        self.log.truncate_fully(offset)
        self.high_watermark = offset


class FollowerState:
    """A leader's state of one follower."""

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
        # Of the process that fetched last. After a restart records may be missing (KIP-903).
        self.broker_epoch = UNKNOWN_EPOCH
        self.fetched_offset = self.fetched_log_start = UNKNOWN_OFFSET
        self.caught_up_ms = self.last_fetch_ms = NEVER
        self.last_fetch_end_offset = UNKNOWN_OFFSET  # the leader's log end offset then

    @classmethod
    def caught_up(cls, node_id: int, log: ReplicaLog, now_ms: int) -> FollowerState:
        """The state of a follower with the leader's whole log."""
        state = cls(node_id)
        state.fetched_offset = state.last_fetch_end_offset = log.end_offset
        state.fetched_log_start = log.start_offset
        state.caught_up_ms = state.last_fetch_ms = now_ms
        return state

    @classmethod
    def reset(cls, node_id: int, *, in_sync: bool, now_ms: int) -> FollowerState:
        """The state under a new leader, which knows only the ISR (Replica.resetReplicaState)."""
        state = cls(node_id)
        state.caught_up_ms = now_ms if in_sync else NEVER
        return state

    def update_fetch_state(
        self,
        offset: int,
        log_start: int,
        leader_end_offset: int,
        now_ms: int,
        broker_epoch: int = UNKNOWN_EPOCH,
    ) -> None:
        """Update the state by a fetch from `offset` (Replica.updateFetchStateOrThrow)."""
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
        """Whether the follower counts as in sync: at the leader's log end now, or recently."""
        return self.fetched_offset == leader_end_offset or now_ms - self.caught_up_ms < lag_ms_max
