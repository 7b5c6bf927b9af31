"""The actions on a cluster, as methods of a mixin."""

from __future__ import annotations

from mockbroker.core.actions.audit import AuditActions
from mockbroker.core.actions.brokers import BrokerActions
from mockbroker.core.actions.clock import ClockActions
from mockbroker.core.actions.configs import ConfigActions
from mockbroker.core.actions.coordinators import CoordinatorActions
from mockbroker.core.actions.groups import GroupActions
from mockbroker.core.actions.logs import LogActions
from mockbroker.core.actions.network import NetworkActions
from mockbroker.core.actions.partitions import PartitionActions
from mockbroker.core.actions.registry import ACTIONS, find_action, parse_action
from mockbroker.core.actions.security import SecurityActions
from mockbroker.core.actions.share import ShareActions
from mockbroker.core.actions.streams import StreamsActions
from mockbroker.core.actions.transactions import TransactionActions

__all__ = ["ACTIONS", "Actions", "find_action", "parse_action"]


class Actions(
    BrokerActions,
    NetworkActions,
    PartitionActions,
    LogActions,
    CoordinatorActions,
    GroupActions,
    ShareActions,
    StreamsActions,
    TransactionActions,
    ClockActions,
    SecurityActions,
    ConfigActions,
    AuditActions,
):
    """All actions as methods. A subclass has `perform` (see `registry.Performer`)."""
