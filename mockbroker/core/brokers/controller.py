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
controller, so clients hardly notice which one it is; when it stops or is paused, the next one takes
over at once, under a higher epoch. Whatever partitions need (see `elections`) is done at once, as
the quorum is never slow here.

Source: ClusterControlManager, ReplicationControlManager, QuorumController.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mockbroker.core.brokers.broker import Broker
from mockbroker.core.brokers.broker_life import RUNNING, STOPPED, ProcessEvent, after
from mockbroker.core.configs.differences import FAILURE_DETECTION
from mockbroker.core.events import BrokerChanged, ControllerChanged, LogDirFailed
from mockbroker.core.log.flushing import flush, lose_power
from mockbroker.core.replication.elections import Election, PartitionChange
from mockbroker.core.replication.heartbeats import Heartbeats
from mockbroker.core.replication.leader_balance import LeaderBalance
from mockbroker.core.replication.partition import NO_LEADER, Partition

if TYPE_CHECKING:
    from mockbroker.core.metadata.metadata_publisher import MetadataPublisher
    from mockbroker.core.replication.replication_control import ReplicationControl
    from mockbroker.core.services import Services
    from mockbroker.core.timing.timers import Timer

CONTROLLED = "controlled"
UNCLEAN = "unclean"
POWER_LOSS = "power_loss"  # an unclean end, with all that was not flushed
SESSION_EXPIRED = "session expired"


class Controller:
    """The quorum's active controller, whichever broker that is."""

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
        """`processes` are all brokers, `brokers` those that are registered; both are kept up to
        date here.
        """
        self._runtime = services.runtime
        self._configs = services.configs
        self._metadata = services.metadata
        self._control = control
        self._replication = control.replication
        self._publisher = publisher
        self._processes = processes
        self._brokers = brokers
        self._fencing: dict[int, Timer] = {}  # sessions that run out
        self.balance = LeaderBalance(control)
        control.on_leader_elected.append(self.balance.note)
        self.heartbeats = Heartbeats(services, processes, brokers, self)
        # Called with a broker whose process starts, stops, is paused, resumed or removed.
        self.on_broker_state: list[Callable[[Broker], None]] = []
        self.broker_epoch = 0  # the last one that a registration was given
        self.epoch = 1

    @property
    def node_id(self) -> int:
        """The broker that is the active controller, -1 for none."""
        return self._metadata.image.controller_id

    def next_broker_epoch(self) -> int:
        """An epoch for a registration; each is used once."""
        self.broker_epoch += 1
        return self.broker_epoch

    # -- brokers come and go -----------------------------------------------------------------------

    def stop(self, broker: Broker, how: str, fence_after_ms: int | None = None) -> None:
        """End a broker's process: after its leaders have moved, or without a warning.

        After a sudden end the controller fences it `fence_after_ms` later (None: as it detects
        failures), and at once when its machine lost the power. A broker that has lost the
        controller cannot say that it leaves.
        """
        says_so = how == CONTROLLED and broker.has_newest_image
        if says_so:
            broker.shutting_down = True
            self._emit_change(broker, "shutting down")
            self._leave_isrs(broker, "controlled shutdown")
        broker.stopped_how = CONTROLLED if how == CONTROLLED else UNCLEAN
        self._transition(broker, ProcessEvent.STOP)
        self._resign_if_controller(broker)
        broker.forget_memory()
        self._publisher.publish(broker)  # its image is gone, and its logs are what they are
        self._replication.broker_changed(broker.node_id)
        if how == CONTROLLED:
            flush(self._metadata.image.topics.values(), broker)
        if says_so:
            self.fence(broker, CONTROLLED)
        elif how == POWER_LOSS:
            self.fence(broker, "power lost")
            lose_power(self._runtime, self._metadata.image.topics.values(), broker)
        else:
            self._contact_lost(broker, fence_after_ms)

    def start(self, broker: Broker) -> None:
        """Begin a new process under the same id: it registers, catches up and is unfenced."""
        known = broker.node_id in self._brokers
        if not known:
            self._register(broker)
        elif not broker.fenced:  # the session of the process before it has not expired yet
            self.fence(broker, "registered anew")
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
        """Let a new broker register."""
        broker.epoch = self.next_broker_epoch()
        processes = self._processes
        processes[broker.node_id] = broker
        _put_in_order(processes)
        self._register(broker)
        self._handle_unclean_shutdown(
            broker
        )  # a broker of that id may have been removed, with all that it had
        self._announce(broker)
        self.unfence(broker)
        self.heartbeats.reconcile()

    def _register(self, broker: Broker) -> None:
        broker.fenced = True
        brokers = self._brokers
        brokers[broker.node_id] = broker
        _put_in_order(brokers)

    def unregister(self, broker: Broker) -> None:
        """Take the registration away: the broker leaves every ISR. Its process goes on."""
        self.fence(broker, "unregistered")
        del self._brokers[broker.node_id]
        self._metadata.changed()
        self._emit_change(broker, "unregistered")
        self._replication.broker_changed(broker.node_id)

    def remove(self, broker: Broker) -> None:
        """Stop a broker, if it is not stopped, and take its registration away for good."""
        if broker.state != STOPPED:
            self.stop(broker, CONTROLLED)
        if broker.node_id in self._brokers:
            self.unregister(broker)
        del self._processes[broker.node_id]
        broker.state = after(broker.node_id, broker.state, ProcessEvent.REMOVE)
        self._notify(broker)

    def fail_log_dir(self, broker: Broker, path: str) -> None:
        """A directory cannot be written to any more: its replicas leave their ISRs.

        A broker without another directory ends at once.
        """
        broker.log_dirs.failed.add(path)
        self._metadata.changed()
        self._runtime.emit(LogDirFailed(self._runtime.now_ms(), broker.node_id, path))
        if broker.log_dirs.failed >= set(broker.log_dirs.paths):
            self.stop(broker, UNCLEAN)
            return
        self._leave_isrs(broker, "log directory failed", path)
        self._replication.broker_changed(broker.node_id)

    def pause(self, broker: Broker, fence_after_ms: int) -> None:
        """Pause the process; the controller fences it when its session is over."""
        self._transition(broker, ProcessEvent.PAUSE)
        self._resign_if_controller(broker)
        self._replication.broker_changed(broker.node_id)
        self._contact_lost(broker, fence_after_ms)

    def resume(self, broker: Broker) -> None:
        """Let a paused process go on; its next heartbeat brings it back."""
        self._transition(broker, ProcessEvent.RESUME)
        if broker.has_newest_image:
            self.heartbeat_received(broker)
            self._take_over_if_vacant(broker)
        self._replication.broker_changed(broker.node_id)
        broker.resume()

    def _transition(self, broker: Broker, event: ProcessEvent) -> None:
        """Change the state of a process, and announce it."""
        broker.state = after(broker.node_id, broker.state, event)
        self._announce(broker)

    def _announce(self, broker: Broker) -> None:
        self._emit_change(broker, broker.state)
        self._notify(broker)

    def _notify(self, broker: Broker) -> None:
        for observer in self.on_broker_state:
            observer(broker)

    # -- brokers and their way to the controller ---------------------------------------------------

    def links_changed(self, fence_after_ms: int | None) -> None:
        """Some links went down or came up: brokers may have lost or found the controller.

        When brokers part, the largest group that still holds together has the controller; of equal
        groups the one that had it.
        """
        alive = [b.node_id for b in self._processes.values() if b.state != STOPPED]
        self._place_controller(
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
            self._contact_lost(broker, fence_after_ms)
        self._replication.links_changed()

    def reaches(self, node_id: int) -> bool:
        """Whether a broker and the controller can talk to each other."""
        network, controller_id = self._replication.network, self.node_id
        return node_id == controller_id or (
            network.is_up(node_id, controller_id) and network.is_up(controller_id, node_id)
        )

    def _place_controller(self, running: list[int]) -> None:
        """Let the largest group have the controller. Paused brokers elect none."""
        groups = self._replication.network.groups(running)
        if groups:
            size = max(map(len, groups))
            largest = [group for group in groups if len(group) == size]
            if all(self.node_id not in group for group in largest):
                alive = [node_id for node_id in largest[0] if self._is_up(node_id)]
                self.take_over(min(alive or largest[0]))

    # -- sessions and fencing ----------------------------------------------------------------------

    def _contact_lost(self, broker: Broker, fence_after_ms: int | None) -> None:
        """No heartbeat arrives any more: the session ends after that time, or when it would have
        ended anyway. None leaves the time to `mockbroker.failure.detection`.
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
        """A heartbeat arrived. An unregistered broker stays so until it is started again."""
        self._cancel_fencing(broker)
        if broker.fenced and broker.node_id in self._brokers:
            self.unfence(broker)

    def expire(self, broker: Broker) -> None:
        """No heartbeat has arrived for the time of a session."""
        self.fence(broker, SESSION_EXPIRED)

    def fence_at(self, broker: Broker, due_ms: int) -> None:
        """Let a broker's session end at `due_ms`, unless a heartbeat arrives before."""
        self._cancel_fencing(broker)
        self._fencing[broker.node_id] = self._runtime.timers.call_at(
            due_ms, lambda: self.fence(broker, SESSION_EXPIRED)
        )

    def fencing_at_ms(self, node_id: int) -> int | None:
        """When a broker is fenced if no heartbeat arrives before; None for never."""
        timer = self._fencing.get(node_id)
        return None if timer is None else timer.deadline_ms

    @property
    def fencing_count(self) -> int:
        """How many brokers are fenced if no heartbeat arrives."""
        return len(self._fencing)

    def cancel_fencing(self) -> None:
        """Cancel every fencing that is due later."""
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
        self._metadata.changed()
        self._emit_change(broker, "fenced")
        self._resign_if_controller(broker)
        self._leave_isrs(broker, reason)

    def unfence(self, broker: Broker) -> None:
        """The broker is alive: leaderless partitions may find their leader in it."""
        self._cancel_fencing(broker)
        broker.fenced = False
        self._metadata.changed()
        self._emit_change(broker, "unfenced")
        self._take_over_if_vacant(broker)
        self._for_each(self._elect_if_leaderless, "unfenced")
        self._replication.broker_changed(broker.node_id)

    def _leave_isrs(self, broker: Broker, reason: str, path: str | None = None) -> None:
        """Take the broker out of every ISR, or of those of the replicas in one directory."""
        node_id, place_of = broker.node_id, broker.log_dirs.place_of

        def leave(partition: Partition, reason: str) -> None:
            if node_id in partition.isr and (path is None or place_of(partition) == path):
                change = self._change(partition)
                change.isr.remove(node_id)
                change.apply(reason)

        self._for_each(leave, reason)

    def _handle_unclean_shutdown(self, broker: Broker) -> None:
        """After an unclean end: out of the ISR and of the eligible leaders."""
        node_id = broker.node_id
        if not self._control.elr_enabled:
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
        change = PartitionChange(self._control, partition)
        if partition.topic.configs.unclean_leader_election_enable:
            change.election = Election.UNCLEAN
        return change

    def _for_each(self, act: Callable[[Partition, str], None], reason: str) -> None:
        for topic in list(self._metadata.image.topics.values()):
            for partition in topic.partitions:
                act(partition, reason)

    # -- which broker is the controller ------------------------------------------------------------

    def _is_up(self, node_id: int) -> bool:
        broker = self._brokers.get(node_id)
        return broker is not None and not broker.fenced

    def _resign_if_controller(self, broker: Broker) -> None:
        """Let the next live broker take over, if this one is the controller. A paused broker takes
        over only from a fenced one, and only if no other runs.
        """
        if self.node_id != broker.node_id:
            return
        others = [n for n in self._brokers if n != self.node_id and self._is_up(n)]
        running = [n for n in others if self._metadata.is_running(n)]
        if running or broker.fenced:
            self.take_over((running or others or [NO_LEADER])[0])

    def _take_over_if_vacant(self, broker: Broker) -> None:
        """Let this broker take over, if it is live and the controller is not, or is paused."""
        present = self.node_id
        if self._is_up(broker.node_id) and not (
            self._is_up(present) and self._metadata.is_running(present)
        ):
            self.take_over(broker.node_id)

    def take_over(self, node_id: int) -> None:
        """Let another broker be the active controller, -1 for none."""
        self._metadata.image.controller_id = node_id
        if node_id != NO_LEADER:
            self.epoch += 1
        self._runtime.emit(ControllerChanged(self._runtime.now_ms(), node_id, self.epoch))
        self._metadata.changed()
        self.heartbeats.reconcile()

    def _emit_change(self, broker: Broker, change: str) -> None:
        now_ms = self._runtime.now_ms()
        self._runtime.emit(BrokerChanged(now_ms, broker.node_id, change, broker.epoch))


def _put_in_order(brokers: dict[int, Broker]) -> None:
    """Sort brokers by their ids, in place."""
    ordered = sorted(brokers.items())
    brokers.clear()
    brokers.update(ordered)
