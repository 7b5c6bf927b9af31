"""The parts of a cluster whose time can be moved on alone, by name.

- `retention`: what is in the logs grows older, and retention drops what it no longer keeps;
- `compaction`: the cleaner's time, for its rounds, the age of records, and when tombstones may go;
- `groups`, `group:ID`: sessions, rebalances and the retention of offsets, of all groups or of one;
- `transactions`: transaction timeouts, and the expiry of transactional ids.

Whoever owns such a part takes its time and sets its timers here, and not at the cluster's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.timing.domain_timers import DomainTimers

GROUP = "group:"
CHOICES = "'retention', 'compaction', 'groups', 'group:ID' and 'transactions'"


class ClockDomain(Protocol):
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


def find_domain(cluster: Cluster, only: str) -> ClockDomain:
    """The part of this name. Raises ValueError, naming the choices, when there is none."""
    if only == "retention":
        from mockbroker.core.log.added_age import RetentionDomain

        return RetentionDomain(cluster.log_manager, cluster.runtime)
    if only == "compaction":
        from mockbroker.core.log.added_age import CompactionDomain

        return CompactionDomain(cluster.log_manager, cluster.clock_domains.compaction)
    if only == "transactions":
        return TransactionsDomain(cluster.clock_domains.transactions)
    if only == "groups" or only.startswith(GROUP):
        from mockbroker.core.groups.clock_domain import GroupDomain, GroupsDomain

        if only == "groups":
            return GroupsDomain(cluster)
        return GroupDomain(cluster, only.removeprefix(GROUP))
    raise ValueError(f"no part of a cluster is called {only!r}; there are {CHOICES}")


class TransactionsDomain:
    """All transactional ids of a cluster."""

    def __init__(self, timers: DomainTimers) -> None:
        self.now_ms = timers.now_ms
        self.deadline_ms = timers.deadline_ms
        self.jump_to = timers.jump_to

    def spare_connected(self, by_ms: int) -> None:
        """Nobody is spared: an open transaction does not depend on its producer's heartbeats."""
