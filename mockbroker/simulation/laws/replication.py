"""Laws of one partition and its replicas."""

from __future__ import annotations

from mockbroker.core.events import (
    UNCLEAN_ELECTION,
    Event,
    IsrChanged,
    LeaderChanged,
    LogTruncated,
    WatermarkMoved,
)
from mockbroker.core.replication.partition import Partition
from mockbroker.simulation import observe
from mockbroker.simulation.history import Sent
from mockbroker.simulation.laws.base import Key, Law, key_of, name_of
from mockbroker.simulation.laws.records import AcknowledgedKept
from mockbroker.simulation.observe import ObservedReplica

_CHANGES_BETWEEN = 15


class WatermarksInOrder(Law):
    """On every leader, log start offset <= last stable offset <= high watermark <= log end offset.
    No follower has a high watermark above its log end offset.
    """

    name = "watermarks are in order"

    def look(self, partition: Partition, views: list[ObservedReplica]) -> None:
        for view in views:
            log = view.log
            if view.leads and not (
                log.start_offset <= view.last_stable_offset <= view.high_watermark <= log.end_offset
            ):
                self.broken(
                    f"{name_of(partition)} on broker {view.node_id}: log start {log.start_offset}, "
                    f"last stable offset {view.last_stable_offset}, high watermark "
                    f"{view.high_watermark}, log end {log.end_offset}"
                )
            elif view.high_watermark > log.end_offset:
                self.broken(
                    f"{name_of(partition)} on broker {view.node_id}: high watermark "
                    f"{view.high_watermark}, log end {log.end_offset}"
                )


class HighWatermarkRises(Law):
    """The high watermark of a leader does not decrease within a leader epoch, unless an action
    sets it.
    """

    name = "the high watermark rises"
    events = (WatermarkMoved,)

    def begin(self) -> None:
        self._seen: dict[tuple[Key, int, int], int] = {}

    def look(self, partition: Partition, views: list[ObservedReplica]) -> None:
        key = partition.key
        for view in views:
            if not view.leads:
                continue
            where = (key, view.node_id, view.leader_epoch)
            former = self._seen.get(where, 0)
            if view.high_watermark < former:
                self.broken(
                    f"{name_of(partition)} on broker {view.node_id}, epoch {view.leader_epoch}: "
                    f"from {former} back to {view.high_watermark}"
                )
            self._seen[where] = view.high_watermark

    def on_event(self, event: Event) -> None:
        if isinstance(event, WatermarkMoved) and event.cause and self._seen:
            topic = self.laws.cluster.topics.get(event.topic)
            for where in [w for w in self._seen if topic and w[0][0] == topic.topic_id]:
                del self._seen[where]

    def forget(self) -> None:
        self._seen.clear()


class OneLeaderAnEpoch(Law):
    """No two brokers lead a partition under the same epoch, and epochs only rise."""

    name = "one leader an epoch"
    of_controller = True

    def begin(self) -> None:
        self._leaders: dict[tuple[Key, int], int] = {}
        self._latest: dict[Key, int] = {}

    def look(self, partition: Partition, views: list[ObservedReplica]) -> None:
        key = key_of(partition)
        for view in views:
            if not view.leads:
                continue
            known = self._leaders.setdefault((key, view.leader_epoch), view.node_id)
            if known != view.node_id:
                self.broken(
                    f"{name_of(partition)}: brokers {known} and {view.node_id} under epoch "
                    f"{view.leader_epoch}"
                )
        latest = self._latest.get(key, -1)
        if partition.leader_epoch < latest:
            self.broken(
                f"{name_of(partition)}: epoch {partition.leader_epoch} after epoch {latest}"
            )
        self._latest[key] = partition.leader_epoch


class ReplicasAgree(Law):
    """Replicas in the ISR have every record below the leader's high watermark, in the same batches
    as the leader.
    """

    name = "replicas agree"
    of_replicas = True
    events = (LeaderChanged, IsrChanged)

    def begin(self) -> None:
        self._checked: dict[tuple[Key, int], tuple[tuple[int, ...], int]] = {}
        # How often a partition may change before it is compared again.
        self._changes: dict[Key, int] = {}

    def on_event(self, event: Event) -> None:  # noqa: ARG002
        self._changes.clear()

    def look(self, partition: Partition, views: list[ObservedReplica]) -> None:
        key = key_of(partition)
        left = self._changes.get(key, 0)
        self._changes[key] = left - 1 if left else _CHANGES_BETWEEN
        if not left:
            self._compare_all(partition, views)

    def conclude(self) -> None:
        for partition in observe.partitions(self.laws.cluster):
            self._compare_all(partition, observe.replicas(self.laws.cluster, partition))

    def _compare_all(self, partition: Partition, views: list[ObservedReplica]) -> None:
        leader = next((view for view in views if view.node_id == partition.leader_id), None)
        if leader is None:
            return
        for view in views:
            if view.log is not leader.log and view.node_id in partition.isr:
                self._compare(partition, leader, view)

    def _compare(
        self, partition: Partition, leader: ObservedReplica, view: ObservedReplica
    ) -> None:
        one, other = leader.log, view.log
        key = key_of(partition)
        if other.end_offset < leader.high_watermark and key not in self.laws.lossy:
            self.broken(
                f"{name_of(partition)}: broker {view.node_id} of the ISR {partition.isr} ends at "
                f"{other.end_offset}, below the high watermark {leader.high_watermark} of leader "
                f"{leader.node_id}"
            )
        if observe.has_holes(one) or observe.has_holes(other):
            return
        end = min(leader.high_watermark, other.end_offset)
        begin = max(one.start_offset, other.start_offset)
        where = (key, view.node_id)
        # Whatever is cut or exchanged makes another mark, and all is compared again.
        mark = (id(one), one.cuts, id(other), other.cuts)
        known = self._checked.get(where)
        if known is not None and known[0] == mark:
            begin = max(begin, known[1])
        if begin >= end:
            return
        if observe.bytes_between(one, begin, end) != observe.bytes_between(other, begin, end):
            self.broken(
                f"{name_of(partition)}: broker {view.node_id} has other records than leader "
                f"{leader.node_id} between {begin} and {end}"
            )
        self._checked[where] = (mark, end)

    def forget(self) -> None:
        self._checked.clear()


class StableOffsetFollows(Law):
    """The last stable offset of a leader is the first offset of the first transaction without a
    marker below the high watermark; without such a transaction it is the high watermark. Logs with
    deleted records are not checked.
    """

    name = "the last stable offset follows"

    def begin(self) -> None:
        self._scans: dict[tuple[Key, int], _Scan] = {}

    def look(self, partition: Partition, views: list[observe.ObservedReplica]) -> None:
        key = partition.key
        if partition.topic.is_internal or key in self.laws.held:
            return
        for view in views:
            if not view.leads:
                continue
            log = view.log
            if log.start_offset or observe.has_holes(log):
                continue  # who has a transaction open may have nothing left in the log
            where = (key, view.node_id)
            scan = self._scans.get(where)
            mark = (id(log), log.cuts)
            if scan is None or scan.mark != mark or scan.end > view.high_watermark:
                scan = self._scans[where] = _Scan(mark)
            expected = scan.stable_offset(view)
            if expected != view.last_stable_offset:
                self.broken(
                    f"{name_of(partition)} on broker {view.node_id}: {view.last_stable_offset}, "
                    f"and not {expected}, with the high watermark at {view.high_watermark}"
                )

    def forget(self) -> None:
        self._scans.clear()


class _Scan:
    """The transactions of one log, as far as the high watermark has come."""

    __slots__ = ("end", "mark", "open")

    def __init__(self, mark: tuple[int, int]) -> None:
        self.mark = mark
        self.end = 0
        self.open: dict[int, int] = {}  # producer id -> where its transaction begins

    def stable_offset(self, view: observe.ObservedReplica) -> int:
        end = view.high_watermark
        if self.end < end:
            for base_offset, producer_id, is_marker in observe.transactional_batches(
                view.log, self.end, end
            ):
                if is_marker:
                    self.open.pop(producer_id, None)
                else:
                    self.open.setdefault(producer_id, base_offset)
            self.end = end
        return min(self.open.values()) if self.open else end


class AcknowledgedAlways(AcknowledgedKept, Law):
    """Records that were acknowledged with acks=all exist right after each change of a leader."""

    events = (LeaderChanged, LogTruncated)

    def begin(self) -> None:
        super().begin()
        self._suspect: set[tuple[str, int]] = set()
        # The leaders of partitions with an unclean election: (since ms, leader).
        self._leaders: dict[tuple[str, int], list[tuple[int, int]]] = {}

    def on_event(self, event: Event) -> None:
        if isinstance(event, LeaderChanged):
            where = (event.topic, event.partition)
            if event.unclean or where in self._leaders:
                known = self._leaders.setdefault(where, [])
                known.append((event.at_ms, event.leader_id))
        assert isinstance(event, LeaderChanged | LogTruncated)
        self._suspect.add((event.topic, event.partition))

    def settle_losses(self) -> None:
        """Excuse the losses of the latest unclean elections, and check for other losses."""
        if not self._suspect:
            return
        suspect, self._suspect = self._suspect, set()
        for topic, index in sorted(suspect):
            partition = self.laws.cluster.partition(topic, index)
            if partition is not None and partition.leader_id >= 0:
                unclean = (topic, index) in self.laws.unclean
                if self.wanted(key_of(partition)):
                    self.check(observe.log_view(partition), excuse=unclean)
                leads = observe.known_to(self.laws.cluster, partition.leader_id, partition)
                if leads is not None and leads.leader_epoch == partition.leader_epoch:
                    # A leader without the newest image truncates others later.
                    self.laws.unclean.discard((topic, index))

    def excuses(self, sent: Sent) -> bool:
        """Whether a former leader, whose image lacked its successor, acknowledged a batch in a
        partition that had an unclean election.
        """
        known = self._leaders.get((sent.topic, sent.partition), ())
        leader_id = sent.node_id
        for since_ms, elected in known:
            if since_ms <= sent.acked_ms:
                leader_id = elected
        return leader_id != sent.node_id

    def forget(self) -> None:
        super().forget()
        self._suspect.clear()


class ControllerLives(Law):
    """The active controller is a registered, unfenced broker, if there is one that reaches the
    controller.
    """

    name = "the controller is alive"
    of_controller = True

    def look(self, partition: Partition, views: list[ObservedReplica]) -> None:  # noqa: ARG002
        controller_id, brokers = self.laws.cluster.controller_id, self.laws.cluster.brokers
        broker = brokers.get(controller_id)
        if broker is not None and not broker.fenced:
            return
        alive = [b.node_id for b in brokers.values() if not b.fenced and b.has_newest_image]
        if alive:
            self.broken(f"the controller is broker {controller_id}, while {alive} are alive")


class UncleanOnlyWhereAllowed(Law):
    """A replica that is not in sync becomes the leader only if an action or a client requests an
    unclean election, if the topic allows it, or if it is the last known leader (KIP-966).
    """

    name = "unclean elections are allowed"
    events = (LeaderChanged,)

    def on_event(self, event: Event) -> None:
        if not isinstance(event, LeaderChanged) or not event.unclean:
            return
        cluster = self.laws.cluster
        topic = cluster.topics.get(event.topic)
        if topic is None or cluster.elr_enabled or event.reason == UNCLEAN_ELECTION:
            return
        if not topic.configs.unclean_leader_election_enable:
            self.broken(
                f"{event.topic}-{event.partition}: {event.leader_id} was elected out of sync "
                f"({event.reason})"
            )


class Losses(Law):
    """No law: notes the losses that laws excuse, those of unclean elections and lost disks."""

    name = "losses are noted"
    events = (LeaderChanged,)

    def on_event(self, event: Event) -> None:
        if isinstance(event, LeaderChanged) and event.unclean:
            self.laws.unclean.add((event.topic, event.partition))
            partition = self.laws.cluster.partition(event.topic, event.partition)
            if partition is not None:
                self.laws.mark_lossy(partition)
