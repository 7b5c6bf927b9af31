"""The quiescence of a cluster: all replicas in sync, all preferred leaders elected, all groups
stable.

A watch elects preferred leaders as soon as possible, because the controller checks for them only
every five minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from mockbroker.core.errors import ApiError
from mockbroker.core.replication.elections import elect_preferred_leader
from mockbroker.core.views.groups import group_views

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.events import Event
    from mockbroker.core.replication.partition import Partition

AT_REST = ("Stable", "Empty", "Dead")


def unsettled(cluster: Cluster) -> list[str]:
    """The obstacles to quiescence, one sentence each; empty if the cluster is at rest."""
    found = [
        sentence
        for topic in cluster.topics.values()
        for partition in topic.partitions
        for sentence in _of(partition)
    ]
    found += [
        f"group {group.group} is {group.state}"
        for group in group_views(cluster)
        if group.state not in AT_REST
    ]
    return found


def _of(partition: Partition) -> list[str]:
    name = f"{partition.topic.name}-{partition.index}"
    absent = [node_id for node_id in partition.replicas if node_id not in partition.isr]
    preferred = partition.replicas[0]
    found = []
    if absent:
        found.append(f"{name}: {_brokers(absent)} not in sync")
    if partition.leader_id != preferred:
        leader = f"broker {partition.leader_id}" if partition.leader_id >= 0 else "no broker"
        found.append(f"{name}: {leader} leads it, not broker {preferred}")
    return found


def _brokers(node_ids: list[int]) -> str:
    if len(node_ids) == 1:
        return f"broker {node_ids[0]} is"
    return f"brokers {', '.join(map(str, node_ids))} are"


class QuiescenceWatch:
    """Calls `settled` whenever a cluster is at rest, perhaps now. Call `stop` to end the watch.

    It must be used in the cluster's thread.
    """

    def __init__(self, cluster: Cluster, settled: Callable[[], None]) -> None:
        self._cluster = cluster
        self._settled = settled
        self._is_over = self._is_scheduled = False
        cluster.runtime.on_event.append(self._schedule_check)
        self._check()

    def stop(self) -> None:
        """End the watch."""
        self._is_over = True
        self._cluster.runtime.on_event.remove(self._schedule_check)

    def _schedule_check(self, event: Event) -> None:  # noqa: ARG002
        """Check in the next turn, because other events may follow."""
        if not self._is_scheduled:
            self._is_scheduled = True
            self._cluster.runtime.timers.call_at(self._cluster.runtime.now_ms(), self._check)

    def _check(self) -> None:
        self._is_scheduled = False
        if self._is_over:
            return
        self._elect()
        if not unsettled(self._cluster):
            self._settled()

    def _elect(self) -> None:
        for topic in list(self._cluster.topics.values()):
            for partition in topic.partitions:
                if partition.leader_id != partition.replicas[0]:
                    with suppress(ApiError):  # the preferred leader is not in sync or not alive
                        elect_preferred_leader(
                            self._cluster.replication_control, topic.name, partition.index
                        )
