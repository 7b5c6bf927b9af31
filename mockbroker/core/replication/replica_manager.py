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
from typing import TYPE_CHECKING, NamedTuple

from mockbroker.core.brokers.broker_life import RUNNING
from mockbroker.core.events import FollowerFetched, LogTruncated, WatermarkMoved
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.replication.alter_partition import AlterPartition, AlterPartitionHop
from mockbroker.core.replication.fetcher import (
    Advanced,
    Answer,
    Effect,
    Event,
    Fetch,
    Follow,
    Halt,
    OffsetForLeaderEpoch,
    Pause,
    Question,
    ReplicaFetcher,
    RetryDue,
    Truncated,
    Truncation,
)
from mockbroker.core.replication.follower_hops import (
    AnyFollowerHop,
    FetchHop,
    OffsetForLeaderEpochHop,
)
from mockbroker.core.replication.leader import LeaderReplication
from mockbroker.core.replication.partition import NO_LEADER, Partition, PartitionKey
from mockbroker.core.replication.replica import NEVER, FollowerState, Replica
from mockbroker_protocol import ApiKey, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from mockbroker.core.replication.partition import LogMaintenance, PartitionRecorder
    from mockbroker.core.services import Services

STEPWISE = "stepwise"
_FETCH = ApiKey.FETCH


class FetchLimits(NamedTuple):
    """What followers' fetches ask for, by the broker configs, and what a leader gives them."""

    wait_ms_max: int
    bytes_min: int
    bytes_max: int
    partition_bytes_max: int


class ReplicaManager:
    """The replicas of one cluster's brokers, and the network that they fetch over."""

    __slots__ = (
        "_fetch_limits",
        "_fetch_limits_version",
        "_held",
        "_lag_ms",
        "_leading",
        "_limited",
        "_stepwise",
        "configs",
        "log_manager",
        "metadata",
        "network",
        "on_alter_partition",
        "recorder",
        "runtime",
        "walks_all_records",
    )

    def __init__(self, services: Services, log_manager: LogMaintenance) -> None:
        self.runtime = services.runtime
        self.configs = services.configs
        self.metadata = services.metadata
        self.network = services.network
        self.log_manager = log_manager
        self.recorder: PartitionRecorder | None = None
        # Carries a leader's AlterPartition out, as the controller; set with the controller.
        self.on_alter_partition: Callable[[AlterPartition], ErrorCode]
        # Whether appends look at every record rather than at headers alone where those suffice.
        self.walks_all_records = self.configs.get("record.validation") == "always"
        # Partitions whose leaders have followers with a log of their own.
        self._leading: dict[Partition, LeaderReplication] = {}
        self._stepwise: bool = self.configs.get("mockbroker.replication") == STEPWISE
        # Rules: followers that do not fetch, and those that get answers late.
        self._held: set[tuple[PartitionKey, int]] = set()
        self._lag_ms: dict[tuple[PartitionKey, int], int] = {}
        self._limited: set[PartitionKey] = set()  # those whose high watermark is held
        self._fetch_limits: FetchLimits | None = None
        self._fetch_limits_version = 0  # of the configs that they were read from

    # -- what is possible --------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        """Whether everything that is written is on every replica at once."""
        return not self._leading and not self._limited

    @property
    def is_stepwise(self) -> bool:
        """Whether every follower has a replica of its own, always."""
        return self._stepwise

    def can_fetch(self, partition: Partition, node_id: int) -> bool:
        """Whether a follower can ask its leader: both run, and both ways between them are up."""
        leader_id = partition.leader_id
        processes = self.metadata.processes
        return (
            self.metadata.is_running(leader_id)
            and self.metadata.is_running(node_id)
            and self.network.is_up(node_id, leader_id)
            and self.network.is_up(leader_id, node_id)
            and (partition.key, node_id) not in self._held
            and processes[node_id].log_dirs.has(partition)
            and processes[leader_id].log_dirs.has(partition)
        )

    def needs_own_copy(self, partition: Partition, node_id: int) -> bool:
        """Whether a follower cannot share the leader's log."""
        metadata, leader_id = self.metadata, partition.leader_id
        if not metadata.has_newest_image(node_id):
            return True
        if leader_id == NO_LEADER:
            return False  # nothing is appended: the last leader's log is as good as a copy
        return (
            self._stepwise
            or node_id not in partition.isr
            or not metadata.is_running(node_id)
            or not metadata.has_newest_image(leader_id)
            or not self.network.is_direct(node_id, leader_id, _FETCH, partition)
            or (partition.key, node_id) in self._held
            or (partition.key, node_id) in self._lag_ms
            or not metadata.processes[node_id].log_dirs.has(partition)
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
        state = self.metadata.led(partition).followers.get(node_id)
        if state is not None:
            state.caught_up_ms = NEVER

    def _rules_changed(self, partition: Partition) -> None:
        for known in self.metadata.objects_of(partition):
            self.assignment_changed(known)

    def reset(self) -> None:
        """End all rules and reset the network. For clusters without partitions."""
        self._held.clear()
        self._lag_ms.clear()
        self._limited.clear()
        self.network.reset()

    def limit(self, partition: Partition, offset: int) -> None:
        """Let the high watermark not go beyond `offset`."""
        partition.high_watermark_limit = offset
        self._limited.add(partition.key)

    def remove_limit(self, partition: Partition) -> None:
        """Let the high watermark go to where it belongs."""
        partition.high_watermark_limit = None
        self._limited.discard(partition.key)
        if self.metadata.is_led_here(partition) and partition.advance_high_watermark():
            partition.notify()

    # -- changes -----------------------------------------------------------------------------------

    def partitions_created(self, partitions: Iterable[Partition]) -> None:
        """New partitions: a broker that is not there, or is paused and not fenced yet, has an
        empty replica.
        """
        processes, newest = self.metadata.processes, self.metadata.image
        several_dirs = any(broker.log_dirs.are_several for broker in processes.values())
        apart = (
            self._stepwise
            or not self.network.is_quiet
            or not all(b.state == RUNNING and b.image is newest for b in processes.values())
        )
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
                broker = self.metadata.processes.get(node_id)
                if broker is not None:
                    broker.log_dirs.forget(partition)
        for node_id in replicas:
            if node_id not in former:
                partition.own_replicas[node_id] = Replica(node_id, ReplicaLog(), 0)
                if self.metadata.is_led_here(partition):
                    partition.followers[node_id] = FollowerState(node_id)

    def assignment_changed(self, partition: Partition) -> None:
        """The leader, the ISR, the replicas or a rule changed: let followers fetch or stop."""
        if self.recorder is not None:
            self.recorder.partition_changed(partition)
        metadata = self.metadata
        led_here = metadata.is_led_here(partition)
        if (
            metadata.all_have_newest_image
            or metadata.image.partition_by_id(*partition.key) is partition
        ):
            self._separate(partition, led_here=led_here)
        leading = self._leading.get(partition)
        if led_here and partition.followers:
            if leading is None:
                leading = self._leading[partition] = LeaderReplication(self, partition)
            leading.reconcile()
        elif leading is not None:
            self.forget(partition)
        for node_id, replica in list(partition.own_replicas.items()):
            if metadata.knows(node_id, partition):
                self._direct(partition, node_id, replica)

    def _separate(self, partition: Partition, *, led_here: bool) -> None:
        """Give replicas to the followers that cannot share the leader's log any longer."""
        now_ms, log = self.runtime.now_ms(), partition.log
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
            or not state.fetched_offset == end_offset == replica.log.end_offset
            or self.needs_own_copy(partition, node_id)
        ):
            return
        del partition.own_replicas[node_id]
        del partition.followers[node_id]
        replica.fetcher = None  # each has the other: so both go at once, log and all
        if self.recorder is not None:
            self.recorder.partition_changed(partition)
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
        for partition in list(self.metadata.partitions()):
            if node_id in partition.replicas:
                self.assignment_changed(partition)

    def links_changed(self) -> None:
        """Ways between brokers were cut, slowed down or healed."""
        for partition in list(self.metadata.partitions()):
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
                Truncation(self.configs.get("mockbroker.replication.truncation")),
            )
        if self.can_fetch(partition, node_id):
            event: Event = Follow(partition.leader_id, partition.leader_epoch)
        else:
            event = Halt()
        self._handle(partition.key, replica, event)

    def _handle(self, key: PartitionKey, replica: Replica, event: Event) -> None:
        """Put an event to a follower's machine, and do what that wants done."""
        partition = self.metadata.image_of(replica.node_id).partition_by_id(*key)
        if (
            partition is None
            or replica.fetcher is None
            or partition.own_replicas.get(replica.node_id) is not replica
        ):
            return  # the replica is gone, or shares its leader's log
        for effect in replica.fetcher.handle(event, self.runtime.now_ms()):
            self._perform(partition, replica, effect)

    def _perform(self, partition: Partition, replica: Replica, effect: Effect) -> None:
        match effect:
            case Fetch() | OffsetForLeaderEpoch():
                self._ask(partition, replica, effect)
            case Pause(number):
                backoff_ms = self.configs.get_int("replica.fetch.backoff.ms")
                self._wake_after(partition.key, replica, number, backoff_ms)
            case Truncated(former, offset):
                self._emit_truncation(partition, replica.node_id, former, offset)
                partition.notify()
            case Advanced(former):
                self._emit_watermark(partition, replica, former)
                partition.notify()

    def _wake_after(self, key: PartitionKey, replica: Replica, number: int, delay_ms: int) -> None:
        due_ms = self.runtime.now_ms() + delay_ms
        self.runtime.timers.call_at(due_ms, partial(self._handle, key, replica, RetryDue(number)))

    def _ask(self, partition: Partition, replica: Replica, question: Question) -> None:
        """Send a follower's question to its leader."""
        if isinstance(question, Fetch):
            self._emit_fetch(partition, replica.node_id, question)
            self.network.send(FetchHop(self, partition, replica, question))
        else:
            self.network.send(OffsetForLeaderEpochHop(self, partition, replica, question))

    def unanswered(self, hop: AnyFollowerHop) -> None:
        """A question or its answer is lost: the follower gives up waiting after a while."""
        timeout_ms = self.configs.get_int("replica.socket.timeout.ms")
        self._wake_after(hop.key, hop.replica, hop.question.number, timeout_ms)

    def asked(self, hop: AnyFollowerHop) -> None:
        """A follower's question has arrived at the broker that it was sent to.

        One that the follower waits for no longer was sent over a connection that is closed by now.
        """
        fetcher = hop.replica.fetcher
        if fetcher is None or not fetcher.is_asking(hop.question.number):
            return
        partition = self.metadata.image_of(hop.receiver).partition_by_id(*hop.key)
        if partition is None:
            self.unanswered(hop)
            return
        leading = self._leading.get(partition)
        if leading is None or partition.leader_id != hop.receiver:
            self.answer(hop, hop.refused(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        else:
            leading.asked(hop)

    def answer(self, hop: AnyFollowerHop, answer: Answer) -> None:
        """Send an answer to a follower, as late as a rule lets it get its answers."""
        self.network.answer(hop, answer, self._lag_ms.get((hop.key, hop.sender), 0))

    def answered(self, hop: AnyFollowerHop, answer: Answer) -> None:
        """An answer is with the follower."""
        self._handle(hop.key, hop.replica, answer)

    # -- leaders and the controller ----------------------------------------------------------------

    def alter_partition(
        self,
        partition: Partition,
        request: AlterPartition,
        answered: Callable[[ErrorCode], None],
    ) -> bool:
        """Carry a leader's request to the controller, and the answer back. False if the leader has
        lost the controller: then nothing is sent.

        `answered` gets REQUEST_TIMED_OUT after `request.timeout.ms` without an answer, which may
        come later.
        """
        metadata, network = self.metadata, self.network
        leader_id, controller_id = request.node_id, metadata.image.controller_id
        if not metadata.has_newest_image(leader_id):
            return False
        if network.is_direct(leader_id, controller_id, ApiKey.ALTER_PARTITION, partition):
            answered(self.on_alter_partition(request))
            return True
        timeout_ms = self.configs.get_int("request.timeout.ms")
        timer = self.runtime.timers.call_at(
            self.runtime.now_ms() + timeout_ms, partial(answered, ErrorCode.REQUEST_TIMED_OUT)
        )

        def back(error: ErrorCode) -> None:
            timer.cancel()
            answered(error)

        network.send(AlterPartitionHop(metadata, network, request, self.on_alter_partition, back))
        return True

    # -- events -----------------------------------------------------------------------------------

    @property
    def fetch_limits(self) -> FetchLimits:
        """The limits of followers' fetches, as the broker configs are now."""
        limits, version = self._fetch_limits, self.configs.version
        if limits is None or version != self._fetch_limits_version:
            config = self.configs.get_int
            limits = self._fetch_limits = FetchLimits(
                config("replica.fetch.wait.max.ms"),
                config("replica.fetch.min.bytes"),
                config("replica.fetch.response.max.bytes"),
                config("replica.fetch.max.bytes"),
            )
            self._fetch_limits_version = version
        return limits

    def _emit_fetch(self, partition: Partition, node_id: int, fetch: Fetch) -> None:
        self.runtime.emit(
            FollowerFetched(
                self.runtime.now_ms(),
                partition.topic.name,
                partition.index,
                node_id,
                fetch.leader_id,
                fetch.leader_epoch,
                fetch.offset,
                fetch.last_epoch,
                *self.fetch_limits,
            )
        )

    def _emit_watermark(self, partition: Partition, replica: Replica, former: int) -> None:
        if self.runtime.on_event and former != replica.high_watermark:
            self.runtime.emit(
                WatermarkMoved(
                    self.runtime.now_ms(),
                    partition.topic.name,
                    partition.index,
                    replica.node_id,
                    former,
                    replica.high_watermark,
                    replica.log.end_offset,
                )
            )

    def _emit_truncation(
        self, partition: Partition, node_id: int, former: int, offset: int
    ) -> None:
        now_ms, topic = self.runtime.now_ms(), partition.topic.name
        self.runtime.emit(LogTruncated(now_ms, topic, partition.index, node_id, former, offset))
