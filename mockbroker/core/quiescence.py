"""Coming to rest: every replica in sync, every preferred leader leading, every group stable.

What a script does next should not depend on how far the last step has got. Preferred leaders are
elected as soon as they may lead, because the controller itself looks for them every five minutes
only.
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
    """What is not at rest yet, in a sentence each; nothing when the cluster is settled."""
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
        leader = f"broker {partition.leader_id}" if partition.leader_id >= 0 else "nobody"
        found.append(f"{name}: {leader} leads it, and not broker {preferred}")
    return found


def _brokers(node_ids: list[int]) -> str:
    if len(node_ids) == 1:
        return f"broker {node_ids[0]} is"
    return f"brokers {', '.join(map(str, node_ids))} are"


class QuiescenceWatch:
    """Watches a cluster until it is settled, and calls `done` then, perhaps at once.

    Lives in the cluster's thread. Call `stop` when nobody waits any more.
    """

    def __init__(self, cluster: Cluster, done: Callable[[], None]) -> None:
        self._cluster = cluster
        self._done = done
        self._is_over = self._is_looking = False
        cluster.runtime.on_event.append(self._follow)
        self._look()

    def stop(self) -> None:
        """Watch no longer."""
        if not self._is_over:
            self._is_over = True
            self._cluster.runtime.on_event.remove(self._follow)

    def _follow(self, event: Event) -> None:  # noqa: ARG002
        """Something changed: look when it is over, since more may follow from it."""
        if not self._is_looking:
            self._is_looking = True
            self._cluster.runtime.timers.call_at(self._cluster.runtime.now_ms(), self._look)

    def _look(self) -> None:
        self._is_looking = False
        if self._is_over:
            return
        self._elect()
        if not unsettled(self._cluster):
            self.stop()
            self._done()

    def _elect(self) -> None:
        for topic in list(self._cluster.topics.values()):
            for partition in topic.partitions:
                if partition.leader_id != partition.replicas[0]:
                    with suppress(ApiError):  # it is not in sync, or not alive
                        elect_preferred_leader(
                            self._cluster.replication_control, topic.name, partition.index
                        )
