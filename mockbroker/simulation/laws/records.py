"""Laws of what producers were promised and readers were given."""

from __future__ import annotations

from collections.abc import Iterator

from mockbroker.core.cluster import Cluster
from mockbroker.core.events import Event, LeaderChanged, LogTruncated
from mockbroker.core.partition import Partition
from mockbroker.simulation import history as happened
from mockbroker.simulation import observe
from mockbroker.simulation.history import Sent
from mockbroker.simulation.laws.base import Key, Law, key_of, name_of

ACKS_ALL = -1


class AcknowledgedKept(Law):
    """What was acknowledged with acks=all stays in the log, unless an unclean election, a lost disk
    or a deletion took it.
    """

    name = "what was acknowledged is kept"

    def begin(self) -> None:
        self._sorted = 0  # how many acknowledgements are in `_by_key`
        self._by_key: dict[Key, list[Sent]] = {}
        self._suspect: set[tuple[str, int]] = set()
        # Who led when, of partitions with an unclean election: (since ms, leader).
        self._leaders: dict[tuple[str, int], list[tuple[int, int]]] = {}

    def happened(self, event: Event) -> None:
        if isinstance(event, LeaderChanged):
            where = (event.topic, event.partition)
            if event.unclean or where in self._leaders:
                known = self._leaders.setdefault(where, [])
                known.append((event.at_ms, event.leader_id))
        if isinstance(event, LeaderChanged | LogTruncated):
            self._suspect.add((event.topic, event.partition))

    def settle_losses(self) -> None:
        """Forgive what an unclean election has just taken, and look for what nobody may take."""
        if not self._suspect:
            return
        suspect, self._suspect = self._suspect, set()
        for topic, index in sorted(suspect):
            partition = self.laws.cluster.partition(topic, index)
            if partition is not None and partition.leader_id >= 0:
                self._check(partition, forgive=(topic, index) in self.laws.unclean)
                self.laws.unclean.discard((topic, index))

    def acknowledged(self, key: Key) -> list[Sent]:
        """What was acknowledged in a partition, with acks=all."""
        acked = self.laws.history.acked
        while self._sorted < len(acked):
            sent = acked[self._sorted]
            self._sorted += 1
            if sent.acks == ACKS_ALL:
                self._by_key.setdefault((sent.topic_id, sent.partition), []).append(sent)
        return self._by_key.get(key, [])

    def _check(self, partition: Partition, *, forgive: bool) -> None:
        wanted = [s for s in self.acknowledged(key_of(partition)) if not s.voided]
        if not wanted or observe.has_holes(partition.log):
            return
        log = partition.log
        held = {batch.base_offset: batch.crc for batch in observe.batches(log)}
        for sent in wanted:
            if sent.base_offset + sent.count <= log.start_offset:
                continue
            if held.get(sent.base_offset) == sent.crc:
                continue
            if forgive or self._was_deposed(sent):
                sent.voided = "unclean election"
                continue
            self.broken(
                f"{name_of(partition)}: {sent.count} records of {sent.client} at offset "
                f"{sent.base_offset}, acknowledged at {sent.acked_ms - self.laws.start_ms} ms, "
                f"are not in the log of leader {partition.leader_id}, which goes from "
                f"{log.start_offset} to {log.end_offset}"
            )
            sent.voided = "told"

    def _was_deposed(self, sent: Sent) -> bool:
        """Whether a batch was acknowledged by a leader that had not heard of its successor, in a
        partition in which an unclean election was held.
        """
        known = self._leaders.get((sent.topic, sent.partition), ())
        leader_id = sent.node_id
        for since_ms, elected in known:
            if since_ms <= sent.acked_ms:
                leader_id = elected
        return leader_id != sent.node_id

    def forget(self) -> None:
        self._suspect.clear()
        for sent in self.laws.history.sent:
            sent.voided = sent.voided or "restored"

    def conclude(self) -> None:
        for partition in observe.partitions(self.laws.cluster):
            if partition.leader_id >= 0:
                self._check(partition, forgive=False)


class SequencesWhole(Law):
    """The sequence numbers of a producer epoch follow each other in the log, without gap or
    double.
    """

    name = "sequence numbers are whole"

    def conclude(self) -> None:
        for partition in _user_partitions(self.laws.cluster):
            following: dict[tuple[int, int], int] = {}
            for batch in observe.batches(partition.log):
                if batch.producer_id < 0 or batch.marker is not None:
                    continue
                who = (batch.producer_id, batch.producer_epoch)
                expected = following.get(who)
                if expected is not None and batch.base_sequence != expected:
                    self.broken(
                        f"{name_of(partition)} at {batch.base_offset}: producer {who[0]} epoch "
                        f"{who[1]} wrote sequence {batch.base_sequence} where {expected} follows"
                    )
                following[who] = batch.base_sequence + batch.records


class ProducersFenced(Law):
    """After something of a newer producer epoch a log has nothing of an older one."""

    name = "old producer epochs are fenced"

    def conclude(self) -> None:
        for partition in _user_partitions(self.laws.cluster):
            latest: dict[int, int] = {}
            for batch in observe.batches(partition.log):
                if batch.producer_id < 0:
                    continue
                if batch.producer_epoch < latest.get(batch.producer_id, -1):
                    self.broken(
                        f"{name_of(partition)} at {batch.base_offset}: producer "
                        f"{batch.producer_id} wrote under epoch {batch.producer_epoch} after epoch "
                        f"{latest[batch.producer_id]}"
                    )
                latest[batch.producer_id] = batch.producer_epoch


class StableOffsetFollows(Law):
    """As long as nothing is deleted, the last stable offset of a leader is where the first
    transaction begins whose marker is not below the high watermark, and the high watermark where
    there is none.
    """

    name = "the last stable offset follows"

    def begin(self) -> None:
        self._scans: dict[tuple[Key, int], _Scan] = {}

    def look(self, partition: Partition, views: list[observe.ReplicaView]) -> None:
        key = key_of(partition)
        if partition.topic.is_internal or key in self.laws.held:
            return
        for view in views:
            if not view.leads or observe.has_holes(view.log):
                continue
            if view.log.start_offset:
                continue  # who has a transaction open may have nothing left in the log
            where = (key, view.node_id)
            scan = self._scans.get(where)
            mark = (id(view.log), view.log.cuts)
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

    def stable_offset(self, view: observe.ReplicaView) -> int:
        end = view.high_watermark
        if self.end < end:
            for batch in observe.batches_between(view.log, self.end, end):
                if batch.marker is not None:
                    self.open.pop(batch.producer_id, None)
                elif batch.transactional:
                    self.open.setdefault(batch.producer_id, batch.base_offset)
            self.end = end
        return min(self.open.values(), default=end)


class TransactionsWhole(Law):
    """A transaction is committed in all its partitions or in none, as its producer was told; and
    read_committed readers are given nothing of those that were not.
    """

    name = "transactions are whole"

    def conclude(self) -> None:
        decided = self._decided()
        by_crc: dict[tuple[Key, int], Sent] = {}
        for transaction in self.laws.history.transactions:
            fates = []
            for sent in transaction.batches:
                key = (sent.topic_id, sent.partition)
                by_crc[key, sent.crc] = sent
                fate = decided.get((key, sent.crc))
                if fate is not None and not sent.voided and key not in self.laws.meddled:
                    fates.append((sent, fate))
            self._judge(transaction, fates)
        self._judge_reads(by_crc, decided)

    def _decided(self) -> dict[tuple[Key, int], bool]:
        """Whether each transactional batch of the logs was committed; without the undecided."""
        decided: dict[tuple[Key, int], bool] = {}
        for partition in _user_partitions(self.laws.cluster):
            open_: dict[int, list[int]] = {}
            key = key_of(partition)
            for batch in observe.batches(partition.log):
                if batch.marker is not None:
                    for crc in open_.pop(batch.producer_id, ()):
                        decided[key, crc] = batch.marker
                elif batch.transactional:
                    open_.setdefault(batch.producer_id, []).append(batch.crc)
        return decided

    def _judge(self, transaction: happened.Transaction, fates: list[tuple[Sent, bool]]) -> None:
        state = transaction.state
        for sent, committed in fates:
            where = f"{sent.topic}-{sent.partition} at {sent.base_offset}"
            if committed and state in (happened.OPEN, happened.ABORTING, happened.ABORTED):
                self.broken(f"{transaction.name} is {state}, and committed in {where}")
            if not committed and state == happened.COMMITTED:
                self.broken(f"{transaction.name} is committed, and aborted in {where}")
        if state == happened.COMMITTING and len({committed for _, committed in fates}) > 1:
            some = ", ".join(
                f"{sent.topic}-{sent.partition} {'committed' if committed else 'aborted'}"
                for sent, committed in fates
            )
            self.broken(f"{transaction.name} was half committed: {some}")

    def _judge_reads(
        self, by_crc: dict[tuple[Key, int], Sent], decided: dict[tuple[Key, int], bool]
    ) -> None:
        for read in self.laws.history.reads:
            key = (read.topic_id, read.partition)
            sent = by_crc.get((key, read.crc))
            if not read.committed or sent is None or read.voided or key in self.laws.meddled:
                continue
            assert sent.transaction is not None
            aborted = sent.transaction.state in (
                happened.OPEN,
                happened.ABORTING,
                happened.ABORTED,
            )
            if aborted or decided.get((key, read.crc)) is False:
                self.broken(
                    f"{read.client} was given {read.topic}-{read.partition} at {read.base_offset}, "
                    f"of transaction {sent.transaction.name}, which was not committed"
                )

    def forget(self) -> None:
        history = self.laws.history
        for read in history.reads:
            read.voided = "restored"


class ReadsKept(Law):
    """Readers that are given the same offset of a partition are given the same batch."""

    name = "readers see one log"

    def conclude(self) -> None:
        seen: dict[tuple[Key, int], int] = {}
        for read in self.laws.history.reads:
            key = (read.topic_id, read.partition)
            if read.voided or key in self.laws.torn or read.topic in self.laws.recreated:
                continue
            crc = seen.setdefault((key, read.base_offset), read.crc)
            if crc != read.crc:
                self.broken(
                    f"{read.client} was given another batch at {read.base_offset} of "
                    f"{read.topic}-{read.partition} than others"
                )


def _user_partitions(cluster: Cluster) -> Iterator[Partition]:
    """Partitions that clients write, as they were written."""
    for partition in observe.partitions(cluster):
        if not partition.topic.is_internal and not observe.has_holes(partition.log):
            yield partition
