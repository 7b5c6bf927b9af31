"""The action on the audit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.actions.registry import action
from mockbroker.core.errors import ActionError
from mockbroker.core.journal.tracking import Tracking

if TYPE_CHECKING:
    from mockbroker.core.cluster_state import ClusterState


class AuditActions:
    """The action on the audit."""

    @action(Tracking)
    @staticmethod
    def track(cluster: ClusterState, wanted: Tracking) -> None:
        """Set the fields by which the audit identifies records of a topic and finds duplicates."""
        journal = cluster.runtime.journal
        if journal is None:
            raise ActionError("this cluster keeps no journal: its journal_bytes are 0")
        journal.tracked[wanted.topic] = wanted
