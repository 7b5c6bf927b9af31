"""The controller: registrations, fencing, and the changes of partitions that follow from them.

A broker *registers* and is *unfenced*; then it may lead and be in sync. In a controlled shutdown
its leaders move first, if another replica is in sync. When its session expires it is *fenced*: it
leaves every ISR, and its partitions get other leaders or none. After an unclean shutdown a broker
may lack the end of its logs. It is therefore out of sync and no eligible leader until it has caught
up (KIP-966).

A registration can be removed. The process continues as a follower, is never in sync, and is missing
from the metadata of clients. It registers at its next start. That registration counts as unclean,
because nothing shows how the process ended (ClusterControlManager.registerBroker).

One of the brokers is the active controller. Brokers forward requests to it. When it stops or is
paused, the next broker takes over at once, under a higher epoch. The quorum has no delay: changes
of partitions (see `elections`) take effect at once.

Source: ClusterControlManager, ReplicationControlManager, QuorumController.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from mockbroker.core.brokers.broker import Broker
from mockbroker.core.brokers.broker_life import RUNNING, STOPPED, ProcessEvent, after
from mockbroker.core.configs.differences import FAILURE_DETECTION
from mockbroker.core.events import (
    LOG_DIR_FAILED,
    BrokerChanged,
    ControllerChanged,
    LogDirFailed,
    NetworkChanged,
)
from mockbroker.core.log.flushing import flush, lose_power
from mockbroker.core.replication.elections import Election, PartitionChange
from mockbroker.core.replication.heartbeats import Heartbeats
from mockbroker.core.replication.leader_balance import LeaderBalance
from mockbroker.core.replication.network import links_between
from mockbroker.core.replication.partition import NO_LEADER, Partition

if TYPE_CHECKING:
    from mockbroker.core.metadata.metadata_publisher import MetadataPublisher
    from mockbroker.core.replication.replication_control import ReplicationControl
    from mockbroker.core.services import Services
    from mockbroker.core.timing.timers import Timer

CONTROLLED = "controlled"
UNCLEAN = "unclean"
POWER_LOSS = "power_loss"  # an unclean end that loses unflushed records
SESSION_EXPIRED = "session_expired"


class Controller:
    """The quorum's active controller, on any of the brokers."""

    __slots__ = (
        "_brokers",
        "_configs",
        "_control",
        "_fencing",
        "_metadata",
        "_processes",
        "_publisher",
        "_replication",
        "_runtime",
        "balance",
        "broker_epoch",
        "epoch",
        "heartbeats",
        "on_broker_state",
    )

    def __init__(
        self,
        services: Services,
        control: ReplicationControl,
        publisher: MetadataPublisher,
        processes: dict[int, Broker],
        brokers: dict[int, Broker],
    ) -> None:
        """`processes` are all brokers, `brokers` the registered ones. The controller updates
        both.
        """
        self._runtime = services.runtime
        self._configs = services.configs
        self._metadata = services.metadata
        self._control = control
        self._replication = control.replication
        self._publisher = publisher
        self._processes = processes
        self._brokers = brokers
        self._fencing: dict[int, Timer] = {}  # sessions that expire
        self.balance = LeaderBalance(control)
        control.on_leader_elected.append(self.balance.leader_changed)
        self.heartbeats = Heartbeats(services, processes, brokers, self)
        # Called with a broker whose process starts, stops, is paused, resumed or removed.
        self.on_broker_state: list[Callable[[Broker], None]] = []
        self.broker_epoch = 0  # the last one assigned
        self.epoch = 1

    @property
    def node_id(self) -> int:
        """The broker that is the active controller, -1 for none."""
        return self._metadata.image.controller_id

    def next_broker_epoch(self) -> int:
        """A new broker epoch for a registration."""
        self.broker_epoch += 1
        return self.broker_epoch

    # -- lives of brokers --------------------------------------------------------------------------

    def stop(self, broker: Broker, how: str, fence_after_ms: int | None = None) -> None:
        """End a broker's process: after its leaders have moved (`controlled`), or at once.

        After an unclean end the controller fences the broker `fence_after_ms` later, by default as
        `mockbroker.failure.detection` says; after a power loss at once. A broker that cannot reach
        the controller has no controlled shutdown.
        """
        controlled = how == CONTROLLED and broker.has_newest_image
        if controlled:
            broker.shutting_down = True
            self._emit_change(broker, "shutting down")
            self._leave_isrs(broker, "controlled_shutdown")
        broker.stopped_how = CONTROLLED if how == CONTROLLED else UNCLEAN
        self._transition(broker, ProcessEvent.STOP)
        self._resign_if_controller(broker)
        broker.drop_memory()
        self._publisher.publish(broker)  # it stops with the newest image and its own logs
        self._replication.broker_changed(broker.node_id)
        if how == CONTROLLED:
            flush(self._metadata.image.topics.values(), broker)
        if controlled:
            self.fence(broker, CONTROLLED)
        elif how == POWER_LOSS:
            self.fence(broker, "power_lost")
            lose_power(self._runtime, self._metadata.image.topics.values(), broker)
        else:
            self._heartbeats_ended(broker, fence_after_ms)

    def start(self, broker: Broker) -> None:
        """Start a new process under the same id: it registers, catches up and is unfenced."""
        known = broker.node_id in self._brokers
        if not known:
            self._register(broker)
        elif not broker.fenced:  # the session of the former process has not expired yet
            self.fence(broker, "registered_anew")
        broker.epoch = self.next_broker_epoch()
        broker.shutting_down = False
        broker.log_dirs.failed.clear()
        self._transition(broker, ProcessEvent.START)
        if broker.stopped_how == UNCLEAN or not known:
            self._handle_unclean_shutdown(broker)
        broker.stopped_how = ""
        flush(self._metadata.image.topics.values(), broker)
        self.unfence(broker)

    def add(self, broker: Broker) -> None:
        """Register a new broker."""
        broker.epoch = self.next_broker_epoch()
        processes = self._processes
        processes[broker.node_id] = broker
        _sort_by_id(processes)
        self._register(broker)
        self._handle_unclean_shutdown(broker)  # a removed broker may have had this id
        self._announce(broker)
        self.unfence(broker)
        self.heartbeats.reconcile()

    def _register(self, broker: Broker) -> None:
        broker.fenced = True
        brokers = self._brokers
        brokers[broker.node_id] = broker
        _sort_by_id(brokers)

    def unregister(self, broker: Broker) -> None:
        """Remove the registration: the broker leaves every ISR. Its process continues."""
        self.fence(broker, "unregistered")
        del self._brokers[broker.node_id]
        self._metadata.changed()
        self._emit_change(broker, "unregistered")
        self._replication.broker_changed(broker.node_id)

    def remove(self, broker: Broker) -> None:
        """Stop a broker, if it is not stopped, and remove its registration for good. Another one
        with its id has links that are up.
        """
        if broker.state != STOPPED:
            self.stop(broker, CONTROLLED)
        if broker.node_id in self._brokers:
            self.unregister(broker)
        del self._processes[broker.node_id]
        broker.state = after(broker.node_id, broker.state, ProcessEvent.REMOVE)
        self._notify(broker)
        self.heartbeats.reconcile()
        if self._replication.network.is_impaired(broker.node_id):
            self.heal_links([broker.node_id], sorted(self._processes))

    def fail_log_dir(self, broker: Broker, path: str) -> None:
        """Fail a log directory: its replicas leave their ISRs.

        A broker without another directory stops at once.
        """
        broker.log_dirs.failed.add(path)
        self._metadata.changed()
        self._runtime.emit(LogDirFailed(self._runtime.now_ms(), broker.node_id, path))
        if broker.log_dirs.failed >= set(broker.log_dirs.paths):
            self.stop(broker, UNCLEAN)
            return
        self._leave_isrs(broker, LOG_DIR_FAILED, path)
        self._replication.broker_changed(broker.node_id)

    def pause(self, broker: Broker, fence_after_ms: int) -> None:
        """Pause the process; the controller fences it when its session expires."""
        self._transition(broker, ProcessEvent.PAUSE)
        self._resign_if_controller(broker)
        self._replication.broker_changed(broker.node_id)
        self._heartbeats_ended(broker, fence_after_ms)

    def resume(self, broker: Broker) -> None:
        """Resume a paused process; its next heartbeat unfences it."""
        self._transition(broker, ProcessEvent.RESUME)
        if broker.has_newest_image:
            self.heartbeat_received(broker)
            self._take_over_if_vacant(broker)
        self._replication.broker_changed(broker.node_id)
        broker.resume()

    def _transition(self, broker: Broker, event: ProcessEvent) -> None:
        """Change the state of a process, and emit the change."""
        broker.state = after(broker.node_id, broker.state, event)
        self._announce(broker)

    def _announce(self, broker: Broker) -> None:
        self._emit_change(broker, broker.state)
        self._notify(broker)

    def _notify(self, broker: Broker) -> None:
        for observer in self.on_broker_state:
            observer(broker)

    # -- links to the controller -------------------------------------------------------------------

    def heal_links(self, left: list[int], right: list[int]) -> None:
        """Restore the links between these brokers both ways, and remove their delays."""
        self._replication.network.heal(links_between(left, right, both_ways=True))
        now_ms = self._runtime.now_ms()
        self._runtime.emit(NetworkChanged(now_ms, "healed", tuple(left), tuple(right), 0, True))
        self.links_changed(0)

    def links_changed(self, fence_after_ms: int | None) -> None:
        """Links were cut or healed: brokers may have lost or found the controller.

        Among the groups of brokers that reach each other, the largest has the controller; of equal
        groups the one that had it.
        """
        alive = [b.node_id for b in self._processes.values() if b.state != STOPPED]
        self._move_controller(
            [node_id for node_id in alive if self._processes[node_id].state == RUNNING]
        )
        lost = []
        for broker in [self._processes[node_id] for node_id in alive]:
            if not self.reaches(broker.node_id):
                if broker.has_newest_image:
                    lost.append(broker)
            elif not broker.has_newest_image:
                self._publisher.publish(broker)
                if broker.state == RUNNING:
                    self.heartbeat_received(broker)
        self._publisher.freeze(lost)
        for broker in lost:
            self._emit_change(broker, "unreachable")
            self._heartbeats_ended(broker, fence_after_ms)
        self._replication.links_changed()

    def reaches(self, node_id: int) -> bool:
        """Whether the links between a broker and the controller are up both ways."""
        return node_id == self.node_id or self._replication.network.reaches(node_id, self.node_id)

    def _move_controller(self, running: list[int]) -> None:
        """Move the controller to the largest group. Paused brokers elect none."""
        groups = self._replication.network.groups(running)
        if groups:
            size = max(map(len, groups))
            largest = [group for group in groups if len(group) == size]
            if all(self.node_id not in group for group in largest):
                alive = [node_id for node_id in largest[0] if self._is_alive(node_id)]
                self.take_over(min(alive or largest[0]))

    # -- sessions and fencing ----------------------------------------------------------------------

    def _heartbeats_ended(self, broker: Broker, fence_after_ms: int | None) -> None:
        """Heartbeats end: the session expires after this time, or earlier if it would have expired
        then. None leaves the time to `mockbroker.failure.detection`.
        """
        if broker.fenced:
            return
        if fence_after_ms is None:
            by_session = self._configs.get(FAILURE_DETECTION) == "session"
            timeout = "broker.session.timeout.ms"
            fence_after_ms = self._configs.get_int(timeout) if by_session else 0
        if fence_after_ms <= 0:
            self.fence(broker, SESSION_EXPIRED)
            return
        due_ms = self._runtime.now_ms() + fence_after_ms
        known_ms = self.fencing_at_ms(broker.node_id)
        self.fence_at(broker, due_ms if known_ms is None else min(known_ms, due_ms))

    def heartbeat_received(self, broker: Broker) -> None:
        """Handle a heartbeat. An unregistered broker stays unregistered until its next start."""
        self._cancel_fencing(broker)
        if broker.fenced and broker.node_id in self._brokers:
            self.unfence(broker)

    def expire(self, broker: Broker) -> None:
        """Fence a broker that has sent no heartbeat for the session timeout."""
        self.fence(broker, SESSION_EXPIRED)

    def fence_at(self, broker: Broker, due_ms: int) -> None:
        """Let a broker's session expire at `due_ms`, unless a heartbeat arrives before."""
        self._cancel_fencing(broker)
        self._fencing[broker.node_id] = self._runtime.timers.call_at(
            due_ms, partial(self.fence, broker, SESSION_EXPIRED)
        )

    def fencing_at_ms(self, node_id: int) -> int | None:
        """The time at which a broker is fenced unless a heartbeat arrives; None for never."""
        timer = self._fencing.get(node_id)
        return None if timer is None else timer.deadline_ms

    @property
    def fencing_count(self) -> int:
        """The number of brokers that are fenced unless a heartbeat arrives."""
        return len(self._fencing)

    def cancel_fencing(self) -> None:
        """Cancel every scheduled fencing."""
        for timer in self._fencing.values():
            timer.cancel()
        self._fencing.clear()

    def _cancel_fencing(self, broker: Broker) -> None:
        timer = self._fencing.pop(broker.node_id, None)
        if timer is not None:
            timer.cancel()

    def fence(self, broker: Broker, reason: str) -> None:
        """Fence a broker: it leaves every ISR and leads nothing."""
        self._cancel_fencing(broker)
        if broker.fenced:
            return
        broker.fenced = True
        self._metadata.changed()
        self._emit_change(broker, "fenced")
        self._resign_if_controller(broker)
        self._leave_isrs(broker, reason)

    def unfence(self, broker: Broker) -> None:
        """Unfence a broker: leaderless partitions may elect it."""
        self._cancel_fencing(broker)
        broker.fenced = False
        self._metadata.changed()
        self._emit_change(broker, "unfenced")
        self._take_over_if_vacant(broker)
        for partition in self._metadata.image.partitions():
            if partition.leader_id == NO_LEADER:
                self._change(partition).apply("unfenced")
        self._replication.broker_changed(broker.node_id)

    def _leave_isrs(self, broker: Broker, reason: str, path: str | None = None) -> None:
        """Remove the broker from every ISR, or from those of the replicas in one directory."""
        node_id, dir_of = broker.node_id, broker.log_dirs.dir_of
        for partition in self._metadata.image.partitions():
            if node_id in partition.isr and (path is None or dir_of(partition) == path):
                change = self._change(partition)
                change.isr.remove(node_id)
                change.apply(reason)

    def _handle_unclean_shutdown(self, broker: Broker) -> None:
        """Remove the broker from ISRs and ELRs after an unclean shutdown (KIP-966)."""
        node_id = broker.node_id
        if not self._control.elr_enabled:
            return
        for partition in self._metadata.image.partitions():
            if node_id in partition.isr or node_id in partition.elr:
                change = self._change(partition)
                change.isr = [n for n in change.isr if n != node_id]
                change.unclean_shutdown = node_id
                change.apply("unclean_shutdown")

    def _change(self, partition: Partition) -> PartitionChange:
        """A change with an unclean election where the topic allows it."""
        change = PartitionChange(self._control, partition)
        if partition.topic.configs.unclean_leader_election_enable:
            change.election = Election.UNCLEAN
        return change

    # -- which broker is the controller ------------------------------------------------------------

    def _is_alive(self, node_id: int) -> bool:
        broker = self._brokers.get(node_id)
        return broker is not None and not broker.fenced

    def _resign_if_controller(self, broker: Broker) -> None:
        """If this broker is the controller, move the controller to the next live broker. A paused
        broker takes over only from a fenced one, and only if no other runs.
        """
        if self.node_id != broker.node_id:
            return
        others = [n for n in self._brokers if n != self.node_id and self._is_alive(n)]
        running = [n for n in others if self._metadata.is_running(n)]
        if running or broker.fenced:
            self.take_over((running or others or [NO_LEADER])[0])

    def _take_over_if_vacant(self, broker: Broker) -> None:
        """Make this broker the controller, if it is live and the present controller is not, or is
        paused.
        """
        present = self.node_id
        if self._is_alive(broker.node_id) and not (
            self._is_alive(present) and self._metadata.is_running(present)
        ):
            self.take_over(broker.node_id)

    def take_over(self, node_id: int) -> None:
        """Make another broker the active controller, -1 for none."""
        former = self.node_id
        self._metadata.image.controller_id = node_id
        if node_id != NO_LEADER:
            self.epoch += 1
        now_ms = self._runtime.now_ms()
        self._runtime.emit(ControllerChanged(now_ms, node_id, self.epoch, former))
        self._metadata.changed()
        self.heartbeats.reconcile()

    def _emit_change(self, broker: Broker, change: str) -> None:
        now_ms = self._runtime.now_ms()
        self._runtime.emit(BrokerChanged(now_ms, broker.node_id, change, broker.epoch))


def _sort_by_id(brokers: dict[int, Broker]) -> None:
    """Sort brokers by their ids, in place."""
    ordered = sorted(brokers.items())
    brokers.clear()
    brokers.update(ordered)
