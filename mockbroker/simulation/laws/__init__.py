"""What must hold whatever happens.

Each law looks at what it needs: at partitions that have just changed, at events, or at everything
at the end. What an action or an unclean election may take is noted where it happens, and no law
complains of it afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.cluster import Cluster
from mockbroker.core.events import Event, RecordsRemoved, TopicChanged
from mockbroker.core.faults import arguments
from mockbroker.core.faults.actions import parse_action
from mockbroker.core.partition import Partition
from mockbroker.core.topic import GROUP_METADATA_TOPIC
from mockbroker.simulation import observe
from mockbroker.simulation import plan as plans
from mockbroker.simulation.laws.base import HistoryLaw, Judge, Key, Law, Violation, key_of
from mockbroker.simulation.laws.coordination import Answered
from mockbroker.simulation.laws.of_history import HISTORY_LAWS
from mockbroker.simulation.laws.records import AcknowledgedKept
from mockbroker.simulation.laws.replication import (
    AcknowledgedAlways,
    ControllerLives,
    HighWatermarkRises,
    Losses,
    OneLeaderAnEpoch,
    ReplicasAgree,
    StableOffsetFollows,
    UncleanOnlyWhereAllowed,
    WatermarksInOrder,
)
from mockbroker.simulation.plan import Step
from mockbroker.simulation.script import Call

if TYPE_CHECKING:
    from mockbroker.simulation.world import World

__all__ = ["HISTORY_LAWS", "LAWS", "STATE_LAWS", "HistoryLaw", "Law", "Laws", "Violation"]

STATE_LAWS: tuple[type[Law], ...] = (
    WatermarksInOrder,
    HighWatermarkRises,
    OneLeaderAnEpoch,
    ControllerLives,
    UncleanOnlyWhereAllowed,
    ReplicasAgree,
    StableOffsetFollows,
)
LAWS: tuple[type[HistoryLaw], ...] = (*STATE_LAWS, *HISTORY_LAWS)


class Laws(Judge):
    """All laws over one world."""

    def __init__(self, world: World) -> None:
        super().__init__(world.history)
        self.world = world
        # Partitions that have changed since the laws looked last.
        self.changed: dict[Partition, None] = {}
        self.unclean: set[tuple[str, int]] = set()
        self.held: set[Key] = set()  # where an action holds the last stable offset
        self.transactions_lost = False
        self._watched: dict[int, Partition] = {}
        self._mark: tuple[int, ...] = ()
        self._acknowledged = AcknowledgedAlways(self)
        self._answered = Answered(self)
        state: list[Law] = [Losses(self), self._acknowledged, *(law(self) for law in STATE_LAWS)]
        others = [law(self) for law in HISTORY_LAWS if law not in (AcknowledgedKept, Answered)]
        self._laws: list[HistoryLaw] = [*state, self._answered, *others]
        self._lookers = [law for law in state if type(law).look is not Law.look]
        self._listeners = [law for law in state if type(law).happened is not Law.happened]

    @property
    def cluster(self) -> Cluster:
        """The cluster as it is now."""
        return self.world.cluster

    # -- watching ----------------------------------------------------------------------------------

    def watch(self, cluster: Cluster) -> None:  # noqa: ARG002
        """A cluster begins: see its partitions come."""
        self._watched.clear()
        self._mark = ()
        self.changed.clear()

    def partition_changed(self, partition: Partition) -> None:
        """The partition's watcher."""
        self.changed[partition] = None

    def _watch_new(self) -> None:
        mark = observe.view_mark(self.cluster)
        if mark == self._mark:
            return
        self._mark = mark
        watched: dict[int, Partition] = {}
        for partition in observe.all_partitions(self.cluster):
            watched[id(partition)] = partition
            if id(partition) not in self._watched:
                partition.watch(self)
                self.changed[partition] = None
        for number, partition in self._watched.items():
            if number not in watched:
                partition.unwatch(self)
        self._watched = watched

    def look(self) -> None:
        """Judge what has changed."""
        self._watch_new()
        changed, self.changed = self.changed, {}
        seen = set()
        for each in changed:
            key = key_of(each)
            if key in seen:
                continue
            seen.add(key)
            partition = observe.partition_of(self.cluster, *key)
            if partition is None:
                continue
            views = observe.replicas(self.cluster, partition)
            for law in self._lookers:
                law.look(partition, views)
        self._acknowledged.settle_losses()

    def happened(self, event: Event) -> None:
        """Judge what was told."""
        for law in self._listeners:
            law.happened(event)
        if isinstance(event, RecordsRemoved) and event.topic == GROUP_METADATA_TOPIC:
            if event.reason == "truncation":
                # A coordinator goes by all that its log has, replicated or not: a generation may
                # be lost again of which members were told.
                self.meddled_groups.update(client.group for client in self.world.plan.clients)
        elif isinstance(event, TopicChanged) and event.change == "deleted":
            self._void_commits(event.topic)
            self.recreated.add(event.topic)
            if observe.is_coordinator_log(event.topic):
                self._forget_coordination(event.topic)

    # -- what may be lost --------------------------------------------------------------------------

    def before(self, step: Step) -> None:
        """Note what a step may take away, as long as it can be told."""
        if step.do in plans.OWN_STEPS:
            return
        match parse_action(step.do, step.arguments):
            case arguments.StopBroker(node=node, how="power_loss"):
                self._disk_lost(node)
            case arguments.FailLogDir(node=node):
                self._disk_lost(node)
            case arguments.Node(node=node) if step.do == "remove_broker":
                self._disk_lost(node)
            case arguments.AbortTransaction(topic=str() as topic, partition=int() as index):
                self._note(topic, index, self.meddled)
            case arguments.AssignGroup(group=group):
                self.meddled_groups.add(group)
            case arguments.Watermark(topic=topic) if step.do == "hold_last_stable_offset":
                found = self.cluster.topics.get(topic)
                for each in found.partitions if found else ():
                    self.held.add(key_of(each))
            case arguments.PartitionOffset(topic=topic, partition=index):
                self._note(topic, index, self.torn)

    def _note(self, topic: str, index: int, where: set[Key]) -> None:
        found = self.cluster.topics.get(topic)
        if found is not None:
            where.add((found.topic_id, index))

    def after(self, step: Step) -> None:
        """Note what a step has changed for all laws."""
        if step.do == plans.RESTORE and self.world.performed[plans.RESTORE]:
            for law in self._laws:
                law.forget()
        self.look()

    def _disk_lost(self, node_id: int) -> None:
        """Partitions of which nobody else is in sync may lose what only this broker has."""
        for partition in observe.partitions(self.cluster):
            if node_id not in partition.replicas:
                continue
            others = {*partition.isr, *partition.elr} - {node_id}
            if not others:
                self.forgive(partition)

    def forgive(self, partition: Partition) -> None:
        """Nobody may rely any more on what a partition had."""
        key = key_of(partition)
        for sent in self.history.sent:  # what is on its way back to its client among it
            if (sent.topic_id, sent.partition) == key:
                sent.voided = sent.voided or "disk lost"
        self.tear(partition)

    def tear(self, partition: Partition) -> None:
        """A partition may have lost what readers and coordinators have seen there."""
        self.torn.add(key_of(partition))
        if observe.is_coordinator_log(partition.topic.name):
            self._forget_coordination(partition.topic.name)

    def _forget_coordination(self, topic: str) -> None:
        """What coordinators knew may be lost: groups begin anew, and transactions stay undecided.

        A producer whose transactional id is not known any more gets an id of its own, and nobody
        ends what it had open.
        """
        self.transactions_lost |= topic == observe.TRANSACTIONS
        self._void_commits(None)
        self.meddled_groups.update(client.group for client in self.world.plan.clients)
        for transaction in self.history.transactions:
            for sent in transaction.batches:
                self.meddled.add((sent.topic_id, sent.partition))

    def _void_commits(self, topic: str | None) -> None:
        for commit in self.history.commits:
            if topic is None or commit.topic == topic:
                commit.voided = True

    def may_hang(self, partition: Partition) -> bool:
        """Whether a transaction may stay open here for good: its marker was lost, or nobody knows
        any more that there is one to write.
        """
        return self.transactions_lost or key_of(partition) in self.torn

    # -- judging -----------------------------------------------------------------------------------

    def silent(self, client: str, call: Call, since_ms: int) -> None:
        """A client has lost its patience with a broker that ran all the time."""
        self._answered.silent(client, call, since_ms)

    def conclude(self) -> None:
        """Everything is over: judge it as a whole."""
        found = list(observe.partitions(self.cluster))
        self.changed.update(dict.fromkeys(found))
        self.look()
        self.logs = [observe.log_view(partition) for partition in found]
        self.unsettled = self.world.unsettled()
        for law in self._laws:
            law.conclude()
