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
    """One Kafka cluster: a `ClusterState` with rules, and with actions as methods."""

    def __init__(
        self,
        brokers: Sequence[BrokerSpec] = DEFAULT_BROKERS,
        configs: Mapping[str, str] | None = None,
        seed: int | None = None,
        now_ms: Callable[[], int] = lambda: 0,
        kafka_version: str = "4.3",
    ) -> None:
        super().__init__(brokers, configs, seed, now_ms, kafka_version)
        # The fault engine. `faults` is the engine while it has rules, else None; requests check it.
        self.fault_engine: FaultEngine | None = None
        self.faults: FaultEngine | None = None

    def perform(
        self, action: Action[Any, R], arguments: msgspec.Struct, cause: str | None = None
    ) -> R:
        """Carry out an action, see `registry.perform`."""
        return perform(self, action, arguments, cause)

    def keep_journal(self, journal: Journal) -> None:
        """Write all events to `journal` from now on."""
        self.runtime.journal = journal
        self.runtime.on_event.append(journal.event)
        self.on_topic_deleted.append(journal.topic_deleted)
        if journal.hops:
            self.intercept_hops()

    @property
    def client_links(self) -> ClientLinks:
        """The links between clients and brokers, which rules cut."""
        from mockbroker.core.faults.client_links import RuledClientLinks

        return RuledClientLinks(self)

    @property
    def live_states(self) -> ClusterStates:
        """The current states of groups, transactions, brokers and logs, for rules."""
        from mockbroker.core.faults.states import ClusterStates

        return ClusterStates(self)

    def intercept_hops(self) -> None:
        """Intercept hops while rules or the journal need them."""
        from mockbroker.core.faults.hops import intercept_hops

        intercept_hops(self, self.fault_engine)
