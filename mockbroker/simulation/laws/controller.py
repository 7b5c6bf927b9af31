"""Laws of the controller: who leads, who is in sync, what a change of a partition may be.

The controller's own record of a partition is followed from one partition epoch to the next. Most
laws look at an event and at the state that was in force before it.
"""

from __future__ import annotations

from mockbroker.core.events import (
    BrokerChanged,
    Event,
    IsrChanged,
    LeaderChanged,
    LogDirFailed,
    NetworkChanged,
    ReplicasChanged,
)
from mockbroker.core.replication.partition import NO_LEADER, Partition
from mockbroker.simulation import observe
from mockbroker.simulation.laws.base import Key, Law, key_of, name_of
from mockbroker.simulation.observe import ObservedReplica, ReassignmentView, State
from mockbroker.simulation.plan import Step

# Why the ISR changes at a leader's request.
_CAUGHT_UP = "caught_up"
_LAGGING = "lagging"
# Reasons of actions: they choose a leader, or take members out that are alive.
_DROPPED = "dropped"
_SHRUNK = "shrunk"


def _changed_partition(law: Law, event: Event) -> Partition | None:
    """The partition that the controller has changed; None while a snapshot is restored."""
    if law.laws.restoring or not isinstance(event, LeaderChanged | IsrChanged | ReplicasChanged):
        return None
    return law.laws.cluster.partition(event.topic, event.partition)


class Transitions(Law):
    """No law: notes the last states of each partition for the laws of the controller."""

    name = "states are noted"
    events = (LeaderChanged, IsrChanged, ReplicasChanged)
    of_controller = True

    def begin(self) -> None:
        self.current: dict[
            Key, tuple[int, State, ReassignmentView]
        ] = {}  # with the partition epoch
        self.laws.former.clear()

    def look(self, partition: Partition, views: list[ObservedReplica]) -> None:  # noqa: ARG002
        self._note(partition)

    def on_event(self, event: Event) -> None:
        partition = _changed_partition(self, event)
        if partition is not None:
            self._note(partition)

    def _note(self, partition: Partition) -> None:
        key = key_of(partition)
        known = self.current.get(key)
        if known is None or known[0] != partition.partition_epoch:
            if known is not None:
                self.laws.former[key] = known
            cluster = self.laws.cluster
            state = observe.state_of(partition)
            reassignment = observe.reassignment_of(cluster, partition)
            self.current[key] = (partition.partition_epoch, state, reassignment)

    def forget(self) -> None:
        self.begin()


class _OfChanges(Law):
    """A law that compares a change by the controller with the state before it."""

    def on_event(self, event: Event) -> None:
        if self.laws.restoring or not isinstance(
            event, LeaderChanged | IsrChanged | ReplicasChanged
        ):
            return
        partition = self.laws.cluster.partition(event.topic, event.partition)
        if partition is None:
            return
        former = self.laws.former.get(key_of(partition))
        if former is not None:
            self.changed(partition, event, former[1], former[2])

    def changed(
        self,
        partition: Partition,
        event: LeaderChanged | IsrChanged | ReplicasChanged,
        former: State,
        reassignment: ReassignmentView,
    ) -> None:
        """The controller has changed a partition, which was in this state before."""
        raise NotImplementedError


class StatesHaveEpochs(Law):
    """Leader, ISR, ELR and replicas of a partition change only with a higher partition epoch, and
    the leader only with a higher leader epoch. The image of every broker has the partition as it
    was in one partition epoch.
    """

    name = "a partition epoch is one state"
    events = (LeaderChanged, IsrChanged, ReplicasChanged)
    of_controller = True

    def begin(self) -> None:
        self._states: dict[Key, dict[int, State]] = {}
        self._latest: dict[Key, int] = {}

    def look(self, partition: Partition, views: list[ObservedReplica]) -> None:
        self._judge(partition)
        for view in views:
            if view.known is not partition:
                self._judge_image(view.known, view.node_id)

    def on_event(self, event: Event) -> None:
        partition = _changed_partition(self, event)
        if partition is not None:
            self._judge(partition)

    def _judge(self, partition: Partition) -> None:
        key, epoch = key_of(partition), partition.partition_epoch
        states = self._states.setdefault(key, {})
        latest = self._latest.get(key)
        state = observe.state_of(partition)
        if latest is None or epoch > latest:
            if latest is not None:
                former = states[latest]
                if (
                    former.leader_id != state.leader_id
                    and state.leader_epoch <= former.leader_epoch
                ):
                    self.broken(
                        f"{name_of(partition)}: leader {state.leader_id} after "
                        f"{former.leader_id} under epoch {state.leader_epoch}"
                    )
            self._latest[key] = epoch
            states[epoch] = state
        elif epoch < latest:
            self.broken(f"{name_of(partition)}: partition epoch {epoch} after {latest}")
        elif states[epoch] != state:
            self.broken(
                f"{name_of(partition)}: {_said(state)} under partition epoch {epoch}, which was "
                f"{_said(states[epoch])}"
            )

    def _judge_image(self, known: Partition, node_id: int) -> None:
        written = self._states.get(key_of(known), {}).get(known.partition_epoch)
        state = observe.state_of(known)
        if written is not None and written != state:
            self.broken(
                f"{name_of(known)}: broker {node_id} has {_said(state)} under partition epoch "
                f"{known.partition_epoch}, which is {_said(written)}"
            )

    def forget(self) -> None:
        self.begin()


def _said(state: State) -> str:
    return (
        f"leader {state.leader_id} of epoch {state.leader_epoch}, ISR {list(state.isr)}, ELR "
        f"{list(state.elr)}, replicas {list(state.replicas)}"
    )


class ElectedInSync(_OfChanges):
    """A new leader was in the ISR. It was in the ELR only if no member of the ISR is alive. Any
    other election is reported as unclean, and leaves the leader alone in the ISR.
    """

    name = "leaders come from the ISR"
    events = (LeaderChanged,)

    def changed(
        self,
        partition: Partition,
        event: LeaderChanged | IsrChanged | ReplicasChanged,
        former: State,
        reassignment: ReassignmentView,  # noqa: ARG002
    ) -> None:
        if not isinstance(event, LeaderChanged) or event.leader_id == NO_LEADER:
            return
        leader = event.leader_id
        said = f"{name_of(partition)}: leader {leader} under epoch {event.leader_epoch}"
        if event.unclean:
            if event.isr != (leader,):
                self.broken(f"{said}, elected out of sync, has the ISR {list(event.isr)}")
            return
        if leader in former.isr or event.reason == _CAUGHT_UP:  # it joins and leads at once
            return
        cluster = self.laws.cluster
        able = [
            node_id
            for node_id in former.isr
            if node_id in partition.replicas and observe.is_able(cluster, partition, node_id)
        ]
        if able and event.reason != _SHRUNK:
            self.broken(f"{said} was not in the ISR {list(former.isr)}, of which {able} can lead")
        elif leader not in former.elr:
            self.broken(
                f"{said} was neither in the ISR {list(former.isr)} nor in the ELR "
                f"{list(former.elr)}"
            )


class SyncedAreAlive(_OfChanges):
    """Members of the ISR are alive and have their log directory, except for the last member of an
    ISR without KIP-966. An AlterPartition adds one replica, or removes some.
    """

    name = "in-sync replicas are alive"
    events = (IsrChanged, LogDirFailed)
    of_controller = True

    def look(self, partition: Partition, views: list[ObservedReplica]) -> None:  # noqa: ARG002
        cluster = self.laws.cluster
        isr = partition.isr
        gone = [n for n in isr if not observe.is_able(cluster, partition, n)]
        if gone and (cluster.elr_enabled or len(gone) < len(isr)):
            self.broken(f"{name_of(partition)}: {gone} of the ISR {isr} are not alive")

    def on_event(self, event: Event) -> None:
        super().on_event(event)
        if isinstance(event, LogDirFailed):
            for partition in observe.partitions(self.laws.cluster):
                if event.node_id in partition.isr:
                    self.laws.changed[partition] = None

    def changed(
        self,
        partition: Partition,
        event: LeaderChanged | IsrChanged | ReplicasChanged,
        former: State,
        reassignment: ReassignmentView,
    ) -> None:
        if not isinstance(event, IsrChanged):
            return
        joined = [n for n in event.isr if n not in former.isr]
        left = [n for n in former.isr if n not in event.isr and n not in reassignment.removing]
        if (event.reason == _CAUGHT_UP and (len(joined) != 1 or left)) or (
            event.reason == _LAGGING and joined
        ):
            self.broken(
                f"{name_of(partition)}: from {list(event.former)} to {list(event.isr)}, as the "
                f"leader requested ({event.reason})"
            )


class UncleanEndsCount(Law):
    """With KIP-966, a broker that is unfenced after an unclean shutdown is in no ISR and no ELR."""

    name = "unclean shutdowns leave the ISR"
    events = (BrokerChanged,)

    def begin(self) -> None:
        self._unclean: set[int] = set()

    def on_event(self, event: Event) -> None:
        if self.laws.restoring or not isinstance(event, BrokerChanged):
            return
        node_id, cluster = event.node_id, self.laws.cluster
        if event.change == "stopped":
            if observe.ended_uncleanly(cluster, node_id):
                self._unclean.add(node_id)
        elif event.change == "unfenced" and node_id in self._unclean:
            self._unclean.discard(node_id)
            if cluster.elr_enabled:
                self._judge(node_id)

    def _judge(self, node_id: int) -> None:
        for partition in observe.partitions(self.laws.cluster):
            if node_id in partition.isr or node_id in partition.elr:
                self.broken(
                    f"{name_of(partition)}: broker {node_id} ended uncleanly, and is back in the "
                    f"ISR {partition.isr} or ELR {list(partition.elr)}"
                )

    def forget(self) -> None:
        self.begin()


class ReassignmentsEnd(_OfChanges):
    """A reassignment ends when all of the target replicas are in sync, or is cancelled."""

    name = "reassignments end in sync"
    events = (ReplicasChanged,)

    def changed(
        self,
        partition: Partition,
        event: LeaderChanged | IsrChanged | ReplicasChanged,
        former: State,
        reassignment: ReassignmentView,
    ) -> None:
        if not isinstance(event, ReplicasChanged) or event.adding or event.removing:
            return
        left = set(former.replicas) - set(event.replicas)
        came = set(event.replicas) & set(reassignment.adding)
        if not came and not left - set(reassignment.adding):
            return  # cancelled, or another order
        absent = [n for n in event.replicas if n not in partition.isr]
        if absent:
            self.broken(
                f"{name_of(partition)}: from {list(former.replicas)} to {list(event.replicas)}, "
                f"while {absent} are not in the ISR {partition.isr}"
            )


class LeadersWherePossible(Law):
    """A partition has a leader if a member of its ISR is alive, or of its ELR if the ISR is empty.
    The exception is a leader that an action has dropped.
    """

    name = "eligible replicas lead"
    events = (LeaderChanged, BrokerChanged)
    of_controller = True

    def begin(self) -> None:
        self._dropped: set[Key] = set()

    def on_event(self, event: Event) -> None:
        if isinstance(event, LeaderChanged):
            partition = self.laws.cluster.partition(event.topic, event.partition)
            if partition is not None:
                key = key_of(partition)
                if event.leader_id == NO_LEADER and event.reason == _DROPPED:
                    self._dropped.add(key)
                else:
                    self._dropped.discard(key)
        elif isinstance(event, BrokerChanged) and event.change == "unfenced":
            for partition in observe.partitions(self.laws.cluster):
                if partition.leader_id == NO_LEADER and event.node_id in partition.replicas:
                    self.laws.changed[partition] = None

    def look(self, partition: Partition, views: list[ObservedReplica]) -> None:  # noqa: ARG002
        if partition.leader_id != NO_LEADER or partition.leader_epoch < 0:
            return
        if key_of(partition) in self._dropped:
            return
        cluster = self.laws.cluster
        able = [
            node_id
            for node_id in (partition.isr or partition.elr)
            if node_id in partition.replicas and observe.is_able(cluster, partition, node_id)
        ]
        if able:
            self.broken(
                f"{name_of(partition)} has no leader, and {able} can lead (ISR {partition.isr}, "
                f"ELR {list(partition.elr)})"
            )

    def forget(self) -> None:
        """The snapshot has partitions without a leader, too."""
        cluster = self.laws.cluster
        self._dropped = {
            key_of(each) for each in observe.partitions(cluster) if each.leader_id == NO_LEADER
        }


class OrderlyEnds(Law):
    """A controlled shutdown removes the broker from every ISR with another member, before its
    process ends.
    """

    name = "controlled shutdowns leave the ISR"
    events = (BrokerChanged,)

    def begin(self) -> None:
        self._leaving: set[int] = set()

    def on_event(self, event: Event) -> None:
        if not isinstance(event, BrokerChanged):
            return
        node_id = event.node_id
        if event.change == "shutting down":
            self._leaving.add(node_id)
        elif event.change == "stopped" and node_id in self._leaving:
            for partition in observe.partitions(self.laws.cluster):
                if node_id in partition.isr and len(partition.isr) > 1:
                    self.broken(
                        f"{name_of(partition)}: broker {node_id} has ended, and is still in the "
                        f"ISR {partition.isr}"
                    )
        if event.change != "shutting down":
            self._leaving.discard(node_id)


class LargestGroupHasController(Law):
    """After a change of links, the controller is in the largest group of running brokers that
    reach each other, or in one of several largest groups.
    """

    name = "the largest group has the controller"
    events = (NetworkChanged,)

    def begin(self) -> None:
        self._changed = False

    def on_event(self, event: Event) -> None:
        if isinstance(event, NetworkChanged) and event.change != "delayed":
            self._changed = True

    def after(self, step: Step) -> None:  # noqa: ARG002
        if not self._changed:
            return
        self._changed = False
        groups = observe.groups_of_running(self.laws.cluster)
        largest = max(map(len, groups), default=0)
        controller_id = self.laws.cluster.controller_id
        if groups and not any(controller_id in group for group in groups if len(group) == largest):
            self.broken(f"broker {controller_id} is the controller, of the groups {groups}")
