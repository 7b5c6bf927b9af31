"""The action on what the audit goes by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.actions.registry import action
from mockbroker.core.errors import ActionError
from mockbroker.core.journal.tracking import Tracking

if TYPE_CHECKING:
    from mockbroker.core.cluster_state import ClusterState


class AuditActions:
    """The action on what the audit goes by."""

    @action(Tracking)
    @staticmethod
    def track(cluster: ClusterState, wanted: Tracking) -> None:
        """Tell the audit what identifies the records of a topic, so that it finds duplicates."""
        journal = cluster.runtime.journal
        if journal is None:
            raise ActionError("this cluster keeps no journal: its journal_bytes are 0")
        journal.tracked[wanted.topic] = wanted
