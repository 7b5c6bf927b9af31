"""One broker's own copy of a partition, where that is not simply the leader's log.

A copy has two sides. What it *is*: a log and the high watermark its broker has heard of. And what
the leader *knows* of it, which is as old as the last fetch: how far it had come then, and when it
was caught up for the last time. The ISR, the high watermark and the low watermark follow from what
is known.

Source: kafka.cluster.Replica, ReplicaState.
"""

from __future__ import annotations

from mockbroker.core.log.replica_log import ReplicaLog

UNKNOWN_OFFSET = -1
NEVER = 0


class Replica:
    """A copy of a partition on broker `node_id`; fresh ones are taken for caught up."""

    __slots__ = (
        "caught_up_ms",
        "fetched_log_start",
        "fetched_offset",
        "high_watermark",
        "last_fetch_end_offset",
        "last_fetch_ms",
        "log",
        "node_id",
    )

    def __init__(
        self, node_id: int, log: ReplicaLog, high_watermark: int, now_ms: int = NEVER
    ) -> None:
        self.node_id = node_id
        self.log = log
        self.high_watermark = high_watermark
        # As the leader knows it, from the last fetch:
        self.fetched_offset = log.end_offset
        self.fetched_log_start = log.start_offset
        self.caught_up_ms = now_ms
        self.last_fetch_ms = now_ms
        self.last_fetch_end_offset = log.end_offset  # where the leader's log ended then

    # -- as it is ----------------------------------------------------------------------------------

    @property
    def last_stable_offset(self) -> int:
        """What a read_committed consumer may read up to on this broker."""
        unstable = self.log.producers.first_unstable_offset()
        return unstable if 0 <= unstable < self.high_watermark else self.high_watermark

    def follow_high_watermark(self, offset: int) -> bool:
        """Take over what the leader said, as far as the log reaches; False if nothing changes.

        A new leader may know less than the one before it: then a follower's HW goes back, too.
        """
        offset = max(min(offset, self.log.end_offset), self.log.start_offset)
        if offset == self.high_watermark:
            return False
        self.high_watermark = offset
        self.log.producers.high_watermark_moved(offset)
        return True

    def truncate(self, offset: int) -> bool:
        """Cut the log back to `offset`, and the high watermark with it; False if it ends before."""
        if not self.log.truncate(offset):
            return False
        self.high_watermark = min(self.high_watermark, offset)
        return True

    def start_anew(self, offset: int) -> None:
        """Drop everything: the leader's log begins at `offset`, beyond the end of this one."""
        self.log.truncate_fully(offset)
        self.high_watermark = offset

    # -- as the leader knows it --------------------------------------------------------------------

    def fetched(self, offset: int, log_start: int, leader_end_offset: int, now_ms: int) -> None:
        """Take note of a fetch from `offset`; everything below it is here
        (Replica.updateFetchStateOrThrow).
        """
        if offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif offset >= self.last_fetch_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, self.last_fetch_ms)
        self.fetched_offset = offset
        self.fetched_log_start = log_start
        self.last_fetch_end_offset = max(leader_end_offset, self.last_fetch_end_offset)
        self.last_fetch_ms = now_ms

    def forget_fetches(self, *, in_sync: bool, now_ms: int) -> None:
        """Another leader took over: it knows who is in sync, and nothing else
        (Replica.resetReplicaState).
        """
        self.fetched_offset = self.fetched_log_start = UNKNOWN_OFFSET
        self.caught_up_ms = now_ms if in_sync else NEVER
        self.last_fetch_ms = NEVER
        self.last_fetch_end_offset = UNKNOWN_OFFSET

    def is_caught_up(self, leader_end_offset: int, now_ms: int, lag_ms_max: int) -> bool:
        """Whether it counts as in sync: at the leader's end now, or not long ago."""
        return self.fetched_offset == leader_end_offset or now_ms - self.caught_up_ms < lag_ms_max
