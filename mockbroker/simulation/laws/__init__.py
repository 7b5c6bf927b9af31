"""The laws: conditions that hold in every run.

A law checks the partitions that have just changed, events, or everything at the end. Losses that an
action or an unclean election may cause are noted when it happens, and no law reports them later.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from mockbroker.core.actions.brokers import FailLogDir, Node, StopBroker
from mockbroker.core.actions.clock import SetClock
from mockbroker.core.actions.groups import AssignGroup, GroupInstance, GroupMember
from mockbroker.core.actions.logs import AnyPartitions, DeleteRecords
from mockbroker.core.actions.partitions import OneOffset, Watermark
from mockbroker.core.actions.share import AcquiredRecords, DeliveryCount
from mockbroker.core.actions.streams import AssignTasks
from mockbroker.core.actions.transactions import AbortTransaction
from mockbroker.core.cluster import Cluster
from mockbroker.core.events import (
    Event,
    IsrChanged,
    LeaderChanged,
    RecordsRemoved,
    ReplicasChanged,
    TopicsChanged,
)
from mockbroker.core.ids import uuid_from_text
from mockbroker.core.metadata.topic import GROUP_METADATA_TOPIC
from mockbroker.core.replication.partition import Partition
from mockbroker.handlers.base import Outcome
from mockbroker.simulation import observe
from mockbroker.simulation import plan as plans
from mockbroker.simulation.clients.base import SimulatedClient
from mockbroker.simulation.history import OPEN
from mockbroker.simulation.laws.base import (
    HistoryLaw,
    JudgedWorld,
    Key,
    Law,
    StateJudge,
    Violation,
    key_of,
)
from mockbroker.simulation.laws.controller import (
    ElectedInSync,
    LargestGroupHasController,
    LeadersWherePossible,
    OrderlyEnds,
    ReassignmentsEnd,
    StatesHaveEpochs,
    SyncedAreAlive,
    Transitions,
    UncleanEndsCount,
)
from mockbroker.simulation.laws.coordination import Answered
from mockbroker.simulation.laws.coordinators import (
    ConsumersAdvance,
    CoordinatorsFollow,
    CoordinatorsKnow,
    EnoughReplicas,
    FetchesReport,
    PhasesEnd,
)
from mockbroker.simulation.laws.noting import FormerLeaders, GroupLoads
from mockbroker.simulation.laws.of_history import HISTORY_LAWS
from mockbroker.simulation.laws.producers import (
    AcknowledgedInTime,
    MarkersEndVerification,
    MarkersGoOn,
    ProducersFollow,
    TransactionsMove,
)
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
from mockbroker.simulation.laws.restarts import RestartsKeep
from mockbroker.simulation.laws.share_rest import RecordsAreDecided
from mockbroker.simulation.laws.shares import (
    SHARE_APIS,
    SHARE_LAWS,
    SHARE_RESETS,
    ShareLaw,
)
from mockbroker.simulation.laws.standing import (
    ChangesAreAnswered,
    CoordinatorsAwake,
    ForwardedGoOn,
    HighWatermarkWaits,
    LeadersKnowNoMore,
    NobodyWaitsInVain,
    NoEpochAhead,
    NothingWithoutAWay,
)
from mockbroker.simulation.laws.streams import TasksActiveOnce
from mockbroker.simulation.plan import Step
from mockbroker.simulation.script import Call
from mockbroker_protocol import ApiKey

__all__ = ["HISTORY_LAWS", "LAWS", "STATE_LAWS", "HistoryLaw", "Law", "Laws", "Violation"]

STATE_LAWS: tuple[type[Law], ...] = (
    WatermarksInOrder,
    HighWatermarkRises,
    OneLeaderAnEpoch,
    ControllerLives,
    UncleanOnlyWhereAllowed,
    ReplicasAgree,
    StableOffsetFollows,
    StatesHaveEpochs,
    ElectedInSync,
    SyncedAreAlive,
    UncleanEndsCount,
    ReassignmentsEnd,
    LeadersWherePossible,
    OrderlyEnds,
    LargestGroupHasController,
    HighWatermarkWaits,
    LeadersKnowNoMore,
    NothingWithoutAWay,
    NoEpochAhead,
    ChangesAreAnswered,
    NobodyWaitsInVain,
    CoordinatorsAwake,
    ForwardedGoOn,
    RestartsKeep,
    AcknowledgedInTime,
    ProducersFollow,
    TransactionsMove,
    MarkersGoOn,
    MarkersEndVerification,
    CoordinatorsFollow,
    CoordinatorsKnow,
    EnoughReplicas,
    PhasesEnd,
    ConsumersAdvance,
    FetchesReport,
    *SHARE_LAWS,
    RecordsAreDecided,
    TasksActiveOnce,
)
LAWS: tuple[type[HistoryLaw], ...] = (*STATE_LAWS, *HISTORY_LAWS)


Look = Callable[[Partition, list[observe.ObservedReplica]], None]
_AnswerLaw = FetchesReport | ConsumersAdvance | CoordinatorsKnow | ShareLaw | TasksActiveOnce


class Laws(StateJudge):
    """All laws over one world."""

    def __init__(self, world: JudgedWorld) -> None:
        super().__init__(world)
        # Where the log of each partition of __transaction_state ended when its leader began.
        self._transactions_loaded: dict[int, int] = {}
        self._watched: dict[int, Partition] = {}
        self._mark: tuple[int, ...] = ()
        self._acknowledged = AcknowledgedAlways(self)
        self._answered = Answered(self)
        self._in_time = AcknowledgedInTime(self)
        judging = [law(self) for law in STATE_LAWS if law is not AcknowledgedInTime]
        self._at_rest = next(law for law in judging if isinstance(law, RecordsAreDecided))
        self._forwarded = next(law for law in judging if isinstance(law, ForwardedGoOn))
        state: list[Law] = [
            Transitions(self),
            Losses(self),
            GroupLoads(self),
            FormerLeaders(self),
            self._acknowledged,
            self._in_time,
            *judging,
        ]
        others = [law(self) for law in HISTORY_LAWS if law not in (AcknowledgedKept, Answered)]
        self._laws: list[HistoryLaw] = [*state, self._answered, *others]
        self._idle_laws = [law for law in state if isinstance(law, CoordinatorsFollow)]
        self._share_laws = [law for law in state if isinstance(law, ShareLaw)]
        self._answer_laws: dict[ApiKey, Sequence[_AnswerLaw]] = {
            ApiKey.SHARE_FETCH: self._share_laws,
            ApiKey.SHARE_ACKNOWLEDGE: self._share_laws,
        }
        for law in state:
            if isinstance(law, FetchesReport):
                self._answer_laws[ApiKey.FETCH] = [law]
            elif isinstance(law, ConsumersAdvance):
                self._answer_laws[ApiKey.CONSUMER_GROUP_HEARTBEAT] = [law]
            elif isinstance(law, CoordinatorsKnow):
                self._answer_laws[ApiKey.OFFSET_COMMIT] = [law]
            elif isinstance(law, TasksActiveOnce):
                self._answer_laws[ApiKey.STREAMS_GROUP_HEARTBEAT] = [law]
        self._lookers = [law for law in state if type(law).look is not Law.look]
        # The same for a topic, with laws of the controller or without, and with those that compare
        # replicas or without, as they are needed.
        self._lookers_of: dict[tuple[str, bool, bool], list[Look]] = {}
        self._liveness: tuple[object, ...] | None = None  # of brokers, at the last look
        # The controller's state of a partition and the liveness of brokers at the last check of the
        # controller's laws, by topic and partition.
        self._judged: dict[tuple[str, int], tuple[object, ...]] = {}
        # The laws that an event goes to, by its type.
        self._takers: dict[type[Event], list[Callable[[Any], None]]] = {}
        for law in state:
            for kind in law.events:
                self._takers.setdefault(kind, []).append(law.on_event)
        for kind in (LeaderChanged, IsrChanged, ReplicasChanged):
            self._takers.setdefault(kind, []).append(self._partition_named)
        self._takers.setdefault(RecordsRemoved, []).append(self._records_removed)
        self._takers.setdefault(LeaderChanged, []).append(self._leader_changed)
        self._takers.setdefault(TopicsChanged, []).append(self._topics_changed)
        self._removal_laws = [law for law in state if type(law).gone is not Law.gone]
        self._before = [law for law in state if type(law).before is not Law.before]
        self._after = [law for law in state if type(law).after is not Law.after]

    # -- watching ----------------------------------------------------------------------------------

    def watch(self, cluster: Cluster) -> None:
        """A cluster begins: see its partitions come."""
        self.cluster = cluster
        self._watched.clear()
        self._transactions_loaded.clear()
        self._mark = ()
        self._judged.clear()
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
                self._judged.pop((partition.topic.name, partition.index), None)
                for law in self._removal_laws:
                    law.gone(partition)
        self._watched = watched

    def _look_again(self) -> None:
        now_ms = self.history.now_ms()
        for (law, key), since_ms in list(self.again.items()):
            if since_ms < now_ms:
                del self.again[law, key]
                partition = observe.partition_of(self.cluster, *key)
                if partition is not None:
                    law.look_again(partition)

    def look(self) -> None:
        """Check the partitions that have changed."""
        self._watch_new()
        if self.again:
            self._look_again()
        changed, self.changed = self.changed, {}
        cluster = self.cluster
        liveness = observe.liveness(cluster)
        if liveness == self._liveness:
            liveness = self._liveness  # so that marks of partitions compare fast
        else:
            self._liveness = liveness
        self.is_disturbed = observe.is_disturbed(cluster)
        # Where brokers have images of their own, several objects may stand for one partition.
        for key in dict.fromkeys([each.key for each in changed]):
            partition = cluster.image.partition_by_id(*key)
            if partition is None:
                continue
            views = observe.replicas(cluster, partition)
            topic = partition.topic.name
            which = (topic, self._has_written(topic, partition, liveness), len(views) > 1)
            for look in self._lookers_of.get(which) or self._choose(*which):
                look(partition, views)
        self._acknowledged.settle_losses()

    def _has_written(
        self, topic: str, partition: Partition, liveness: tuple[object, ...] | None
    ) -> bool:
        """Whether the laws of the controller have something new to look at in a partition."""
        if liveness is None:  # brokers may know it as it was
            return True
        now = (liveness, *observe.judged_by_controller(partition))
        where = (topic, partition.index)
        if self._judged.get(where) == now:
            return False
        self._judged[where] = now
        return True

    def _choose(self, topic: str, written: bool, several: bool) -> list[Look]:
        """The laws that look at a partition of a topic, in their order."""
        chosen = self._lookers_of[topic, written, several] = [
            law.look
            for law in self._lookers
            if (written or not law.of_controller)
            and (several or not law.of_replicas)
            and (law.topics is None or topic in law.topics)
        ]
        return chosen

    def _partition_named(self, event: LeaderChanged | IsrChanged | ReplicasChanged) -> None:
        """The state may change back before the next look: all laws look then."""
        self._judged.pop((event.topic, event.partition), None)

    def on_event(self, event: Event) -> None:
        """Pass an event to its laws."""
        for take in self._takers.get(type(event), ()):
            take(event)

    def _leader_changed(self, event: LeaderChanged) -> None:
        if event.topic == observe.SHARES and self.share_records_deleted:
            self.share_losses += 1  # the new leader cannot read what the former one knew
        partition = self.cluster.partition(event.topic, event.partition)
        if partition is not None and event.topic == observe.TRANSACTIONS and event.leader_id >= 0:
            self._transactions_loaded[event.partition] = partition.log.end_offset

    def _records_removed(self, event: RecordsRemoved) -> None:
        """A coordinator loads all records of its log, replicated or not. A later truncation may
        remove some of them, after members have got a generation and leaders markers.
        """
        if event.reason != "truncation":
            return
        if event.topic == observe.SHARES:
            self.forget_coordination(event.topic)
        if event.topic == GROUP_METADATA_TOPIC:
            self.disrupted_groups.update(client.group for client in self.world.plan.clients)
        elif (
            event.topic == observe.TRANSACTIONS
            and event.first_offset < self._transactions_loaded.get(event.partition, 0)
        ):
            self.forget_coordination(event.topic)

    def _topics_changed(self, event: TopicsChanged) -> None:
        for deleted in event.deleted:
            self.void_commits(deleted.topic)
            self.recreated.add(deleted.topic)
            self.deleted.add(uuid_from_text(deleted.topic_id))
            if observe.is_coordinator_log(deleted.topic):
                self.forget_coordination(deleted.topic)

    # -- what may be lost --------------------------------------------------------------------------

    def before(self, step: Step, action: msgspec.Struct | None) -> None:
        """Note the possible losses of a step before it is performed. `action` has the arguments of
        an action on the cluster.
        """
        self.restoring = step.do == plans.RESTORE
        for law in self._before:
            law.before(step)
        self._note_shares(action)
        match action:
            case StopBroker(node=node, how="power_loss"):
                self._disk_lost(node)
            case FailLogDir(node=node):
                self._disk_lost(node)
            case Node(node=node) if step.do == "remove_broker":
                self._disk_lost(node)
            case AbortTransaction(topic=str() as topic, partition=int() as index):
                self._note(topic, index, self.ended_by_action)
            case AbortTransaction(transactional_id=str() as name):
                self._abort(name)
            case AssignGroup(group=group) | AssignTasks(group=group):
                self.disrupted_groups.add(group)
            case GroupMember(group=group) | GroupInstance(group=group):
                self.groups_with_removals.add(group)
            case SetClock():  # members that are connected are waited for longer
                self.groups_with_removals.update(client.group for client in self.world.plan.clients)
            case Watermark(topic=topic) if step.do == "hold_last_stable_offset":
                found = self.cluster.topics.get(topic)
                for each in found.partitions if found else ():
                    self.held.add(key_of(each))
            case OneOffset(topic=topic, partition=index, offset=offset):
                self._note(topic, index, self.lossy)
                partition = self.cluster.partition(topic, index)
                if partition is not None and offset > partition.high_watermark:
                    self.excuse(partition)  # it acknowledges records that are not replicated

    def _note_shares(self, action: msgspec.Struct | None) -> None:
        """Note what an action may do to share groups."""
        match action:
            case DeleteRecords(topic=observe.SHARES) | AnyPartitions(topic=observe.SHARES):
                self.share_losses += 1
                self.share_records_deleted = True
            case AcquiredRecords(group=group) | DeliveryCount(group=group):
                self.reset_groups.add(group)  # records are delivered that would not be
            case _:
                pass

    def _abort(self, transactional_id: str) -> None:
        """An action aborts a producer's open transaction. Before TV2 its epoch stays the same, so
        that it may continue, and commit the rest of the transaction.
        """
        for transaction in self.history.transactions:
            if transaction.transactional_id == transactional_id and transaction.state == OPEN:
                self.ended_by_action.update(
                    (sent.topic_id, sent.partition) for sent in transaction.batches
                )
                for commit in transaction.commits:
                    commit.voided = True

    def _note(self, topic: str, index: int, where: set[Key]) -> None:
        found = self.cluster.topics.get(topic)
        if found is not None:
            where.add((found.topic_id, index))

    def after(self, step: Step) -> None:
        """Note what a step has changed for all laws."""
        if step.do == plans.RESTORE and self.world.performed[plans.RESTORE]:
            self._judged.clear()
            for law in self._laws:
                law.forget()
        if step.do in (plans.RESTORE, plans.RESTART):
            self.again.clear()
        if step.do == "set_clock":  # what is due by now has had no time yet
            self.again = dict.fromkeys(self.again, self.history.now_ms())
        if step.do == plans.RESTART and self.share_records_deleted:
            self.share_losses += 1
        self.restoring = False
        for each in self._after:
            each.after(step)
        self.look()

    def _disk_lost(self, node_id: int) -> None:
        """A partition without another in-sync replica may lose the records of this broker."""
        for partition in observe.partitions(self.cluster):
            if node_id not in partition.replicas:
                continue
            others = {*partition.isr, *partition.elr} - {node_id}
            if not others:
                self.excuse(partition)

    # -- judging -----------------------------------------------------------------------------------

    def timed_out(self, client: str, call: Call, since_ms: int) -> None:
        """A call has timed out, and its broker ran all the time."""
        self._answered.timed_out(client, call, since_ms)
        self._forwarded.timed_out(client, call, since_ms)

    def on_request(self, client: SimulatedClient, call: Call) -> None:
        """A broker has got a request."""
        if call.api_key not in SHARE_APIS:
            return
        self.sent(call)
        for law in self._share_laws:
            law.on_request(client, call)

    def sent(self, call: Call) -> None:
        """A client sends a request, which a broker may carry out without an answer."""
        if call.api_key in SHARE_RESETS:
            names = call.request.groups_names if call.api_key is ApiKey.DELETE_GROUPS else ()
            self.reset_groups.update(names or (call.request.group_id,))

    def on_response(
        self,
        client: SimulatedClient,
        call: Call,
        response: Any,
        *,
        since_ms: int,
        late: bool = False,
    ) -> None:
        """A broker has made an answer to a request of `since_ms`, `late` where it had parked the
        request. No rule has fired for it.
        """
        if isinstance(response, Outcome):
            return
        if call.api_key is ApiKey.PRODUCE and self.world.has_run_since(call.node_id, since_ms):
            self._in_time.produced(call, response)
        for law in self._answer_laws.get(call.api_key, ()):
            law.on_response(client, call, response, late=late)

    def on_received(self, client: SimulatedClient, call: Call, response: Any) -> None:
        """A client has got an answer."""
        if call.api_key is ApiKey.SHARE_FETCH and not client.is_awaited:
            self._at_rest.on_received(call, response)

    def resting(self) -> None:
        """Time has passed without faults and requests."""
        for law in self._idle_laws:
            law.resting()

    def conclude(self) -> None:
        """Check the whole run at its end."""
        found = list(observe.partitions(self.cluster))
        self.changed.update(dict.fromkeys(found))
        self.look()
        self.logs = [observe.log_view(partition) for partition in found]
        self.unsettled = self.world.unsettled()
        for law in self._laws:
            law.conclude()
