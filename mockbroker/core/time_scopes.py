"""The parts of a cluster whose time can be moved on alone, by name.

- `retention`: what is in the logs grows older, and retention drops what it no longer keeps;
- `compaction`: the cleaner's time, for its rounds, the age of records, and when tombstones may go;
- `groups`, `group:ID`: sessions, rebalances and the retention of offsets, of all groups or of one;
- `transactions`: transaction timeouts, and the expiry of transactional ids.

Whoever owns such a part takes its time and sets its timers here, and not at the cluster's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from mockbroker.core.scoped_timers import ScopedTimers

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster

GROUP = "group:"
CHOICES = "'retention', 'compaction', 'groups', 'group:ID' and 'transactions'"


class TimeScope(Protocol):
    """One part, for as long as it is being moved on. Times are ms since the epoch, its own."""

    def now_ms(self) -> int:
        """What time it is there."""
        ...

    def deadline_ms(self) -> int | None:
        """When the next timer there is due, or None."""
        ...

    def jump_to(self, at_ms: int) -> None:
        """Let it be `at_ms` there, and do what is due by then."""
        ...

    def spare_connected(self, by_ms: int) -> None:
        """Let the sessions of clients whose connection is open end that much later."""
        ...


class TimeScopes:
    """The times of one cluster's parts."""

    __slots__ = ("_cluster", "_own", "compaction", "groups", "transactions")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.groups = ScopedTimers(cluster.timers, cluster.now_ms)
        self.transactions = ScopedTimers(cluster.timers, cluster.now_ms)
        self.compaction = ScopedTimers(cluster.timers, cluster.now_ms)
        # Groups that were moved on alone; they keep their time wherever they are coordinated.
        self._own: dict[str, ScopedTimers] = {}

    def of_group(self, group_id: str) -> ScopedTimers:
        """The time that a group lives by."""
        return self._own.get(group_id, self.groups)

    def separate_group(self, group_id: str) -> ScopedTimers:
        """A time of its own for a group. What it has set so far is to be set anew by its owner."""
        found = self._own.get(group_id)
        if found is None:
            found = self._own[group_id] = ScopedTimers(self.groups, self.groups.now_ms)
        return found

    def find(self, only: str) -> TimeScope:
        """The part of this name. Raises ValueError, naming the choices, when there is none."""
        if only == "retention":
            from mockbroker.core.log.ageing import RetentionScope

            return RetentionScope(self._cluster)
        if only == "compaction":
            from mockbroker.core.log.ageing import CompactionScope

            return CompactionScope(self._cluster)
        if only == "transactions":
            return TransactionsScope(self.transactions)
        if only == "groups" or only.startswith(GROUP):
            from mockbroker.core.groups.time_scope import GroupScope, GroupsScope

            if only == "groups":
                return GroupsScope(self._cluster)
            return GroupScope(self._cluster, only.removeprefix(GROUP))
        raise ValueError(f"no part of a cluster is called {only!r}; there are {CHOICES}")


class TransactionsScope:
    """All transactional ids of a cluster."""

    def __init__(self, timers: ScopedTimers) -> None:
        self.now_ms = timers.now_ms
        self.deadline_ms = timers.deadline_ms
        self.jump_to = timers.jump_to

    def spare_connected(self, by_ms: int) -> None:
        """Nobody is spared: an open transaction does not depend on its producer's heartbeats."""
