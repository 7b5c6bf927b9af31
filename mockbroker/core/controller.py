"""The controller: brokers that come and go, and what that means for the partitions they hold.

A broker *registers* and is *unfenced*; from then on it may lead and be in sync. When it asks to
shut down, its leaders move first, as long as there is anybody in sync to take over. When its
session ends without a word it is *fenced*: it leaves every ISR, and its partitions get other
leaders or none. A broker that comes back after an unclean end may have lost the end of its logs, so
it counts as out of sync and is no eligible leader until it has caught up (KIP-966).

A registration can be taken away. The process goes on without it: it follows, is never in sync, and
no client is told of it. It registers when it is started anew. There is nothing then to tell whether
its end was clean, so it counts as unclean (ClusterControlManager.registerBroker).

One of the brokers is the active controller. Every broker of Kafka forwards what is for the
controller, so clients hardly notice which one it is; when it stops, the next one takes over under a
higher epoch. Whatever partitions need (see `elections`) is done at once, as the quorum is never
slow here.

Source: ClusterControlManager, ReplicationControlManager, QuorumController.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mockbroker.core.broker import Broker
from mockbroker.core.broker_life import RUNNING, STOPPED, Step, after
from mockbroker.core.events import BrokerChanged, ControllerChanged, LogDirFailed
from mockbroker.core.log.flushing import flush, lose_power
from mockbroker.core.partition import NO_LEADER, Partition
from mockbroker.core.replication.elections import Election, PartitionChange
from mockbroker.core.replication.leader_balance import LeaderBalance

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster
    from mockbroker.core.timers import Timer

CONTROLLED = "controlled"
UNCLEAN = "unclean"
POWER_LOSS = "power_loss"  # an unclean end, with all that was not flushed
SESSION_EXPIRED = "session expired"


class Controller:
    """The quorum's active controller, whichever broker that is."""

    __slots__ = ("_cluster", "_fencing", "balance", "broker_epoch", "epoch")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._fencing: dict[int, Timer] = {}  # sessions that run out
        self.balance = LeaderBalance(cluster)
        self.broker_epoch = 0  # the last one that a registration was given
        self.epoch = 1

    @property
    def node_id(self) -> int:
        """The broker that is the active controller, -1 for none."""
        return self._cluster.image.controller_id

    def next_broker_epoch(self) -> int:
        """An epoch for a registration; each is used once."""
        self.broker_epoch += 1
        return self.broker_epoch

    # -- brokers come and go -----------------------------------------------------------------------

    def stop(self, broker: Broker, how: str, fence_after_ms: int = 0) -> None:
        """End a broker's process: after its leaders have moved, or without a warning.

        After a sudden end the controller fences it `fence_after_ms` later, and at once when its
        machine lost the power. A broker that has lost the controller cannot say that it leaves.
        """
        cluster = self._cluster
        says_so = how == CONTROLLED and broker.hears_controller
        if says_so:
            broker.shutting_down = True
            self._tell(broker, "shutting down")
            self._leave_isrs(broker, "controlled shutdown")
        broker.stopped_how = CONTROLLED if how == CONTROLLED else UNCLEAN
        self._take(broker, Step.STOP)
        broker.forget_memory()
        cluster.metadata.hear(
            broker
        )  # of its image nothing is left, and its logs are what they are
        cluster.replication.broker_changed(broker.node_id)
        if how == CONTROLLED:
            flush(cluster, broker)
        if says_so:
            self.fence(broker, CONTROLLED)
        elif how == POWER_LOSS:
            self.fence(broker, "power lost")
            lose_power(cluster, broker)
        else:
            self._contact_lost(broker, fence_after_ms)

    def start(self, broker: Broker) -> None:
        """Begin a new process under the same id: it registers, catches up and is unfenced."""
        cluster = self._cluster
        known = broker.node_id in cluster.brokers
        if not known:
            self._register(broker)
        elif not broker.fenced:  # the session of the process before it has not expired yet
            self.fence(broker, "registered anew")
        broker.epoch = self.next_broker_epoch()
        broker.shutting_down = False
        broker.log_dirs.failed.clear()
        self._take(broker, Step.START)
        if broker.stopped_how == UNCLEAN or not known:
            self._distrust(broker)
        broker.stopped_how = ""
        flush(cluster, broker)
        self.unfence(broker)

    def add(self, broker: Broker) -> None:
        """Let a new broker register."""
        broker.epoch = self.next_broker_epoch()
        processes = self._cluster.processes
        processes[broker.node_id] = broker
        _put_in_order(processes)
        self._register(broker)
        self._distrust(broker)  # a broker of that id may have been removed, with all that it had
        self._announce(broker)
        self.unfence(broker)

    def _register(self, broker: Broker) -> None:
        broker.fenced = True
        brokers = self._cluster.brokers
        brokers[broker.node_id] = broker
        _put_in_order(brokers)

    def unregister(self, broker: Broker) -> None:
        """Take the registration away: the broker leaves every ISR. Its process goes on."""
        cluster = self._cluster
        self.fence(broker, "unregistered")
        del cluster.brokers[broker.node_id]
        cluster.metadata_changed()
        self._tell(broker, "unregistered")
        cluster.replication.broker_changed(broker.node_id)

    def remove(self, broker: Broker) -> None:
        """Stop a broker, if it is not stopped, and take its registration away for good."""
        if broker.state != STOPPED:
            self.stop(broker, CONTROLLED)
        if broker.node_id in self._cluster.brokers:
            self.unregister(broker)
        del self._cluster.processes[broker.node_id]
        broker.state = after(broker.node_id, broker.state, Step.REMOVE)
        self._notify(broker)

    def fail_log_dir(self, broker: Broker, path: str) -> None:
        """A directory cannot be written to any more: its replicas leave their ISRs.

        A broker without another directory has nothing to live for, and ends at once.
        """
        cluster = self._cluster
        broker.log_dirs.failed.add(path)
        cluster.metadata_changed()
        cluster.tell(LogDirFailed(cluster.now_ms(), broker.node_id, path))
        if broker.log_dirs.failed >= set(broker.log_dirs.paths):
            self.stop(broker, UNCLEAN)
            return
        self._leave_isrs(broker, "log directory failed", path)
        cluster.replication.broker_changed(broker.node_id)

    def pause(self, broker: Broker, fence_after_ms: int) -> None:
        """Let the process stand still; the controller fences it when its session is over."""
        self._take(broker, Step.PAUSE)
        self._cluster.replication.broker_changed(broker.node_id)
        self._contact_lost(broker, fence_after_ms)

    def resume(self, broker: Broker) -> None:
        """Let a paused process go on; its next heartbeat brings it back."""
        self._take(broker, Step.RESUME)
        if broker.hears_controller:
            self._contact_found(broker)
        self._cluster.replication.broker_changed(broker.node_id)

    def _take(self, broker: Broker, step: Step) -> None:
        """Let a process take a step of its life, and tell of it."""
        broker.state = after(broker.node_id, broker.state, step)
        self._announce(broker)

    def _announce(self, broker: Broker) -> None:
        self._tell(broker, broker.state)
        self._notify(broker)

    def _notify(self, broker: Broker) -> None:
        for observer in self._cluster.on_broker_state:
            observer(broker)

    # -- brokers and their way to the controller ---------------------------------------------------

    def links_changed(self, fence_after_ms: int) -> None:
        """Some links went down or came up: brokers may have lost or found the controller.

        When brokers part, the largest group that still holds together has the controller; of equal
        groups the one that had it.
        """
        cluster = self._cluster
        alive = [b.node_id for b in cluster.processes.values() if b.state != STOPPED]
        self._seat([node_id for node_id in alive if cluster.processes[node_id].state == RUNNING])
        lost = []
        for broker in [cluster.processes[node_id] for node_id in alive]:
            if not self.reaches(broker.node_id):
                if broker.hears_controller:
                    lost.append(broker)
            elif not broker.hears_controller:
                cluster.metadata.hear(broker)
                if broker.state == RUNNING:
                    self._contact_found(broker)
        cluster.metadata.lose(lost)
        for broker in lost:
            self._tell(broker, "unreachable")
            self._contact_lost(broker, fence_after_ms)
        cluster.replication.links_changed()

    def reaches(self, node_id: int) -> bool:
        """Whether a broker and the controller can talk to each other."""
        network, controller_id = self._cluster.replication.network, self.node_id
        return node_id == controller_id or (
            network.is_up(node_id, controller_id) and network.is_up(controller_id, node_id)
        )

    def _seat(self, running: list[int]) -> None:
        """Let the largest group have the controller. Brokers that stand still elect none."""
        groups = self._cluster.replication.network.groups(running)
        if groups:
            size = max(map(len, groups))
            largest = [group for group in groups if len(group) == size]
            if all(self.node_id not in group for group in largest):
                alive = [node_id for node_id in largest[0] if self._is_up(node_id)]
                self.take_over(min(alive or largest[0]))

    # -- sessions and fencing ----------------------------------------------------------------------

    def _contact_lost(self, broker: Broker, fence_after_ms: int) -> None:
        """No heartbeat arrives any more: the session ends after that time, or when it would have
        ended anyway.
        """
        if broker.fenced:
            return
        if fence_after_ms <= 0:
            self.fence(broker, SESSION_EXPIRED)
            return
        due_ms = self._cluster.now_ms() + fence_after_ms
        known_ms = self.fencing_at_ms(broker.node_id)
        self.fence_at(broker, due_ms if known_ms is None else min(known_ms, due_ms))

    def _contact_found(self, broker: Broker) -> None:
        """Heartbeats arrive again. A broker without a registration has to be started for one."""
        self._cancel_fencing(broker)
        if broker.fenced and broker.node_id in self._cluster.brokers:
            self.unfence(broker)

    def fence_at(self, broker: Broker, due_ms: int) -> None:
        """Let a broker's session end at `due_ms`, unless a heartbeat arrives before."""
        self._cancel_fencing(broker)
        self._fencing[broker.node_id] = self._cluster.timers.call_at(
            due_ms, lambda: self.fence(broker, SESSION_EXPIRED)
        )

    def fencing_at_ms(self, node_id: int) -> int | None:
        """When a broker is going to be fenced, if it is not heard of before."""
        timer = self._fencing.get(node_id)
        return None if timer is None else timer.deadline_ms

    @property
    def fencing_count(self) -> int:
        """How many brokers are going to be fenced if they are not heard of."""
        return len(self._fencing)

    def cancel_fencing(self) -> None:
        """Fence nobody for what has been."""
        for timer in self._fencing.values():
            timer.cancel()
        self._fencing.clear()

    def _cancel_fencing(self, broker: Broker) -> None:
        timer = self._fencing.pop(broker.node_id, None)
        if timer is not None:
            timer.cancel()

    def fence(self, broker: Broker, reason: str) -> None:
        """The broker is not alive any more: it leaves every ISR and leads nothing."""
        self._cancel_fencing(broker)
        if broker.fenced:
            return
        broker.fenced = True
        self._cluster.metadata_changed()
        self._tell(broker, "fenced")
        self._resign_if(broker)
        self._leave_isrs(broker, reason)

    def unfence(self, broker: Broker) -> None:
        """The broker is alive: leaderless partitions may find their leader in it."""
        self._cancel_fencing(broker)
        broker.fenced = False
        self._cluster.metadata_changed()
        self._tell(broker, "unfenced")
        if self.node_id == NO_LEADER or not self._is_up(self.node_id):
            self.take_over(broker.node_id)
        self._for_each(self._elect_if_leaderless, "unfenced")
        self._cluster.replication.broker_changed(broker.node_id)

    def _leave_isrs(self, broker: Broker, reason: str, path: str | None = None) -> None:
        """Take the broker out of every ISR, or of those of the replicas in one directory."""
        node_id, place_of = broker.node_id, broker.log_dirs.place_of

        def leave(partition: Partition, reason: str) -> None:
            if node_id in partition.isr and (path is None or place_of(partition) == path):
                change = self._change(partition)
                change.isr.remove(node_id)
                change.apply(reason)

        self._for_each(leave, reason)

    def _distrust(self, broker: Broker) -> None:
        """After an unclean end: out of the ISR and of the eligible leaders."""
        node_id = broker.node_id
        if not self._cluster.elr_enabled:
            return

        def distrust(partition: Partition, reason: str) -> None:
            if node_id in partition.isr or node_id in partition.elr:
                change = self._change(partition)
                change.isr = [n for n in change.isr if n != node_id]
                change.unclean_shutdown = node_id
                change.apply(reason)

        self._for_each(distrust, "unclean shutdown")

    def _elect_if_leaderless(self, partition: Partition, reason: str) -> None:
        if partition.leader_id == NO_LEADER:
            self._change(partition).apply(reason)

    def _change(self, partition: Partition) -> PartitionChange:
        """A change in which an unclean election is held if the topic allows it."""
        change = PartitionChange(self._cluster, partition)
        if partition.topic.configs.unclean_leader_election_enable:
            change.election = Election.UNCLEAN
        return change

    def _for_each(self, act: Callable[[Partition, str], None], reason: str) -> None:
        for topic in list(self._cluster.topics.values()):
            for partition in topic.partitions:
                act(partition, reason)

    # -- which broker is the controller ------------------------------------------------------------

    def _is_up(self, node_id: int) -> bool:
        broker = self._cluster.brokers.get(node_id)
        return broker is not None and not broker.fenced

    def _resign_if(self, broker: Broker) -> None:
        """Let the next live broker take over, if this one is the controller."""
        if self.node_id == broker.node_id:
            others = [n for n in self._cluster.brokers if self._is_up(n)]
            self.take_over(others[0] if others else NO_LEADER)

    def take_over(self, node_id: int) -> None:
        """Let another broker be the active controller, -1 for none."""
        self._cluster.image.controller_id = node_id
        if node_id != NO_LEADER:
            self.epoch += 1
        self._cluster.tell(ControllerChanged(self._cluster.now_ms(), node_id, self.epoch))
        self._cluster.metadata_changed()

    def _tell(self, broker: Broker, change: str) -> None:
        now_ms = self._cluster.now_ms()
        self._cluster.tell(BrokerChanged(now_ms, broker.node_id, change, broker.epoch))


def _put_in_order(brokers: dict[int, Broker]) -> None:
    """Sort brokers by their ids, in place."""
    ordered = sorted(brokers.items())
    brokers.clear()
    brokers.update(ordered)
