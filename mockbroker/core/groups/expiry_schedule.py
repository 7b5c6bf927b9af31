"""The schedule of a coordinator's checks for expired offsets.

Kafka checks every offsets.retention.check.interval.ms. Here a check that cannot find an expired
offset is skipped: a shard is checked after a change, and when its next offset expires.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from mockbroker.core.groups.expiry import expire_group
from mockbroker.core.groups.group import GROUPS_PER_TURN
from mockbroker.core.timing.timers import DueTimers
from mockbroker.core.timing.turns import in_turns

if TYPE_CHECKING:
    from mockbroker.core.configs.values import ClusterConfigs
    from mockbroker.core.groups.shard import GroupShard
    from mockbroker.core.runtime import Runtime
    from mockbroker.core.timing.domain_timers import DomainTimers


class ExpirySchedule:
    """The checks of one broker's shards, at multiples of the interval since construction."""

    __slots__ = (
        "_configs",
        "_domain",
        "_due",
        "_is_checking",
        "_runtime",
        "_shards",
        "_started_ms",
        "timers",
    )

    def __init__(
        self,
        runtime: Runtime,
        configs: ClusterConfigs,
        domain: DomainTimers,
        shards: Callable[[], Iterable[GroupShard]],
        is_paused: Callable[[], bool],
    ) -> None:
        """`shards` returns the loaded shards. While the broker `is_paused`, nothing expires."""
        self._runtime = runtime
        self._configs = configs
        self._shards = shards
        self._domain = domain
        self._started_ms = self._domain.now_ms()
        self._due: dict[GroupShard, int] = {}  # when its next offset expires
        self._is_checking = False
        self.timers: DueTimers[None] = DueTimers(is_paused)

    def shard_changed(self) -> None:
        """A shard has changed: include it in the next check."""
        self._arm(self._domain.now_ms())

    def _arm(self, at_ms: int) -> None:
        """Schedule a check at the first multiple of the interval from `at_ms` on, but not now."""
        interval_ms = self._configs.get_int("offsets.retention.check.interval.ms")
        earliest_ms = max(at_ms, self._domain.now_ms() + 1)
        check_ms = earliest_ms + (self._started_ms - earliest_ms) % interval_ms
        self.timers.arm(self._domain, None, check_ms, self._run)

    def _run(self, _: None) -> None:
        now_ms = self._domain.now_ms()
        if self._is_checking:
            self._arm(now_ms)  # after the check that goes on
            return
        loaded = dict.fromkeys(self._shards())
        self._due = {shard: due_ms for shard, due_ms in self._due.items() if shard in loaded}
        overdue = {shard for shard, due_ms in self._due.items() if due_ms <= now_ms}
        shards = [shard for shard in loaded if shard.changed or shard in overdue]
        in_turns(self._runtime.timers, self._check(shards))

    def _check(self, shards: list[GroupShard]) -> Iterator[None]:
        """Remove expired offsets of these shards."""
        self._is_checking = True
        retention_ms = self._configs.get_int("offsets.retention.minutes") * 60_000
        try:
            for shard in shards:
                self._due.pop(shard, None)
                yield from self._check_shard(shard, retention_ms)
        finally:
            self._is_checking = False
        for due_ms in self._due.values():
            self._arm(due_ms)

    def _check_shard(self, shard: GroupShard, retention_ms: int) -> Iterator[None]:
        groups = [group.group_id for group in shard.by_type()]
        next_ms: int | None = None
        changed = False
        for number, group_id in enumerate(groups, 1):
            left_ms = expire_group(shard, group_id, retention_ms)
            if left_ms is not None:
                due_ms = self._domain.now_ms() + left_ms
                next_ms = due_ms if next_ms is None else min(next_ms, due_ms)
            if number % GROUPS_PER_TURN == 0:
                shard.changed = False
                yield
                if shard.unloaded:
                    return
                changed = changed or shard.changed
        shard.changed = changed  # by others: what the check changed needs no other one
        if next_ms is not None:
            self._due[shard] = next_ms
