"""The replicas of all brokers: shared logs, own logs, and the fetching of followers.

A caught-up follower shares the leader's log by reference: it has every record at once, at no cost.
A follower gets a replica of its own from anything that may keep it from being caught up: its broker
is stopped, paused or without the controller, a link to the leader is cut or slow, a rule holds it
or makes it lag, its directory is offline, it has just been added, or the cluster runs with
`mockbroker.replication=stepwise`. It then fetches over the network between brokers, and receives
the high watermark one fetch late. Once it has caught up and no such cause is left, it shares the
leader's log again.

While all followers share their leaders' logs, an append does no work here.

Each broker acts by its own image: a broker answers fetches if its image has it as the leader, and a
follower fetches from the leader of its image.

Source: ReplicaManager, ReplicaFetcherManager.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from mockbroker.core.brokers.broker_life import RUNNING
from mockbroker.core.events import FollowerFetched, LogTruncated
from mockbroker.core.limits import (
    BATCH_DECOMPRESSED_BYTES_MAX,
    BATCH_RECORDS_MAX,
    BatchLimits,
)
from mockbroker.core.log.emitters import emit_watermark
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.quotas.replication import ReplicationQuota, Side
from mockbroker.core.replication.alter_partition import AlterPartition, AlterPartitionHop
from mockbroker.core.replication.fetcher import (
    Advanced,
    Answer,
    Effect,
    Event,
    Fetch,
    Fetched,
    FetcherRequest,
    Follow,
    Halt,
    OffsetForLeaderEpoch,
    Pause,
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

    from mockbroker.core.replication.partition_host import LogMaintenance, PartitionRecorder
    from mockbroker.core.services import Services

STEPWISE = "stepwise"
_FETCH = ApiKey.FETCH


class FetchLimits(NamedTuple):
    """The limits of followers' fetches, from the broker configs."""

    wait_ms_max: int
    bytes_min: int
    bytes_max: int
    partition_bytes_max: int


class ReplicaManager:
    """The replicas of one cluster's brokers, and the network for their fetches."""

    __slots__ = (
        "_fetch_limits",
        "_fetch_limits_version",
        "_held",
        "_lag_ms",
        "_leading",
        "_limited",
        "_quotas",
        "_stepwise",
        "batch_limits",
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
        # Carries out a leader's AlterPartition on the controller; set with the controller.
        self.on_alter_partition: Callable[[AlterPartition], ErrorCode]
        # Whether appends read every record even where headers suffice.
        self.walks_all_records = self.configs.get("record.validation") == "always"
        # Of one batch. Java's producer splits its batch after MESSAGE_TOO_LARGE.
        self.batch_limits = BatchLimits(
            self.configs.get_int(BATCH_RECORDS_MAX),
            self.configs.get_int(BATCH_DECOMPRESSED_BYTES_MAX),
        )
        # Partitions whose leaders have followers with a log of their own.
        self._leading: dict[Partition, LeaderReplication] = {}
        self._stepwise: bool = self.configs.get("mockbroker.replication") == STEPWISE
        # Set by rules: followers that do not fetch, and followers that get responses late.
        self._held: set[tuple[PartitionKey, int]] = set()
        self._lag_ms: dict[tuple[PartitionKey, int], int] = {}
        self._limited: set[PartitionKey] = set()  # those whose high watermark is held
        self._quotas: dict[tuple[Side, int], ReplicationQuota] = {}
        self._fetch_limits: FetchLimits | None = None
        self._fetch_limits_version = 0  # the version of the configs at the last read

    # -- restrictions ------------------------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        """Whether every append is on every replica at once."""
        return not self._leading and not self._limited

    @property
    def is_stepwise(self) -> bool:
        """Whether every follower always has a replica of its own."""
        return self._stepwise

    def can_fetch(self, partition: Partition, node_id: int) -> bool:
        """Whether a follower can fetch: both brokers run, and both links between them are up."""
        leader_id = partition.leader_id
        processes = self.metadata.processes
        leader, follower = processes.get(leader_id), processes.get(node_id)
        return (
            leader is not None
            and leader.state == RUNNING
            and follower is not None
            and follower.state == RUNNING
            and self.network.reaches(node_id, leader_id)
            and (partition.key, node_id) not in self._held
            and follower.log_dirs.is_online(partition)
            and leader.log_dirs.is_online(partition)
        )

    def needs_own_copy(self, partition: Partition, node_id: int) -> bool:
        """Whether a follower cannot share the leader's log."""
        metadata, leader_id = self.metadata, partition.leader_id
        if not metadata.has_newest_image(node_id):
            return True
        if leader_id == NO_LEADER:
            return False  # nothing is appended, so the last leader's log can be shared
        return (
            self._stepwise
            or node_id not in partition.isr
            or not metadata.is_running(node_id)
            or not metadata.has_newest_image(leader_id)
            or not self.network.is_direct(node_id, leader_id, _FETCH, partition)
            or (partition.key, node_id) in self._held
            or (partition.key, node_id) in self._lag_ms
            or not metadata.processes[node_id].log_dirs.is_online(partition)
        )

    # -- rules -------------------------------------------------------------------------------------

    def hold(self, partition: Partition, node_id: int) -> None:
        """Stop a follower's fetches until it is released."""
        self._held.add((partition.key, node_id))
        self._rules_changed(partition)

    def lag(self, partition: Partition, node_id: int, by_ms: int) -> None:
        """Delay every response to a follower by `by_ms` until it is released."""
        self._lag_ms[partition.key, node_id] = by_ms
        self._rules_changed(partition)

    def release(self, partition: Partition, node_id: int) -> None:
        """End the rules for a follower."""
        self._held.discard((partition.key, node_id))
        self._lag_ms.pop((partition.key, node_id), None)
        self._rules_changed(partition)

    def mark_lagging(self, partition: Partition, node_id: int) -> None:
        """Let the leader count a follower as one that exceeds the maximum lag time."""
        state = self.metadata.leader_object(partition).followers.get(node_id)
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

    def limit_high_watermark(self, partition: Partition, offset: int) -> None:
        """Limit the high watermark to `offset`."""
        partition.high_watermark_limit = offset
        self._limited.add(partition.key)

    def remove_high_watermark_limit(self, partition: Partition) -> None:
        """Remove the limit of the high watermark, and advance it."""
        partition.high_watermark_limit = None
        self._limited.discard(partition.key)
        if self.metadata.is_leader_object(partition) and partition.advance_high_watermark():
            partition.notify()

    # -- throttles ---------------------------------------------------------------------------------

    def quota(self, side: Side, node_id: int) -> ReplicationQuota:
        """The replication throttle of one side of a broker."""
        quota = self._quotas.get((side, node_id))
        if quota is None:
            quota = self._quotas[side, node_id] = ReplicationQuota(side, node_id, self.configs)
        return quota

    @property
    def throttled(self) -> dict[str, int]:
        """How often replicas had to wait, by the side that let them."""
        counts: dict[str, int] = {}
        for quota in self._quotas.values():
            if quota.throttled:
                name = f"{quota.side}.replication.throttled.rate"
                counts[name] = counts.get(name, 0) + quota.throttled
        return counts

    # -- changes -----------------------------------------------------------------------------------

    def partitions_created(self, partitions: Iterable[Partition]) -> None:
        """Handle new partitions: a broker that is stopped, or paused and not fenced yet, has an
        empty replica.
        """
        processes, newest = self.metadata.processes, self.metadata.image
        several_dirs = any(broker.log_dirs.has_several for broker in processes.values())
        apart = (
            self._stepwise
            or not self.network.is_quiet
            or not all(b.state == RUNNING and b.image is newest for b in processes.values())
        )
        for partition in partitions:
            if several_dirs:
                for node_id in partition.replicas:
                    if node_id in processes:
                        processes[node_id].log_dirs.dir_of(partition)
            if apart or len(partition.isr) < len(partition.replicas):
                self.assignment_changed(partition)

    def replace_replicas(self, partition: Partition, replicas: list[int]) -> None:
        """Change the replicas of a partition: new ones start empty, removed ones lose their log."""
        former, partition.replicas = partition.replicas, replicas
        for node_id in former:
            if node_id not in replicas:
                partition.own_replicas.pop(node_id, None)
                partition.followers.pop(node_id, None)
                self._held.discard((partition.key, node_id))
                self._lag_ms.pop((partition.key, node_id), None)
                broker = self.metadata.processes.get(node_id)
                if broker is not None:
                    broker.log_dirs.remove(partition)
        for node_id in replicas:
            if node_id not in former:
                partition.own_replicas[node_id] = Replica(node_id, ReplicaLog(), 0)
                if self.metadata.is_leader_object(partition):
                    partition.followers[node_id] = FollowerState(node_id)

    def assignment_changed(self, partition: Partition) -> None:
        """Start or stop followers after a change of the leader, the ISR, the replicas or a rule."""
        if self.recorder is not None:
            self.recorder.partition_changed(partition)
        metadata = self.metadata
        led_here = metadata.is_leader_object(partition)
        if (
            metadata.all_have_newest_image
            or metadata.image.partition_by_id(*partition.key) is partition
        ):
            self._unshare_logs(partition, led_here=led_here)
        leading = self._leading.get(partition)
        if led_here and partition.followers:
            if leading is None:
                leading = self._leading[partition] = LeaderReplication(self, partition)
            leading.reconcile()
        elif leading is not None:
            self.forget(partition)
        for node_id, replica in list(partition.own_replicas.items()):
            if metadata.image_has(node_id, partition):
                self._start_or_stop_fetcher(partition, node_id, replica)

    def _unshare_logs(self, partition: Partition, *, led_here: bool) -> None:
        """Give replicas to the followers that can no longer share the leader's log."""
        log = partition.log
        for node_id in partition.replicas:
            if (
                node_id != partition.leader_id
                and node_id not in partition.own_replicas
                and self.needs_own_copy(partition, node_id)
            ):
                replica = Replica(node_id, log.fork(), partition.high_watermark)
                partition.own_replicas[node_id] = replica
                if led_here:
                    now_ms = self.runtime.now_ms()
                    partition.followers[node_id] = FollowerState.caught_up(node_id, log, now_ms)

    def maybe_share_log(self, partition: Partition, node_id: int) -> None:
        """Let a caught-up follower share the leader's log and high watermark, if possible."""
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
        replica.fetcher = None  # breaks the reference cycle, so that both are freed at once
        if self.recorder is not None:
            self.recorder.partition_changed(partition)
        if not partition.followers:
            self.forget(partition)

    def forget(self, partition: Partition) -> None:
        """Close the leader's state: no follower has a log of its own."""
        if partition.deleted:
            self._limited.discard(partition.key)
        leading = self._leading.pop(partition, None)
        if leading is not None:
            leading.close()

    def broker_changed(self, node_id: int) -> None:
        """Handle a change of a broker or of its links."""
        for partition in list(self.metadata.partitions()):
            if node_id in partition.replicas:
                self.assignment_changed(partition)

    def links_changed(self) -> None:
        """Handle links that were cut, slowed down or restored."""
        for partition in list(self.metadata.partitions()):
            if len(partition.replicas) > 1:
                self.assignment_changed(partition)

    # -- followers ---------------------------------------------------------------------------------

    def _start_or_stop_fetcher(self, partition: Partition, node_id: int, replica: Replica) -> None:
        """Let a follower fetch from the leader of its image, or stop."""
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
        """Pass an event to a follower's fetcher, and carry out its effects."""
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
                self._send(partition, replica, effect)
            case Pause(number):
                backoff_ms = self.configs.get_int("replica.fetch.backoff.ms")
                self._retry_after(partition.key, replica, number, backoff_ms)
            case Truncated(former, offset):
                self._emit_truncation(partition, replica.node_id, former, offset)
                partition.notify()
            case Advanced(former):
                emit_watermark(
                    self.runtime,
                    partition,
                    replica.node_id,
                    former,
                    replica.high_watermark,
                    replica.log.end_offset,
                )
                partition.notify()

    def _retry_after(self, key: PartitionKey, replica: Replica, number: int, delay_ms: int) -> None:
        due_ms = self.runtime.now_ms() + delay_ms
        self.runtime.timers.call_at(due_ms, partial(self._handle, key, replica, RetryDue(number)))

    def _send(self, partition: Partition, replica: Replica, request: FetcherRequest) -> None:
        """Send a follower's request to its leader, or later if the follower is throttled."""
        if isinstance(request, Fetch):
            quota = self.quota("follower", replica.node_id)
            if quota.throttles(partition, replica.node_id, self.runtime.now_ms()):
                backoff_ms = self.configs.get_int("replica.fetch.backoff.ms")
                self._retry_after(partition.key, replica, request.number, max(backoff_ms, 1))
                return
            self._emit_fetch(partition, replica.node_id, request)
            self.network.send(FetchHop(self, partition, replica, request))
        else:
            self.network.send(OffsetForLeaderEpochHop(self, partition, replica, request))

    def handle_loss(self, hop: AnyFollowerHop) -> None:
        """Handle the loss of a request or response: the follower waits for its request timeout."""
        timeout_ms = self.configs.get_int("replica.socket.timeout.ms")
        self._retry_after(hop.key, hop.replica, hop.fetcher_request.number, timeout_ms)

    def handle_request(self, hop: AnyFollowerHop) -> None:
        """Handle a follower's request on its receiver.

        A request that is no longer in flight came over a closed connection.
        """
        fetcher = hop.replica.fetcher
        if fetcher is None or not fetcher.is_in_flight(hop.fetcher_request.number):
            return
        partition = self.metadata.image_of(hop.receiver).partition_by_id(*hop.key)
        if partition is None:
            self.handle_loss(hop)
            return
        leading = self._leading.get(partition)
        if leading is None or partition.leader_id != hop.receiver:
            self.answer(hop, hop.error_answer(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        else:
            leading.handle_request(hop)

    def answer(self, hop: AnyFollowerHop, answer: Answer) -> None:
        """Send a response to a follower, delayed by a rule if there is one."""
        self.network.answer(hop, answer, self._lag_ms.get((hop.key, hop.sender), 0))

    def handle_answer(self, hop: AnyFollowerHop, answer: Answer) -> None:
        """Handle a response on the follower."""
        if isinstance(answer, Fetched) and answer.records is not None:
            partition = self.metadata.image_of(hop.sender).partition_by_id(*hop.key)
            if partition is not None:
                size = answer.records.batches.held_bytes
                self.quota("follower", hop.sender).record(partition, size, self.runtime.now_ms())
        self._handle(hop.key, hop.replica, answer)

    # -- leaders and the controller ----------------------------------------------------------------

    def alter_partition(
        self,
        partition: Partition,
        request: AlterPartition,
        answered: Callable[[ErrorCode], None],
    ) -> bool:
        """Send a leader's request to the controller. False if the leader cannot reach the
        controller: then nothing is sent.

        `answered` gets the error code: REQUEST_TIMED_OUT after `controller.socket.timeout.ms`,
        NETWORK_EXCEPTION if the connection breaks.
        """
        metadata, network = self.metadata, self.network
        leader_id, controller_id = request.node_id, metadata.image.controller_id
        if not metadata.has_newest_image(leader_id):
            return False
        if network.is_direct(leader_id, controller_id, ApiKey.ALTER_PARTITION, partition):
            answered(self.on_alter_partition(request))
            return True
        hop = AlterPartitionHop(metadata, network, request, self.on_alter_partition, answered)
        due_ms = self.runtime.now_ms() + self.configs.get_int("controller.socket.timeout.ms")
        hop.timer = self.runtime.timers.call_at(due_ms, hop.time_out)
        network.send(hop)
        return True

    # -- events ------------------------------------------------------------------------------------

    @property
    def fetch_limits(self) -> FetchLimits:
        """The limits of followers' fetches by the current broker configs."""
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

    def _emit_truncation(
        self, partition: Partition, node_id: int, former: int, offset: int
    ) -> None:
        now_ms, topic = self.runtime.now_ms(), partition.topic.name
        self.runtime.emit(
            LogTruncated(
                now_ms, topic, partition.index, node_id, former, offset, self.runtime.cause
            )
        )
