"""Laws of the producer state of logs, of markers, and of the end of transactions."""

from __future__ import annotations

from mockbroker.core.events import (
    Event,
    LogTruncated,
    MarkerWritten,
    TransactionMoved,
    WatermarkMoved,
)
from mockbroker.core.log.producer_state import BATCHES_KEPT
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.replication.partition import Partition
from mockbroker.simulation import observe, observe_transactions
from mockbroker.simulation.laws.base import Key, Law, key_of, name_of
from mockbroker.simulation.logs import ObservedBatch, batches_of
from mockbroker.simulation.observe import ObservedReplica
from mockbroker.simulation.script import Call
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)

_NO_SEQUENCE = -1
_PREPARED = ("PrepareCommit", "PrepareAbort")
_PREPARED = ("PrepareCommit", "PrepareAbort")
_COMPLETE = ("CompleteCommit", "CompleteAbort")


class _Producer:
    """The state of one producer id that follows from its batches in one log."""

    __slots__ = ("batches", "epoch", "last_sequence", "transaction_start")

    def __init__(self) -> None:
        self.epoch = -1
        self.last_sequence = _NO_SEQUENCE
        self.transaction_start = -1
        self.batches: list[tuple[int, int]] = []  # base and last offset of the latest

    def take(self, batch: ObservedBatch) -> None:
        """The next batch."""
        if batch.producer_epoch != self.epoch:
            self.epoch = batch.producer_epoch
            self.last_sequence = _NO_SEQUENCE
            self.batches.clear()
        if batch.marker is not None:
            self.transaction_start = -1
            return
        self.last_sequence = batch.base_sequence + batch.records - 1
        self.batches = [*self.batches[1 - BATCHES_KEPT :], (batch.base_offset, batch.last_offset)]
        if batch.transactional and self.transaction_start < 0:
            self.transaction_start = batch.base_offset


class _Replay:
    """A log that is read from its first offset on, as far as it goes."""

    __slots__ = ("aborted", "cuts", "end", "epochs", "log", "producers", "touched")

    def __init__(self, log: ReplicaLog) -> None:
        self.log = log
        self.cuts = log.cuts
        self.end = 0
        self.producers: dict[int, _Producer] = {}
        self.aborted: list[tuple[int, int, int]] = []  # producer id, first offset, marker
        self.epochs: dict[int, int] = {}  # leader epochs, and where each begins
        self.touched: set[int] = set()  # producers of which the law has not judged all

    def fits(self, log: ReplicaLog) -> bool:
        """Whether the log has only grown since."""
        return self.log is log and self.cuts == log.cuts and self.end <= log.end_offset

    def go_on(self) -> None:
        """Read what has come since."""
        for batch in observe.batches_between(self.log, self.end, self.log.end_offset):
            self.epochs.setdefault(batch.epoch, batch.base_offset)
            if batch.producer_id < 0:
                continue
            producer = self.producers.get(batch.producer_id)
            if producer is None:
                producer = self.producers[batch.producer_id] = _Producer()
            begun = producer.transaction_start
            if batch.marker is False and begun >= 0:
                self.aborted.append((batch.producer_id, begun, batch.base_offset))
            producer.take(batch)
            self.touched.add(batch.producer_id)
        self.end = self.log.end_offset


class ProducersFollow(Law):
    """The producers, the aborted transactions and the leader epochs of a log are those that follow
    from its batches: on leaders after each append, on followers after each truncation.
    """

    name = "the state of a log follows from its batches"
    events = (LogTruncated,)

    def begin(self) -> None:
        self._replays: dict[tuple[Key, int], _Replay] = {}
        self._cut: set[tuple[str, int, int]] = set()

    def on_event(self, event: Event) -> None:
        if isinstance(event, LogTruncated):
            self._cut.add((event.topic, event.partition, event.node_id))

    def look(self, partition: Partition, views: list[ObservedReplica]) -> None:
        for view in views:
            if view.leads:
                self._judge(partition, view)
        if self._cut:
            self._look_at_cuts()

    def _look_at_cuts(self) -> None:
        cut, self._cut = self._cut, set()
        for topic, index, node_id in sorted(cut):
            partition = self.laws.cluster.partition(topic, index)
            if partition is None:
                continue
            for view in observe.replicas(self.laws.cluster, partition):
                if view.node_id == node_id:
                    self._judge(partition, view)

    def _judge(self, partition: Partition, view: ObservedReplica) -> None:
        log = view.log
        if partition.topic.is_internal or log.start_offset or observe.has_holes(log):
            return  # the log may know producers of deleted records
        where = (key_of(partition), view.node_id)
        replay = self._replays.get(where)
        if replay is None or not replay.fits(log):
            replay = self._replays[where] = _Replay(log)
        elif replay.end == log.end_offset:
            return
        replay.go_on()
        name = f"{name_of(partition)} on broker {view.node_id}"
        self._judge_epochs(name, replay)
        touched, replay.touched = replay.touched, set()
        for producer_id in sorted(touched):
            self._judge_producer(name, replay, producer_id)
        known = [
            (each.producer_id, each.first_offset, each.last_offset)
            for each in log.producers.aborted
        ]
        if known != replay.aborted:
            self.broken(
                f"{name}: it lists the aborted transactions {known}, and has {replay.aborted}"
            )

    def _judge_epochs(self, name: str, replay: _Replay) -> None:
        entries = replay.log.epochs.entries
        known = dict(entries)
        if entries and entries[-1][1] == replay.end and entries[-1][0] not in replay.epochs:
            del known[entries[-1][0]]  # nothing was written under it yet
        if known != replay.epochs:
            self.broken(f"{name}: it lists the epochs {known}, and has {replay.epochs}")

    def _judge_producer(self, name: str, replay: _Replay, producer_id: int) -> None:
        entry = replay.log.producers.entries.get(producer_id)
        if entry is None:
            return  # Kafka forgets producers after a time as well
        wanted = replay.producers[producer_id]
        found = (
            entry.epoch,
            entry.last_sequence,
            entry.transaction_start,
            [(batch.base_offset, batch.last_offset) for batch in entry.batches],
        )
        due = (wanted.epoch, wanted.last_sequence, wanted.transaction_start, wanted.batches)
        if found != due:
            self.broken(
                f"{name}: it has producer {producer_id} with epoch, sequence, first offset of its "
                f"transaction and batches as {found}, and not as {due}"
            )

    def forget(self) -> None:
        self._replays.clear()


class AcknowledgedInTime(Law):
    """A Produce with acks=all gets REQUEST_TIMED_OUT only if the high watermark has not passed its
    batch, as long as the leader epoch stays the same.
    """

    name = "acknowledgements come in time"

    def produced(self, call: Call, response: ProduceResponse) -> None:
        """A broker has answered."""
        request: ProduceRequest = call.request
        for topic, answers in zip(request.topic_data, response.responses, strict=True):
            for data, answer in zip(topic.partition_data, answers.partition_responses, strict=True):
                if answer.error_code == ErrorCode.REQUEST_TIMED_OUT:
                    self._judge(call.node_id, topic, data)

    def _judge(self, node_id: int, topic: TopicProduceData, data: PartitionProduceData) -> None:
        cluster = self.laws.cluster
        records = data.records
        broker = cluster.processes.get(node_id)
        if not isinstance(records, memoryview) or broker is None:
            return
        batch = next(batches_of(bytes(records)), None)
        if batch is None:
            return
        seen = observe.seen_by(broker, topic.name or topic.topic_id, data.index)
        if seen is None:
            return
        for view in observe.replicas(cluster, seen):
            if view.node_id != node_id or not view.leads:
                continue
            log = view.log
            copies = [
                stored
                for stored in observe.batches_between(log, log.start_offset, log.end_offset)
                if stored.crc == batch.crc and stored.epoch == view.leader_epoch
            ]
            # A producer that is not idempotent may have sent it before: this is about the last.
            if copies and copies[-1].last_offset < view.high_watermark:
                self.broken(
                    f"{name_of(seen)} on broker {node_id}: a batch at {copies[-1].base_offset} was "
                    f"not acknowledged, and the high watermark is at {view.high_watermark}"
                )


class TransactionsMove(Law):
    """A transactional id changes its state when the record of the change is replicated. Its
    transaction is complete when the markers in all of its partitions are replicated, and none of
    its offsets is pending. A coordinator that has lost records of its log ends the transaction in
    the partitions that are left; it stays open in the others. A coordinator skips a partition that
    its broker's metadata lack, as if it was deleted, and the transaction stays open there
    (TransactionMarkerChannelManager.addTxnMarkersToBrokerQueue).
    """

    name = "transactions advance when records are replicated"
    events = (TransactionMoved, WatermarkMoved, MarkerWritten)

    def begin(self) -> None:
        self._high_watermarks: dict[Key, int] = {}  # the highest of any replica
        # By producer id, the partitions that a coordinator's metadata lacked when it sent markers.
        self._skipped: dict[int, set[Key]] = {}

    def look(self, partition: Partition, views: list[ObservedReplica]) -> None:
        for view in views:
            if view.leads:
                self._reached(partition.key, view.high_watermark)

    def _reached(self, key: Key, high_watermark: int) -> None:
        if high_watermark > self._high_watermarks.get(key, 0):
            self._high_watermarks[key] = high_watermark

    def on_event(self, event: Event) -> None:
        if isinstance(event, WatermarkMoved):
            # The next leader may have an older one, and lead before anybody looks.
            topic = self.laws.cluster.topics.get(event.topic)
            if topic is not None:
                self._reached((topic.topic_id, event.partition), event.high_watermark)
            return
        if isinstance(event, MarkerWritten):
            topic = self.laws.cluster.topics.get(event.topic)
            if topic is not None:
                key = topic.topic_id, event.partition
                self._skipped.get(event.producer_id, set()).discard(key)
            return
        if not isinstance(event, TransactionMoved):
            return
        if event.state in _PREPARED or event.state in _COMPLETE:
            self._note_skipped(event)
        if self.laws.transactions_lost:
            return
        self._judge_record(event)
        if event.state in _COMPLETE:
            self._judge_markers(event)

    def _note_skipped(self, event: TransactionMoved) -> None:
        cluster = self.laws.cluster
        broker = cluster.processes.get(event.node_id)
        if broker is not None and not broker.has_newest_image:
            self._skipped.setdefault(event.producer_id, set()).update(
                partition.key
                for partition in observe.partitions(cluster)
                if observe.seen_by(broker, *partition.key) is None
            )

    def _judge_record(self, event: TransactionMoved) -> None:
        partition = observe.transaction_partition(self.laws.cluster, event.transactional_id)
        if partition is None or key_of(partition) in self.laws.lossy:
            return
        # A paused leader does not act as one, but an action may move a transaction there.
        views = [
            view
            for view in observe.replicas(self.laws.cluster, partition)
            if view.leads or view.node_id == partition.leader_id
        ]
        if views and all(self._is_pending(view, event.transactional_id) for view in views):
            self.broken(
                f"{event.transactional_id} went from {event.former} to {event.state} before that "
                f"was replicated in {name_of(partition)}"
            )

    @staticmethod
    def _is_pending(view: ObservedReplica, transactional_id: str) -> bool:
        """Whether a record of the id is above the high watermark."""
        begin, end = view.high_watermark, view.log.end_offset
        if begin >= end:
            return False
        return observe.mentions(view.log, begin, end, transactional_id)

    def _judge_markers(self, event: TransactionMoved) -> None:
        producer_id = event.producer_id
        skipped = self._skipped.get(producer_id, ())
        for group, offsets in observe.pending_groups(self.laws.cluster, producer_id):
            if key_of(offsets) not in self.laws.lossy and key_of(offsets) not in skipped:
                self.broken(
                    f"{event.transactional_id} is {event.state}, and {group} has its offsets "
                    "pending"
                )
        for partition in observe.partitions(self.laws.cluster):
            key = key_of(partition)
            if key in self.laws.lossy or key in self.laws.ended_by_action or key in skipped:
                continue
            views = [v for v in observe.replicas(self.laws.cluster, partition) if v.leads]
            if not views:
                continue
            view = max(views, key=lambda each: each.leader_epoch)
            entry = view.log.producers.entries.get(producer_id)
            if entry is None:
                continue
            if entry.transaction_start >= 0:
                self.broken(
                    f"{event.transactional_id} is {event.state}, and its transaction is open in "
                    f"{name_of(partition)} since {entry.transaction_start}"
                )
                continue
            reached = max(view.high_watermark, self._high_watermarks.get(key, 0))
            marker = observe.unreplicated_end(view.log, producer_id, reached)
            if marker >= 0:
                self.broken(
                    f"{event.transactional_id} is {event.state}, and its marker at {marker} of "
                    f"{name_of(partition)} is not below the high watermark {reached}"
                )

    def forget(self) -> None:
        self._high_watermarks.clear()


class MarkersGoOn(Law):
    """A coordinator with a transaction in PrepareCommit or PrepareAbort is sending a marker to
    every partition of it without one.
    """

    name = "markers are sent until they are written"
    events = (TransactionMoved,)

    def begin(self) -> None:
        self._is_any = False  # whether an end may be decided and not complete

    def on_event(self, event: Event) -> None:
        self._is_any |= isinstance(event, TransactionMoved) and event.state in _PREPARED

    def look(self, partition: Partition, views: list[ObservedReplica]) -> None:  # noqa: ARG002
        # A coordinator also finds prepared ends when it loads its log.
        if self._is_any or partition.topic.name == observe.TRANSACTIONS:
            self._judge()

    def conclude(self) -> None:
        self._judge()

    def _judge(self) -> None:
        self._is_any = False
        if self.laws.transactions_lost:
            return  # leaders refuse the marker of an epoch that is over
        for transaction, missing in observe_transactions.decided(self.laws.cluster):
            self._is_any = True
            if missing:
                self.broken(
                    f"{transaction.transactional_id} is {transaction.state.value}, and no marker "
                    f"is on its way to {missing}"
                )


class MarkersEndVerification(Law):
    """No batch is appended after a marker if it was sent before it: the marker cancels the
    verification of earlier batches of its producer (KIP-890).
    """

    name = "markers end verification"
    events = (MarkerWritten,)

    def on_event(self, event: Event) -> None:
        if isinstance(event, MarkerWritten) and observe_transactions.is_verifying_after(
            self.laws.cluster, event
        ):
            self.broken(
                f"{event.topic}-{event.partition}: a batch of producer {event.producer_id} is "
                f"still being verified after its marker at {event.offset}"
            )
