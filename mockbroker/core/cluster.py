"""A cluster as everybody outside the core has it: its state, its rules, and the actions on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from mockbroker.core.actions import Actions
from mockbroker.core.actions.registry import Action, perform
from mockbroker.core.brokers.broker import BrokerSpec
from mockbroker.core.cluster_state import DEFAULT_BROKERS, ClientLinks, ClusterState

if TYPE_CHECKING:
    from mockbroker.core.faults.engine import FaultEngine
    from mockbroker.core.faults.states import ClusterStates
    from mockbroker.core.journal.journal import Journal

R = TypeVar("R")

__all__ = ["DEFAULT_BROKERS", "Cluster"]


class Cluster(ClusterState, Actions):
    """One Kafka cluster, as `ClusterState` has it, with actions as methods (see `actions`)."""

    def __init__(
        self,
        brokers: Sequence[BrokerSpec] = DEFAULT_BROKERS,
        configs: Mapping[str, str] | None = None,
        seed: int | None = None,
        now_ms: Callable[[], int] = lambda: 0,
        kafka_version: str = "4.3",
    ) -> None:
        super().__init__(brokers, configs, seed, now_ms, kafka_version)
        # The fault engine, and the same while it has rules: what requests look at is `faults`.
        self.fault_engine: FaultEngine | None = None
        self.faults: FaultEngine | None = None

    def perform(
        self, action: Action[Any, R], arguments: msgspec.Struct, cause: str | None = None
    ) -> R:
        """Carry out an action, see `registry.perform`."""
        return perform(self, action, arguments, cause)

    def keep_journal(self, journal: Journal) -> None:
        """From now on everything that happens is written down."""
        self.runtime.journal = journal
        self.runtime.on_event.append(journal.event)
        self.on_topic_deleted.append(journal.topic_deleted)
        if journal.hops:
            self.intercept_hops()

    @property
    def client_links(self) -> ClientLinks:
        """The ways from clients to brokers, which rules cut."""
        from mockbroker.core.faults.client_links import RuledClientLinks

        return RuledClientLinks(self)

    @property
    def live_states(self) -> ClusterStates:
        """What groups, transactions, brokers and logs are like just now, for rules."""
        from mockbroker.core.faults.states import ClusterStates

        return ClusterStates(self)

    def intercept_hops(self) -> None:
        """Have hops watched as long as rules or the journal want it."""
        from mockbroker.core.faults.hops import intercept_hops

        intercept_hops(self, self.fault_engine)
