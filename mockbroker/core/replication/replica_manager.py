"""The replicas of all brokers: who shares the leader's log, who has one of its own, and how the
latter are kept up to date.

A follower that is caught up shares the leader's log by reference: it has every record the moment
the leader has it, at no cost. A follower gets a replica of its own from anything that may keep it
from being caught up: its broker is down, paused or has lost the controller, the way to the leader
is cut or slow, a rule holds it or lets it lag, its directory is gone, it has just been added, or
the cluster runs with `mockbroker.replication=stepwise`. Then it fetches over the network between
brokers, and hears of the high watermark one fetch late. It gives its replica up once it has caught
up and nothing of that is left.

While all followers share their leaders' logs, an append does nothing here at all.

A message finds its receiver by the receiver's own image: a leader answers as the leader that it
believes to be, a follower asks the leader that it knows.

Source: ReplicaManager, ReplicaFetcherManager.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from mockbroker.core.broker_life import RUNNING
from mockbroker.core.events import FollowerFetched, LogTruncated, WatermarkMoved
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.partition import NO_LEADER, Partition, PartitionKey
from mockbroker.core.replication.alter_partition import AlterPartition, alter_partition
from mockbroker.core.replication.fetcher import (
    Advanced,
    Answer,
    AskEpochEnd,
    Effect,
    Event,
    Fetch,
    Follow,
    Halt,
    Pause,
    Question,
    Refused,
    ReplicaFetcher,
    Truncated,
    Truncation,
    Woken,
)
from mockbroker.core.replication.leader import LeaderReplication
from mockbroker.core.replication.network import Message, Network
from mockbroker.core.replication.replica import NEVER, UNKNOWN_EPOCH, FollowerState, Replica
from mockbroker_protocol import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mockbroker.core.cluster import Cluster

STEPWISE = "stepwise"
ALTER_PARTITION = "AlterPartition"
_NOT_LEADER = int(ErrorCode.NOT_LEADER_OR_FOLLOWER)


class ReplicaManager:
    """The replicas of one cluster's brokers, and the network that they fetch over."""

    __slots__ = ("_cluster", "_held", "_lag_ms", "_leading", "_limited", "_stepwise", "network")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.network = Network(cluster.timers, cluster.now_ms)
        # Partitions whose leaders have followers with a log of their own.
        self._leading: dict[Partition, LeaderReplication] = {}
        self._stepwise: bool = cluster.config("mockbroker.replication") == STEPWISE
        # Rules: followers that do not fetch, and those that get answers late.
        self._held: set[tuple[PartitionKey, int]] = set()
        self._lag_ms: dict[tuple[PartitionKey, int], int] = {}
        self._limited: set[PartitionKey] = set()  # those whose high watermark is held

    # -- what is possible --------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        """Whether everything that is written is on every replica at once."""
        return not self._leading and not self._limited

    @property
    def is_stepwise(self) -> bool:
        """Whether every follower has a replica of its own, always."""
        return self._stepwise

    def is_running(self, node_id: int) -> bool:
        """Whether the process of a broker is there and not paused."""
        broker = self._cluster.processes.get(node_id)
        return broker is not None and broker.state == RUNNING

    def may_be_in_sync(self, partition: Partition, state: FollowerState) -> bool:
        """Whether the controller would take a follower into the ISR, as the leader knows it: its
        broker is alive (KIP-841), and still the process that fetched (KIP-903).
        """
        image = self._cluster.image_of(partition.leader_id)
        if not image.is_active(state.node_id):
            return False
        broker = image.brokers[state.node_id]
        return state.broker_epoch in (UNKNOWN_EPOCH, broker.epoch) and broker.log_dirs.has(
            partition
        )

    def can_fetch(self, partition: Partition, node_id: int) -> bool:
        """Whether a follower can ask its leader: both run, and both ways between them are up."""
        leader_id = partition.leader_id
        processes = self._cluster.processes
        return (
            self.is_running(leader_id)
            and self.is_running(node_id)
            and self.network.is_up(node_id, leader_id)
            and self.network.is_up(leader_id, node_id)
            and (partition.key, node_id) not in self._held
            and processes[node_id].log_dirs.has(partition)
            and processes[leader_id].log_dirs.has(partition)
        )

    def needs_own_copy(self, partition: Partition, node_id: int) -> bool:
        """Whether a follower cannot share the leader's log."""
        cluster, leader_id = self._cluster, partition.leader_id
        if not cluster.hears_controller(node_id):
            return True
        if leader_id == NO_LEADER:
            return False  # nothing is appended: the last leader's log is as good as a copy
        return (
            self._stepwise
            or node_id not in partition.isr
            or not self.is_running(node_id)
            or not cluster.hears_controller(leader_id)
            or not self.network.is_direct(node_id, leader_id)
            or (partition.key, node_id) in self._held
            or (partition.key, node_id) in self._lag_ms
            or not cluster.processes[node_id].log_dirs.has(partition)
        )

    # -- rules -------------------------------------------------------------------------------------

    def hold(self, partition: Partition, node_id: int) -> None:
        """Let a follower fetch no more until it is released."""
        self._held.add((partition.key, node_id))
        self._rules_changed(partition)

    def lag(self, partition: Partition, node_id: int, by_ms: int) -> None:
        """Let a follower get every answer of its leader `by_ms` late until it is released."""
        self._lag_ms[partition.key, node_id] = by_ms
        self._rules_changed(partition)

    def release(self, partition: Partition, node_id: int) -> None:
        """No rule holds the follower back any more."""
        self._held.discard((partition.key, node_id))
        self._lag_ms.pop((partition.key, node_id), None)
        self._rules_changed(partition)

    def has_lagged(self, partition: Partition, node_id: int) -> None:
        """Let the leader count a follower as one that has lagged for too long."""
        state = self._cluster.led(partition).followers.get(node_id)
        if state is not None:
            state.caught_up_ms = NEVER

    def _rules_changed(self, partition: Partition) -> None:
        for known in self._cluster.metadata.partitions():
            if known.key == partition.key:
                self.assignment_changed(known)

    def drop_rules(self) -> None:
        """No rule is in force any more. For clusters whose partitions are all gone."""
        self._held.clear()
        self._lag_ms.clear()
        self._limited.clear()
        self.network.heal()

    def limit(self, partition: Partition, offset: int) -> None:
        """Let the high watermark not go beyond `offset`."""
        partition.high_watermark_limit = offset
        self._limited.add(partition.key)

    def unlimit(self, partition: Partition) -> None:
        """Let the high watermark go to where it belongs."""
        partition.high_watermark_limit = None
        self._limited.discard(partition.key)
        if self._cluster.is_led_here(partition) and partition.advance_high_watermark():
            partition.notify()

    # -- changes -----------------------------------------------------------------------------------

    def partitions_created(self, partitions: Iterable[Partition]) -> None:
        """New partitions: a broker that is not there has no more than an empty replica."""
        processes = self._cluster.processes
        several_dirs = any(broker.log_dirs.are_several for broker in processes.values())
        apart = self._stepwise or not self.network.is_quiet
        for partition in partitions:
            if several_dirs:
                for node_id in partition.replicas:
                    if node_id in processes:
                        processes[node_id].log_dirs.place_of(partition)
            if apart or len(partition.isr) < len(partition.replicas):
                self.assignment_changed(partition)

    def replace_replicas(self, partition: Partition, replicas: list[int]) -> None:
        """Let other brokers hold the partition: newcomers start empty, leavers lose their copy."""
        former, partition.replicas = partition.replicas, replicas
        for node_id in former:
            if node_id not in replicas:
                partition.own_replicas.pop(node_id, None)
                partition.followers.pop(node_id, None)
                self._held.discard((partition.key, node_id))
                self._lag_ms.pop((partition.key, node_id), None)
                broker = self._cluster.processes.get(node_id)
                if broker is not None:
                    broker.log_dirs.forget(partition)
        for node_id in replicas:
            if node_id not in former:
                partition.own_replicas[node_id] = Replica(node_id, ReplicaLog(), 0)
                if self._cluster.is_led_here(partition):
                    partition.followers[node_id] = FollowerState(node_id)

    def assignment_changed(self, partition: Partition) -> None:
        """The leader, the ISR, the replicas or a rule changed: let followers fetch or stop."""
        cluster = self._cluster
        if cluster.recorder is not None:
            cluster.recorder.partition_changed(partition)
        led_here = cluster.is_led_here(partition)
        metadata = cluster.metadata
        if metadata.all_hear or cluster.image.partition_by_id(*partition.key) is partition:
            self._separate(partition, led_here=led_here)
        leading = self._leading.get(partition)
        if led_here and partition.followers:
            if leading is None:
                leading = self._leading[partition] = LeaderReplication(cluster, partition)
            leading.reconcile()
        elif leading is not None:
            self.forget(partition)
        for node_id, replica in list(partition.own_replicas.items()):
            if metadata.knows(node_id, partition):
                self._direct(partition, node_id, replica)

    def _separate(self, partition: Partition, *, led_here: bool) -> None:
        """Give replicas to the followers that cannot share the leader's log any longer."""
        now_ms, log = self._cluster.now_ms(), partition.log
        for node_id in partition.replicas:
            if (
                node_id != partition.leader_id
                and node_id not in partition.own_replicas
                and self.needs_own_copy(partition, node_id)
            ):
                replica = Replica(node_id, log.fork(), partition.high_watermark)
                partition.own_replicas[node_id] = replica
                if led_here:
                    partition.followers[node_id] = FollowerState.caught_up(node_id, log, now_ms)

    def maybe_share(self, partition: Partition, node_id: int) -> None:
        """Let a follower that has caught up share the leader's log, if nothing stands in the way,
        and with it the high watermark.
        """
        replica, state = partition.own_replicas.get(node_id), partition.followers.get(node_id)
        end_offset = partition.log.end_offset
        if (
            replica is None
            or state is None
            or node_id not in partition.isr
            or not state.fetched_offset == end_offset == replica.log.end_offset
            or self.needs_own_copy(partition, node_id)
        ):
            return
        del partition.own_replicas[node_id]
        del partition.followers[node_id]
        if self._cluster.recorder is not None:
            self._cluster.recorder.partition_changed(partition)
        if not partition.followers:
            self.forget(partition)

    def forget(self, partition: Partition) -> None:
        """The partition's leader has no followers with a log of their own any more."""
        if partition.deleted:
            self._limited.discard(partition.key)
        leading = self._leading.pop(partition, None)
        if leading is not None:
            leading.close()

    def broker_changed(self, node_id: int) -> None:
        """A broker, or the way to it, came or went."""
        for partition in list(self._cluster.metadata.partitions()):
            if node_id in partition.replicas:
                self.assignment_changed(partition)

    def links_changed(self) -> None:
        """Ways between brokers were cut, slowed down or healed."""
        for partition in list(self._cluster.metadata.partitions()):
            if len(partition.replicas) > 1:
                self.assignment_changed(partition)

    # -- followers ---------------------------------------------------------------------------------

    def _direct(self, partition: Partition, node_id: int, replica: Replica) -> None:
        """Let a follower fetch from the leader that it knows, or stop."""
        if node_id == partition.leader_id:
            return
        if replica.fetcher is None:
            replica.fetcher = ReplicaFetcher(
                replica,
                partition.topic.configs.roll_limits,
                Truncation(self._cluster.config("mockbroker.replication.truncation")),
            )
        if self.can_fetch(partition, node_id):
            event: Event = Follow(partition.leader_id, partition.leader_epoch)
        else:
            event = Halt()
        self._handle(partition.key, replica, event)

    def _handle(self, key: PartitionKey, replica: Replica, event: Event) -> None:
        """Put an event to a follower's machine, and do what that wants done."""
        partition = self._cluster.image_of(replica.node_id).partition_by_id(*key)
        if (
            partition is None
            or replica.fetcher is None
            or partition.own_replicas.get(replica.node_id) is not replica
        ):
            return  # the replica is gone, or shares its leader's log
        for effect in replica.fetcher.handle(event, self._cluster.now_ms()):
            self._perform(partition, replica, effect)

    def _perform(self, partition: Partition, replica: Replica, effect: Effect) -> None:
        match effect:
            case Fetch() | AskEpochEnd():
                self._ask(partition, replica, effect)
            case Pause(number):
                backoff_ms = self._cluster.config_int("replica.fetch.backoff.ms")
                self._wake_after(partition.key, replica, number, backoff_ms)
            case Truncated(former, offset):
                self._tell_truncation(partition, replica.node_id, former, offset)
                partition.notify()
            case Advanced(former):
                self._tell_watermark(partition, replica, former)
                partition.notify()

    def _wake_after(self, key: PartitionKey, replica: Replica, number: int, delay_ms: int) -> None:
        due_ms = self._cluster.now_ms() + delay_ms
        self._cluster.timers.call_at(due_ms, partial(self._handle, key, replica, Woken(number)))

    def _ask(self, partition: Partition, replica: Replica, question: Question) -> None:
        """Send a follower's question to its leader."""
        node_id, leader_id = replica.node_id, question.leader_id
        if isinstance(question, Fetch):
            self._tell_fetch(partition, node_id, question)
        message = _message(partition, node_id, leader_id, type(question).__name__)
        broker_epoch = self._cluster.processes[node_id].epoch
        arrive = partial(self._asked, partition.key, replica, question, broker_epoch)
        lost = partial(self._lose, partition.key, replica, question.number)
        self.network.send(message, arrive, lost=lost)

    def _lose(self, key: PartitionKey, replica: Replica, number: int) -> None:
        """A question or its answer is lost: the follower gives up waiting after a while."""
        timeout_ms = self._cluster.config_int("replica.socket.timeout.ms")
        self._wake_after(key, replica, number, timeout_ms)

    def _asked(
        self, key: PartitionKey, replica: Replica, question: Question, broker_epoch: int
    ) -> None:
        """A follower's question has arrived at the broker that it was sent to.

        One that the follower waits for no longer was sent over a connection that is closed by now.
        """
        leader_id = question.leader_id
        if replica.fetcher is None or not replica.fetcher.is_asking(question.number):
            return
        partition = self._cluster.image_of(leader_id).partition_by_id(*key)
        if partition is None or not self.is_running(leader_id):
            self._lose(key, replica, question.number)
            return
        leading = self._leading.get(partition)
        if leading is None or partition.leader_id != leader_id:
            self.answer(partition, replica, Refused(question.number, _NOT_LEADER), leader_id)
        else:
            leading.asked(replica, question, broker_epoch)

    def answer(
        self, partition: Partition, replica: Replica, answer: Answer, sender: int | None = None
    ) -> None:
        """Send an answer to a follower: from the partition's leader, or from `sender`."""
        sender = partition.leader_id if sender is None else sender
        node_id = replica.node_id
        message = _message(partition, sender, node_id, type(answer).__name__)
        lag_ms = self._lag_ms.get((partition.key, node_id), 0)
        arrive = partial(self._handle, partition.key, replica, answer)
        lost = partial(self._lose, partition.key, replica, answer.number)
        self.network.send(message, arrive, lag_ms, lost)

    # -- leaders and the controller ----------------------------------------------------------------

    def alter_partition(
        self,
        partition: Partition,
        request: AlterPartition,
        answered: Callable[[ErrorCode], None],
    ) -> None:
        """Carry a leader's request to the controller, and the answer back.

        A request that is lost is given up after `request.timeout.ms`. A leader that has lost the
        controller sends none until it is back.
        """
        cluster, network = self._cluster, self.network
        leader_id, controller_id = request.node_id, cluster.controller_id
        if not cluster.hears_controller(leader_id):
            return
        if leader_id == controller_id or network.is_direct(leader_id, controller_id):
            answered(alter_partition(cluster, request))
            return
        timeout_ms = cluster.config_int("request.timeout.ms")
        timer = cluster.timers.call_at(
            cluster.now_ms() + timeout_ms, partial(answered, ErrorCode.REQUEST_TIMED_OUT)
        )

        def back(error: ErrorCode) -> None:
            timer.cancel()
            answered(error)

        def arrive() -> None:
            if cluster.controller_id == controller_id and self.is_running(controller_id):
                error = alter_partition(cluster, request)
                answer = _message(partition, controller_id, leader_id, ALTER_PARTITION)
                network.send(answer, partial(back, error))

        network.send(_message(partition, leader_id, controller_id, ALTER_PARTITION), arrive)

    # -- telling -----------------------------------------------------------------------------------

    def _tell_fetch(self, partition: Partition, node_id: int, fetch: Fetch) -> None:
        config = self._cluster.config_int
        self._cluster.tell(
            FollowerFetched(
                self._cluster.now_ms(),
                partition.topic.name,
                partition.index,
                node_id,
                fetch.leader_id,
                fetch.leader_epoch,
                fetch.offset,
                fetch.last_epoch,
                config("replica.fetch.wait.max.ms"),
                config("replica.fetch.min.bytes"),
                config("replica.fetch.response.max.bytes"),
                config("replica.fetch.max.bytes"),
            )
        )

    def _tell_watermark(self, partition: Partition, replica: Replica, former: int) -> None:
        if self._cluster.on_event and former != replica.high_watermark:
            self._cluster.tell(
                WatermarkMoved(
                    self._cluster.now_ms(),
                    partition.topic.name,
                    partition.index,
                    replica.node_id,
                    former,
                    replica.high_watermark,
                    replica.log.end_offset,
                )
            )

    def _tell_truncation(
        self, partition: Partition, node_id: int, former: int, offset: int
    ) -> None:
        now_ms, topic = self._cluster.now_ms(), partition.topic.name
        self._cluster.tell(LogTruncated(now_ms, topic, partition.index, node_id, former, offset))


def _message(partition: Partition, sender: int, receiver: int, what: str) -> Message:
    return Message(sender, receiver, what, partition.topic.name, partition.index)
