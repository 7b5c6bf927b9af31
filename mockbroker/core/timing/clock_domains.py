"""The clock domains of a cluster, by name: the parts whose clock can be advanced alone.

- `retention`: the age of segments;
- `compaction`: the rounds of the cleaner, the age of records and the deletion of tombstones;
- `groups`, `group:ID`: sessions, rebalances and the retention of offsets, of all groups or of one;
- `locks`: the acquisition locks of share groups;
- `transactions`: transaction timeouts, and the expiration of transactional ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from mockbroker.core.validation import nearest

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.timing.domain_timers import DomainTimers

GROUP = "group:"
_DOMAINS = ("retention", "compaction", "groups", "locks", "transactions")
CHOICES = "'retention', 'compaction', 'groups', 'group:ID', 'locks' and 'transactions'"


class ClockDomain(Protocol):
    """One clock domain during an advance. All times are the domain's, in ms since the epoch."""

    def now_ms(self) -> int:
        """The domain's time."""
        ...

    def deadline_ms(self) -> int | None:
        """The deadline of the domain's next timer, or None."""
        ...

    def jump_to(self, at_ms: int) -> None:
        """Set the domain's time to `at_ms`, and run the timers that are due."""
        ...

    def extend_connected_sessions(self, by_ms: int) -> None:
        """Extend the sessions of clients with an open connection by `by_ms`."""
        ...


def find_domain(cluster: Cluster, only: str) -> ClockDomain:
    """The clock domain named `only`. Raises ValueError with the choices if there is none."""
    if only == "retention":
        from mockbroker.core.log.added_age import RetentionDomain

        return RetentionDomain(cluster.log_manager, cluster.runtime)
    if only == "compaction":
        from mockbroker.core.log.added_age import CompactionDomain

        return CompactionDomain(cluster.log_manager, cluster.clock_domains.compaction)
    if only == "transactions":
        return TimersDomain(cluster.clock_domains.transactions)
    if only == "locks":
        return TimersDomain(cluster.clock_domains.locks)
    if only == "groups" or only.startswith(GROUP):
        from mockbroker.core.groups.clock_domain import GroupDomain, GroupsDomain

        if only == "groups":
            return GroupsDomain(cluster)
        return GroupDomain(cluster, only.removeprefix(GROUP))
    near = nearest(only, _DOMAINS, listed=False)
    raise ValueError(f"no part of a cluster is called {only!r}{near or '; there are ' + CHOICES}")


class TimersDomain:
    """All transactional ids, or all acquisition locks, of a cluster."""

    def __init__(self, timers: DomainTimers) -> None:
        self.now_ms = timers.now_ms
        self.deadline_ms = timers.deadline_ms
        self.jump_to = timers.jump_to

    def extend_connected_sessions(self, by_ms: int) -> None:
        """Nothing to do: neither transactions nor locks have sessions with heartbeats."""
