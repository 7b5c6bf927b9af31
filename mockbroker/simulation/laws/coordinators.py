"""Laws of the state of coordinators, and of Fetch answers."""

from __future__ import annotations

from typing import Any

from mockbroker.core.events import Event, GroupMoved
from mockbroker.core.replication.partition import Partition
from mockbroker.simulation import observe
from mockbroker.simulation.clients.base import SimulatedClient
from mockbroker.simulation.clients.reading import Reading
from mockbroker.simulation.laws.base import Key, Law, key_of, name_of
from mockbroker.simulation.observe import ObservedReplica, Shard
from mockbroker.simulation.observe_coordinators import StoredRecords, memory_and_log, stored_by
from mockbroker.simulation.script import Call

_DEAD = "Dead"


class CoordinatorsFollow(Law):
    """A coordinator uses the log and the leader epoch of its broker's image. It loads each
    partition with records before a request needs it. Each waiting request is answered once.
    """

    name = "coordinators follow the leadership"
    topics = observe.COORDINATOR_LOGS

    def look(self, partition: Partition, views: list[ObservedReplica]) -> None:
        del views
        for broker, found in observe.shards(self.laws.cluster, partition):
            if found.loading:
                continue
            if not observe.fits(broker, found):
                self.broken(
                    f"broker {broker.node_id} coordinates a former state of {name_of(partition)}"
                )
            for offset in observe.answered_already(found):
                self.broken(
                    f"a request would be answered twice (offset {offset} of {name_of(partition)})"
                )

    def resting(self) -> None:
        """Time has passed without requests to coordinators."""
        cluster = self.laws.cluster
        for broker in cluster.processes.values():
            for partition in observe.not_loaded(broker):
                self.broken(
                    f"broker {broker.node_id} leads {name_of(partition)}, and has not read it"
                )


class CoordinatorsKnow(Law):
    """The committed offsets, groups, share partitions and transactions of a coordinator are those
    in the records of its partition. A transaction coordinator ignores a record that was not
    replicated in time.
    """

    name = "coordinators agree with their log"
    topics = observe.COORDINATOR_LOGS

    def begin(self) -> None:
        self._seen: dict[tuple[str, int], tuple[int, int, int]] = {}
        # Of each partition the high watermarks, and when each was seen first.
        self._passed: dict[Key, list[tuple[int, int]]] = {}
        self._stored: dict[Key, StoredRecords] = {}  # what each log says

    def look(self, partition: Partition, views: list[ObservedReplica]) -> None:
        del views
        passed = self._passed.setdefault(key_of(partition), [])
        if not passed or passed[-1][0] != partition.high_watermark:
            passed.append((partition.high_watermark, self.laws.history.now_ms()))
        broker = self.laws.cluster.processes.get(partition.leader_id)
        shard = None if broker is None else observe.shard_of(broker, partition)
        if broker is None or shard is None or not observe.fits(broker, shard):
            return
        mark = (broker.node_id, partition.leader_epoch, id(shard))
        where = (partition.topic.name, partition.index)
        if self._seen.get(where) != mark:
            self._seen[where] = mark
            self._judge(partition, shard)

    def conclude(self) -> None:
        for partition in observe.partitions(self.laws.cluster):
            broker = self.laws.cluster.processes.get(partition.leader_id)
            shard = None if broker is None else observe.shard_of(broker, partition)
            if shard is not None:
                self._judge(partition, shard)

    def on_response(
        self, client: SimulatedClient, call: Call, response: Any, *, late: bool
    ) -> None:
        """A broker has answered OffsetCommit: refused offsets are neither in memory nor logged."""
        del client, late
        broker = self.laws.cluster.processes.get(call.node_id)
        refused = any(row.error_code for topic in response.topics for row in topic.partitions)
        if not refused or broker is None:
            return
        shard = observe.shard_of_group(broker, call.request.group_id)
        if shard is not None and observe.fits(broker, shard):
            self._judge(shard.partition, shard)

    def _judge(self, partition: Partition, shard: Any) -> None:
        if partition.topic.name == observe.SHARES and self.laws.share_records_deleted:
            return
        passed = self._passed.get(key_of(partition), [])
        wait_ms = self.laws.cluster.config_int(shard.timeout_config)
        now_ms = self.laws.history.now_ms()

        def is_late(offset: int, written_ms: int) -> bool:
            """Whether a record was not replicated in time."""
            due_ms = written_ms + wait_ms
            return now_ms >= due_ms and not any(
                mark > offset and written_ms <= at_ms < due_ms for mark, at_ms in passed
            )

        for what, known, said in memory_and_log(shard, self._stored_by(shard), is_late):
            if known != said:
                self.broken(
                    f"the coordinator of {name_of(partition)} has {known} for {what}, and its log "
                    f"says {said}"
                )

    def _stored_by(self, shard: Shard) -> StoredRecords:
        key = shard.partition.key
        stored = self._stored.get(key)
        if stored is None or not stored.fits(shard.partition.log):
            stored = self._stored[key] = stored_by(shard)
        return stored


class EnoughReplicas(Law):
    """Records of transactions are written only while the ISR has `min.insync.replicas` members."""

    name = "coordinators write to enough replicas"
    topics = frozenset((observe.TRANSACTIONS,))

    def begin(self) -> None:
        # By partition and broker: its epochs and its log end, where it had too few replicas.
        self._few: dict[tuple[int, int], tuple[int, int, int]] = {}

    def look(self, partition: Partition, views: list[ObservedReplica]) -> None:
        for view in views:
            broker = self.laws.cluster.processes.get(view.node_id)
            where = (partition.index, view.node_id)
            before = self._few.pop(where, None)
            seen = None if broker is None else observe.seen_by(broker, *partition.key)
            if seen is None or not view.leads or not seen.under_min_isr:
                continue
            now = (seen.leader_epoch, seen.partition_epoch, view.log.end_offset)
            self._few[where] = now
            if before is not None and before[:2] == now[:2] and before[2] < now[2]:
                self.broken(
                    f"{name_of(seen)} grew from {before[2]} to {now[2]} with the ISR {seen.isr}"
                )

    def forget(self) -> None:
        self._few.clear()


class PhasesEnd(Law):
    """Each phase of a rebalance has a deadline. No request waits for a phase that is over. A group
    changes its state only at its coordinator.
    """

    name = "rebalance phases end"
    events = (GroupMoved,)

    def on_event(self, event: Event) -> None:
        if isinstance(event, GroupMoved) and event.protocol == "classic":
            for sentence in observe.stuck_members(self.laws.cluster, event.group, event.state):
                self.broken(f"group {event.group} is {event.state}, and {sentence}")
            generation = observe.generation_of(self.laws.cluster, event.group)
            if event.state == _DEAD or generation is None:  # a shard lets go of what it had
                return
            if event.generation > generation:
                self.broken(
                    f"group {event.group} is {event.state} in generation {event.generation}, and "
                    f"its coordinator has generation {generation}"
                )


class ConsumersAdvance(Law):
    """A member of a consumer group with its target assignment has the epoch of that assignment. An
    unreleased member waits for partitions that another member still has.
    """

    name = "consumers reach their target"

    def on_response(
        self, client: SimulatedClient, call: Call, response: Any, *, late: bool
    ) -> None:
        """A broker has answered a heartbeat."""
        del client
        if late or response.error_code or call.request.member_epoch < 0:
            return
        group_id, member_id = call.request.group_id, response.member_id
        for sentence in observe.behind_target(self.laws.cluster, call.node_id, group_id, member_id):
            self.broken(f"group {group_id}: {member_id} {sentence}")


class FetchesReport(Law):
    """A Fetch answer has the watermarks of the broker's own replica, and the diverging epoch if the
    consumer's last fetched epoch is not the log's. In a session it has every partition that has
    changed since the last answer.
    """

    name = "fetches report the broker's own log"

    def on_response(
        self, client: SimulatedClient, call: Call, response: Any, *, late: bool
    ) -> None:
        """A broker has answered a Fetch."""
        del late
        if not isinstance(client, Reading) or response.error_code or response.throttle_time_ms:
            return
        wanted, known = client.fetching
        answered = {
            (topic.topic or topic.topic_id, data.partition_index): data
            for topic in response.responses
            for data in topic.partitions
        }
        broker = self.laws.cluster.processes.get(call.node_id)
        if broker is None:
            return
        for key, requested in wanted.items():
            seen = observe.seen_by(broker, *key)
            view = None if seen is None else observe.copy_of(broker, seen)
            if seen is None or view is None:
                continue
            data = answered.get(key)
            if data is None:
                self._judge_omitted(client, seen, view, requested, known.get(key))
            elif not data.error_code:
                self._judge_returned(client, seen, view, requested, data)

    def _judge_omitted(
        self,
        client: SimulatedClient,
        seen: Partition,
        view: ObservedReplica,
        requested: Any,
        known: tuple[int, int] | None,
    ) -> None:
        name = f"{client.name} got no answer for {name_of(seen)}"
        if 0 <= requested.current_leader_epoch != seen.leader_epoch:
            self.broken(
                f"{name}, which has another leader epoch than {requested.current_leader_epoch}"
            )
        now = (view.high_watermark, view.log.start_offset)
        if known is not None and known != now:
            self.broken(f"{name}, which has gone from {known} to {now}")

    def _judge_returned(
        self,
        client: SimulatedClient,
        seen: Partition,
        view: ObservedReplica,
        requested: Any,
        data: Any,
    ) -> None:
        name = f"{client.name} got for {name_of(seen)}"
        returned = (data.high_watermark, data.log_start_offset)
        now = (view.high_watermark, view.log.start_offset)
        if returned != now:
            self.broken(f"{name} {returned} by broker {view.node_id}, which has {now}")
        if requested.last_fetched_epoch < 0 or data.diverging_epoch.end_offset >= 0:
            return
        log = view.log
        found, end = log.epochs.end_offset_for(requested.last_fetched_epoch, log.end_offset)
        if found < requested.last_fetched_epoch or end < requested.fetch_offset:
            self.broken(
                f"{name} at {requested.fetch_offset} after epoch {requested.last_fetched_epoch}, "
                f"without the diverging epoch {found} that ends at {end}"
            )
