"""No laws: notes of what only a simulated cluster shows, for laws of the history."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from mockbroker.core.replication.partition import Partition
from mockbroker.simulation import observe
from mockbroker.simulation.laws.base import FormerLeader, Key, Law, Span
from mockbroker.simulation.observe import ObservedReplica
from mockbroker.simulation.plan import Step

_Subject = TypeVar("_Subject", bound=Hashable)


class _Spans(Generic[_Subject]):
    """When something was so, of each subject. `end` gets what has ended, with its span."""

    def __init__(self, turn: Callable[[], int], end: Callable[[_Subject, Span], Any]) -> None:
        self._turn = turn
        self._end = end
        self._since: dict[_Subject, int] = {}  # the turn when it was first seen

    def note(self, subject: _Subject, *, holds: bool) -> None:
        """It is so now, or is not."""
        if holds:
            self._since.setdefault(subject, self._turn())
        elif subject in self._since:
            self._end(subject, Span(self._since.pop(subject), self._turn()))

    def conclude(self) -> None:
        """End the open spans."""
        for subject in list(self._since):
            self.note(subject, holds=False)


class GroupLoads(Law):
    """Notes when group coordinators load."""

    name = "loading group coordinators are noted"
    topics = frozenset((observe.GROUPS,))

    def begin(self) -> None:
        loads = self.laws.group_loads = []
        self._loads = _Spans[Key](self.laws.history.turn, lambda _, span: loads.append(span))

    def look(self, partition: Partition, views: list[ObservedReplica]) -> None:
        del views
        loads = any(shard.loading for _, shard in observe.shards(self.laws.cluster, partition))
        self._loads.note(partition.key, holds=loads)
        if loads:
            self.laws.look_later(self, partition)

    def look_again(self, partition: Partition) -> None:
        self.look(partition, [])

    def after(self, step: Step) -> None:
        del step
        topic = self.laws.cluster.topics.get(observe.GROUPS)
        for partition in topic.partitions if topic else ():
            self.look(partition, [])

    def conclude(self) -> None:
        self._loads.conclude()

    def forget(self) -> None:
        self.begin()


class FormerLeaders(Law):
    """Notes when a deposed leader still leads a partition, because its image is old."""

    name = "former leaders are noted"
    of_replicas = True  # with an old image, a broker has a replica of its own

    def begin(self) -> None:
        self.laws.former_leaders = []
        self._spans = _Spans[tuple[str, Key, int]](self.laws.history.turn, self._over)

    def _over(self, subject: tuple[str, Key, int], span: Span) -> None:
        assert self.laws.former_leaders is not None
        self.laws.former_leaders.append(FormerLeader(*subject, span))

    def look(self, partition: Partition, views: list[ObservedReplica]) -> None:
        topic, key, newest = partition.topic.name, partition.key, partition.leader_epoch
        for view in views:
            is_former = view.leads and view.leader_epoch < newest
            self._spans.note((topic, key, view.node_id), holds=is_former)
            if is_former:
                self.laws.look_later(self, partition)

    def look_again(self, partition: Partition) -> None:
        views = observe.replicas(self.laws.cluster, partition)
        self.look(partition, views)
        if len(views) <= 1:  # the replicas share one log again
            for node_id in partition.replicas:
                self._spans.note((partition.topic.name, partition.key, node_id), holds=False)

    def conclude(self) -> None:
        self._spans.conclude()

    def forget(self) -> None:
        self.begin()
