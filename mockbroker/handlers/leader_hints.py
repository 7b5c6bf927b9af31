"""The current leader beside the error of a broker that does not lead a partition (KIP-951)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from mockbroker.core.replication.partition import Partition
    from mockbroker.handlers.base import RequestContext

Node = TypeVar("Node")
MakeNode = Callable[[int, str, int, str | None], Node]


class LeaderHints:
    """The node endpoints of one response: each of its current leaders, once."""

    __slots__ = ("_context", "_leaders")

    def __init__(self, context: RequestContext) -> None:
        self._context = context
        self._leaders: list[int] = []

    def add_leader(self, partition: Partition) -> tuple[int, int]:
        """Leader id and epoch of the partition; the endpoints include the leader."""
        leader_id = partition.leader_id
        if leader_id not in self._leaders:
            self._leaders.append(leader_id)
        return leader_id, partition.leader_epoch

    def endpoints(self, make: MakeNode[Node]) -> list[Node]:
        """`make(node id, host, port, rack)` of each live leader that has the request's listener."""
        nodes = []
        for leader_id in self._leaders:
            broker = self._context.image.brokers.get(leader_id)
            if broker is None or broker.fenced:
                continue
            endpoint = broker.endpoints.get(self._context.listener)
            if endpoint is not None:
                nodes.append(make(leader_id, endpoint.host, endpoint.port, broker.rack))
        return nodes
