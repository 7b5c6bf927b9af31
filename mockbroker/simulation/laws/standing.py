"""Laws of the state of single brokers: logs of followers grow by fetches only, leaders know the
positions that were fetched, and every waiting request is answered.
"""

from __future__ import annotations

from mockbroker.core.events import (
    BrokerChanged,
    Event,
    LogTruncated,
    NetworkChanged,
    RecordsRemoved,
    ReplicasChanged,
    WatermarkMoved,
)
from mockbroker.core.replication.alter_partition import RETRY_BACKOFF_MS
from mockbroker.core.replication.partition import Partition
from mockbroker.handlers.base import APIS
from mockbroker.simulation import observe
from mockbroker.simulation import plan as plans
from mockbroker.simulation.laws.base import Key, Law, key_of, name_of
from mockbroker.simulation.observe import ObservedReplica
from mockbroker.simulation.plan import Step
from mockbroker.simulation.script import Call

_FORWARDED_MS = 1_000  # enough for what is answered at once
# Arguments of actions that write markers or records of coordinators.
_WRITING = frozenset(("transactional_id", "producer_id", "group", "key"))


class HighWatermarkWaits(Law):
    """The high watermark of a leader advances only to an offset that every member of the ISR has
    fetched, and every replica that an AlterPartition in flight adds.
    """

    name = "the high watermark waits"
    events = (WatermarkMoved,)

    def begin(self) -> None:
        self._seen: dict[tuple[Key, int, int], int] = {}

    def look(self, partition: Partition, views: list[ObservedReplica]) -> None:
        key = key_of(partition)
        for view in views:
            if not view.leads:
                continue
            known = view.known
            where = (key, view.node_id, view.leader_epoch)
            former = self._seen.get(where)
            self._seen[where] = view.high_watermark
            if former is None or view.high_watermark <= former or not known.followers:
                continue
            awaited = (*known.isr, *known.isr_in_flight)
            for node_id, state in known.followers.items():
                if node_id in awaited and state.fetched_offset < view.high_watermark:
                    self.broken(
                        f"{name_of(partition)} on broker {view.node_id}: from {former} to "
                        f"{view.high_watermark}, while broker {node_id} of the ISR {known.isr} "
                        f"(requested: {list(known.isr_in_flight)}) has fetched up to "
                        f"{state.fetched_offset}"
                    )

    def on_event(self, event: Event) -> None:
        if isinstance(event, WatermarkMoved) and event.cause:
            self._seen.clear()

    def after(self, step: Step) -> None:
        if step.do == plans.RESTART:  # leaders wait for fetches of their followers anew
            self._seen.clear()

    def forget(self) -> None:
        self.begin()


class LeadersKnowNoMore(Law):
    """The position of a follower at its leader is not above its log end offset, unless the follower
    has truncated its log.
    """

    name = "followers' positions are real"
    of_replicas = True
    events = (LogTruncated,)

    def begin(self) -> None:
        self._lost: set[tuple[str, int, int]] = set()

    def look(self, partition: Partition, views: list[ObservedReplica]) -> None:
        leader = next((view for view in views if view.leads and view.known.followers), None)
        if leader is None:
            return
        for view in views:
            state = leader.known.followers.get(view.node_id)
            if state is None or view.known is not leader.known:
                continue
            where = (partition.topic.name, partition.index, view.node_id)
            if state.fetched_offset > view.log.end_offset and where not in self._lost:
                self.broken(
                    f"{name_of(partition)}: leader {leader.node_id} takes broker {view.node_id} "
                    f"for as far as {state.fetched_offset}, and its log ends at "
                    f"{view.log.end_offset}"
                )

    def on_event(self, event: Event) -> None:
        if isinstance(event, LogTruncated):
            self._lost.add((event.topic, event.partition, event.node_id))

    def forget(self) -> None:
        self.begin()


class NothingWithoutAWay(Law):
    """The log of a follower does not change while it cannot fetch: its broker is stopped or paused,
    its link to the leader is cut, or an action stops its fetches.
    """

    name = "unreachable followers stay as they are"
    events = (NetworkChanged, BrokerChanged, LogTruncated, RecordsRemoved, ReplicasChanged)

    def begin(self) -> None:
        self._ends: dict[tuple[Key, int], tuple[int, int]] = {}

    def look(self, partition: Partition, views: list[ObservedReplica]) -> None:  # noqa: ARG002
        if not self.laws.is_disturbed:
            self._ends.clear()
            return
        cluster = self.laws.cluster
        key = key_of(partition)
        for node_id in partition.replicas:
            where = (key, node_id)
            known = observe.known_to(cluster, node_id, partition)
            if (
                known is None
                or node_id not in known.replicas
                or known.leader_id == node_id
                or observe.can_fetch(cluster, known, node_id)
            ):
                self._ends.pop(where, None)
                continue
            now = observe.last_written(observe.log_of(known, node_id))
            former = self._ends.setdefault(where, now)
            if former != now:
                self.broken(
                    f"{name_of(partition)}: the log of broker {node_id}, which cannot ask its "
                    f"leader {known.leader_id}, went from {former[0]} (epoch {former[1]}) to "
                    f"{now[0]} (epoch {now[1]})"
                )
                self._ends[where] = now

    def on_event(self, event: Event) -> None:
        if not self._ends:
            return
        match event:
            case NetworkChanged():
                self._ends.clear()
            case BrokerChanged(node_id=node_id):
                for where in [each for each in self._ends if each[1] == node_id]:
                    del self._ends[where]
            case LogTruncated() | RecordsRemoved() | ReplicasChanged():
                topic = self.laws.cluster.topics.get(event.topic)
                for where in [w for w in self._ends if topic and w[0][0] == topic.topic_id]:
                    if where[0][1] == event.partition:
                        del self._ends[where]
            case _:
                pass

    def after(self, step: Step) -> None:
        """An action may write on a paused broker."""
        if not _WRITING.isdisjoint(step.arguments):
            self._ends.clear()

    def forget(self) -> None:
        self.begin()


class NoEpochAhead(Law):
    """No log has a leader epoch above that in its broker's image."""

    name = "logs have no unknown leader epoch"

    def look(self, partition: Partition, views: list[ObservedReplica]) -> None:
        for view in views:
            latest = view.log.epochs.latest
            if latest > view.leader_epoch:
                self.broken(
                    f"{name_of(partition)}: the log of broker {view.node_id} has the epoch "
                    f"{latest}, and the broker has {view.leader_epoch}"
                )


class ChangesAreAnswered(Law):
    """An AlterPartition is answered within `controller.socket.timeout.ms`, if no message between
    the leader and the controller is delayed or lost.
    """

    name = "AlterPartition is answered"

    def begin(self) -> None:
        # The requested ISR, and since when, in ms since the epoch.
        self._requested: dict[tuple[Key, int], tuple[object, int]] = {}

    def look(self, partition: Partition, views: list[ObservedReplica]) -> None:
        now_ms = self.laws.history.now_ms()
        for view in views:
            requested = view.known.isr_in_flight
            if not requested and not self._requested:
                continue
            where = (partition.key, view.node_id)
            if (
                not requested
                or not view.leads
                or not observe.alters_at_once(self.laws.cluster, view.node_id)
            ):
                self._requested.pop(where, None)
                continue
            before = self._requested.get(where)
            if before is None or before[0] is not requested:
                self._requested[where] = (requested, now_ms)
            elif now_ms - before[1] > RETRY_BACKOFF_MS + self.laws.cluster.config_int(
                "controller.socket.timeout.ms"
            ):
                self.broken(
                    f"{name_of(partition)}: leader {view.node_id} waits for the ISR "
                    f"{list(requested)} since {now_ms - before[1]} ms"
                )

    def conclude(self) -> None:
        for partition in observe.partitions(self.laws.cluster):
            if partition.isr_in_flight:
                self.broken(
                    f"{name_of(partition)}: leader {partition.leader_id} still waits for the ISR "
                    f"{list(partition.isr_in_flight)}"
                )

    def forget(self) -> None:
        self.begin()


class NobodyWaitsInVain(Law):
    """A leader answers all waiting requests when it learns that it is no longer the leader, except
    for ShareFetch, which waits to its end, as in Kafka.
    """

    name = "deposed leaders answer waiting requests"

    def gone(self, partition: Partition) -> None:
        if observe.waits_in_vain(partition):
            self.broken(
                f"{name_of(partition)}: a request waits for leader {partition.leader_id} of epoch "
                f"{partition.leader_epoch}, which no broker has any more"
            )


class CoordinatorsAwake(Law):
    """The leader of a partition of `__consumer_offsets`, `__transaction_state` or
    `__share_group_state` has loaded it, or is loading it. No coordinator uses a partition that its
    broker's image no longer has.
    """

    name = "coordinators load their partitions"
    topics = observe.COORDINATOR_LOGS

    def begin(self) -> None:
        self._asleep: dict[Key, int] = {}  # under which leader epoch

    def look(self, partition: Partition, views: list[ObservedReplica]) -> None:  # noqa: ARG002
        if self._sleeps(partition):
            self._asleep[key_of(partition)] = partition.leader_epoch
            self.laws.look_later(self, partition)

    def look_again(self, partition: Partition) -> None:
        epoch = self._asleep.pop(key_of(partition), None)
        if self._sleeps(partition):
            if epoch != partition.leader_epoch:  # another leader, who gets its own time
                self._asleep[key_of(partition)] = partition.leader_epoch
                self.laws.look_later(self, partition)
                return
            self.broken(
                f"{name_of(partition)}: broker {partition.leader_id} leads it, and its "
                "coordinator does not know"
            )

    def _sleeps(self, partition: Partition) -> bool:
        return observe.is_coordinated(self.laws.cluster, partition) is False

    def gone(self, partition: Partition) -> None:
        if observe.is_coordinator_log(partition.topic.name):
            left = observe.coordinators_left(self.laws.cluster, partition)
            if left:
                self.broken(
                    f"{name_of(partition)}: the coordinators of brokers {left} have state of a "
                    "former leadership"
                )


class ForwardedGoOn(Law):
    """A forwarded request waits only while its broker cannot reach the controller. Over a slow link
    it takes the delays of both ways, and is sent again after `controller.socket.timeout.ms` without
    an answer.
    """

    name = "forwarded requests are answered"
    events = (NetworkChanged,)

    def begin(self) -> None:
        self._changed_ms = 0  # when links last changed
        self._is_slow = False  # whether the way to a controller took time when last looked at
        self._slow_ms = -1  # until when it took time
        self._delays_ms = 0  # the longest time that it took both ways

    def on_event(self, event: Event) -> None:
        if isinstance(event, NetworkChanged):
            self._changed_ms = event.at_ms
            self._note()

    def before(self, step: Step) -> None:  # noqa: ARG002
        self._note()

    def after(self, step: Step) -> None:  # noqa: ARG002
        self._note()

    def _note(self) -> None:
        was_slow, self._is_slow = self._is_slow, observe.forwards_travel(self.laws.cluster)
        if was_slow or self._is_slow:
            self._slow_ms = self.laws.history.now_ms()
            self._delays_ms = max(self._delays_ms, observe.forwarding_ms(self.laws.cluster))

    def timed_out(self, client: str, call: Call, since_ms: int) -> None:
        """A call has timed out, and its broker ran all the time."""
        if not APIS[call.api_key].forwarded:
            return
        laws = self.laws
        self._note()
        waited_ms = laws.history.now_ms() - max(since_ms, self._changed_ms)
        longest_ms = _FORWARDED_MS
        if self._slow_ms >= since_ms:
            longest_ms += laws.cluster.config_int("controller.socket.timeout.ms")
            longest_ms += self._delays_ms
        if waited_ms > longest_ms and observe.has_newest_image(laws.cluster, call.node_id):
            self.broken(
                f"{call.api_key.name} of {client} to broker {call.node_id} had no answer "
                f"{waited_ms} ms after the broker could hear the controller"
            )
