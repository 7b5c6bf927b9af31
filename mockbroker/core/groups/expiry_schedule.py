"""The schedule of a coordinator's checks for expired offsets.

Kafka checks every offsets.retention.check.interval.ms. Here a check that cannot find an expired
offset is skipped: a shard is checked after a change, and when its next offset expires.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from mockbroker.core.groups.expiry import expire
from mockbroker.core.timing.timers import DueTimers

if TYPE_CHECKING:
    from mockbroker.core.configs.values import ClusterConfigs
    from mockbroker.core.groups.shard import GroupShard
    from mockbroker.core.timing.domain_timers import DomainTimers


class ExpirySchedule:
    """The checks of one broker's shards, at multiples of the interval since construction."""

    __slots__ = ("_configs", "_domain", "_due", "_shards", "_started_ms", "timers")

    def __init__(
        self,
        configs: ClusterConfigs,
        domain: DomainTimers,
        shards: Callable[[], Iterable[GroupShard]],
        is_paused: Callable[[], bool],
    ) -> None:
        """`shards` returns the loaded shards. While the broker `is_paused`, nothing expires."""
        self._configs = configs
        self._shards = shards
        self._domain = domain
        self._started_ms = self._domain.now_ms()
        self._due: dict[GroupShard, int] = {}  # when its next offset expires
        self.timers: DueTimers[None] = DueTimers(is_paused)

    def shard_changed(self) -> None:
        """A shard has changed: include it in the next check."""
        self._arm(self._domain.now_ms())

    def expire_all(self) -> None:
        """Remove expired offsets of every shard now."""
        self._check(list(self._shards()))

    def _check(self, shards: list[GroupShard]) -> None:
        retention_ms = self._configs.get_int("offsets.retention.minutes") * 60_000
        for shard in shards:
            left_ms = expire(shard, retention_ms)
            shard.changed = False
            self._due.pop(shard, None)
            if left_ms is not None:
                due_ms = self._due[shard] = self._domain.now_ms() + left_ms
                self._arm(due_ms)

    def _arm(self, at_ms: int) -> None:
        """Schedule a check at the first multiple of the interval from `at_ms` on, but not now."""
        interval_ms = max(self._configs.get_int("offsets.retention.check.interval.ms"), 1)
        earliest_ms = max(at_ms, self._domain.now_ms() + 1)
        check_ms = earliest_ms + (self._started_ms - earliest_ms) % interval_ms
        self.timers.arm(self._domain, None, check_ms, self._run)

    def _run(self, _: None) -> None:
        now_ms = self._domain.now_ms()
        loaded = dict.fromkeys(self._shards())
        self._due = {shard: due_ms for shard, due_ms in self._due.items() if shard in loaded}
        overdue = {shard for shard, due_ms in self._due.items() if due_ms <= now_ms}
        self._check([shard for shard in loaded if shard.changed or shard in overdue])
        for due_ms in self._due.values():
            self._arm(due_ms)
