"""When a coordinator looks for offsets that have outlived their retention.

Kafka looks every offsets.retention.check.interval.ms. So it is here, but rounds that could find
nothing do not take place: a shard is looked at after it was *touched*, which is to say that a group
or an offset in it has changed, and when the next of its offsets comes to the end of its time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from mockbroker.core.groups.expiry import expire

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.groups.shard import GroupShard
    from mockbroker.core.timers import Timer


class ExpiryRounds:
    """The rounds over one broker's shards, on a grid of times that begins when this is made."""

    __slots__ = ("_cluster", "_due", "_shards", "_started_ms", "_timer", "_times")

    def __init__(self, cluster: Cluster, shards: Callable[[], Iterable[GroupShard]]) -> None:
        """`shards` tells of those that are there and loaded."""
        self._cluster = cluster
        self._shards = shards
        self._times = cluster.time_scopes.groups
        self._started_ms = self._times.now_ms()
        self._due: dict[GroupShard, int] = {}  # when something expires there if nothing happens
        self._timer: Timer | None = None

    def touched(self) -> None:
        """A shard was: look at it in the next round."""
        self._arm(self._times.now_ms())

    def expire_all(self) -> None:
        """Drop now what has expired, in every shard."""
        self._visit(list(self._shards()))

    def _visit(self, shards: list[GroupShard]) -> None:
        retention_ms = self._cluster.config_int("offsets.retention.minutes") * 60_000
        for shard in shards:
            left_ms = expire(shard, retention_ms)
            shard.touched = False
            self._due.pop(shard, None)
            if left_ms is not None:
                due_ms = self._due[shard] = self._times.now_ms() + left_ms
                self._arm(due_ms)

    def _arm(self, at_ms: int) -> None:
        """Have a round at the first time of the grid that is at `at_ms` or after, and after now."""
        interval_ms = max(self._cluster.config_int("offsets.retention.check.interval.ms"), 1)
        earliest_ms = max(at_ms, self._times.now_ms() + 1)
        round_ms = earliest_ms + (self._started_ms - earliest_ms) % interval_ms
        timer = self._timer
        if timer is not None:
            if timer.deadline_ms <= round_ms:
                return
            timer.cancel()
        self._timer = self._times.call_at(round_ms, self._run)

    def _run(self) -> None:
        self._timer = None
        now_ms = self._times.now_ms()
        here = dict.fromkeys(self._shards())
        self._due = {shard: due_ms for shard, due_ms in self._due.items() if shard in here}
        overdue = {shard for shard, due_ms in self._due.items() if due_ms <= now_ms}
        self._visit([shard for shard in here if shard.touched or shard in overdue])
        for due_ms in self._due.values():
            self._arm(due_ms)
