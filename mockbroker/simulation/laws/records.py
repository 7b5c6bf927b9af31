"""Laws of what producers were promised and readers were given."""

from __future__ import annotations

from typing import NamedTuple

from mockbroker.core.metadata.topic import TRANSACTION_STATE_TOPIC
from mockbroker.simulation import history as happened
from mockbroker.simulation.history import Disordered, Sent
from mockbroker.simulation.laws.base import HistoryLaw, Key
from mockbroker.simulation.logs import LogView

ACKS_ALL = -1


class AcknowledgedKept(HistoryLaw):
    """A record that was acknowledged with acks=all stays in the log, unless an unclean election, a
    lost disk or a deletion removed it.
    """

    name = "acknowledged records are kept"

    def begin(self) -> None:
        self._sorted = 0  # how many acknowledgements are in `_by_key`
        self._by_key: dict[Key, list[Sent]] = {}

    def acknowledged(self, key: Key) -> list[Sent]:
        """The batches of a partition that were acknowledged with acks=all."""
        acked = self.judge.history.acked
        while self._sorted < len(acked):
            sent = acked[self._sorted]
            self._sorted += 1
            if sent.acks == ACKS_ALL:
                self._by_key.setdefault((sent.topic_id, sent.partition), []).append(sent)
        return self._by_key.get(key, [])

    def wanted(self, key: Key) -> list[Sent]:
        """The batches that a partition must have."""
        return [sent for sent in self.acknowledged(key) if not sent.voided]

    def check(self, log: LogView, *, excuse: bool = False) -> None:
        """Look for acknowledged batches; a missing one is void once it is excused or reported."""
        wanted = self.wanted(log.key)
        if not wanted or log.has_holes or log.leader_id < 0:
            return
        held = {batch.base_offset: batch.crc for batch in log.batches}
        for sent in wanted:
            if sent.base_offset + sent.count <= log.start_offset:
                continue
            if held.get(sent.base_offset) == sent.crc:
                continue
            if excuse or self.excuses(sent):
                sent.voided = "unclean election"
                continue
            self.broken(
                f"{log.name}: {sent.count} records of {sent.client} at offset "
                f"{sent.base_offset}, acknowledged at {sent.acked_ms - self.judge.start_ms} ms, "
                f"are not in the log of leader {log.leader_id}, which goes from "
                f"{log.start_offset} to {log.end_offset}"
            )
            sent.voided = "reported"

    def excuses(self, sent: Sent) -> bool:
        """Whether something else than the leader of now may have taken a batch."""
        del sent
        return False

    def forget(self) -> None:
        for sent in self.judge.history.sent:
            sent.voided = sent.voided or "restored"

    def conclude(self) -> None:
        for log in self.judge.logs:
            self.check(log)


class OffsetsDense(HistoryLaw):
    """The batches of a log follow each other without a gap, unless it is compacted."""

    name = "offsets are dense"

    def conclude(self) -> None:
        for log in self.judge.logs:
            if log.has_holes:
                continue
            expected = None
            for batch in log.batches:
                if expected is not None and batch.base_offset != expected:
                    self.broken(f"{log.name}: {batch.base_offset} comes where {expected} should")
                expected = batch.last_offset + 1
            if expected is not None and expected != log.end_offset:
                self.broken(
                    f"{log.name} ends at {log.end_offset}, and its last batch at {expected}"
                )


class SequencesWhole(HistoryLaw):
    """The sequence numbers of a producer epoch are consecutive in the log, without gap or
    duplicate.
    """

    name = "sequence numbers are consecutive"

    def conclude(self) -> None:
        for log in self.judge.user_logs():
            following: dict[tuple[int, int], int] = {}
            for batch in log.batches:
                if batch.producer_id < 0 or batch.marker is not None:
                    continue
                who = (batch.producer_id, batch.producer_epoch)
                expected = following.get(who)
                if expected is not None and batch.base_sequence != expected:
                    self.broken(
                        f"{log.name} at {batch.base_offset}: producer {who[0]} epoch "
                        f"{who[1]} wrote sequence {batch.base_sequence} where {expected} follows"
                    )
                following[who] = batch.base_sequence + batch.records


class ProducersFenced(HistoryLaw):
    """After something of a newer producer epoch a log has nothing of an older one."""

    name = "old producer epochs are fenced"

    def conclude(self) -> None:
        for log in self.judge.user_logs():
            latest: dict[int, int] = {}
            for batch in log.batches:
                if batch.producer_id < 0:
                    continue
                if batch.producer_epoch < latest.get(batch.producer_id, -1):
                    self.broken(
                        f"{log.name} at {batch.base_offset}: producer "
                        f"{batch.producer_id} wrote under epoch {batch.producer_epoch} after epoch "
                        f"{latest[batch.producer_id]}"
                    )
                latest[batch.producer_id] = batch.producer_epoch


class CoordinatorsFenced(HistoryLaw):
    """After the marker of a transaction coordinator a log has no marker of a former one, for the
    same producer.
    """

    name = "former coordinators are fenced"

    def conclude(self) -> None:
        if TRANSACTION_STATE_TOPIC in self.judge.recreated:
            return  # its leader epochs have begun anew
        for log in self.judge.user_logs():
            latest: dict[int, int] = {}
            for batch in log.batches:
                if batch.marker is None:
                    continue
                known = latest.setdefault(batch.producer_id, batch.coordinator_epoch)
                if batch.coordinator_epoch < known:
                    self.broken(
                        f"{log.name} at {batch.base_offset}: the coordinator of epoch "
                        f"{batch.coordinator_epoch} ended a transaction of producer "
                        f"{batch.producer_id} after the one of epoch {known}"
                    )
                latest[batch.producer_id] = batch.coordinator_epoch


class FencedStayFenced(HistoryLaw):
    """After InitProducerId has returned a newer epoch of a transactional id, no later request with
    an older one is acknowledged, and no epoch is returned twice, unless the coordinator has lost
    its state. No batch is acknowledged in a partition that its producer has not added. A partition
    that has lost a marker has an open transaction, and accepts batches of it. An EndTxn that is one
    epoch late passes for a retry where a producer without transaction version 2 has ended the next
    transaction: the epoch then says nothing of who raised it (TransactionCoordinator).
    """

    name = "fenced producers stay fenced"

    def conclude(self) -> None:
        if self.judge.transactions_lost:
            return
        for unfenced in self.judge.history.unfenced:
            if unfenced.partition not in self.judge.lossy:
                self.broken(unfenced.sentence)

    def forget(self) -> None:
        self.judge.history.given.clear()
        self.judge.history.unfenced.clear()


def _place_of(sent: Sent) -> tuple[bytes, int, int, int]:
    """The partition and the producer whose sequence numbers a batch continues."""
    return sent.topic_id, sent.partition, sent.producer_id, sent.epoch


class SequencesTaken(HistoryLaw):
    """A batch whose sequence number follows the one before, or a retry of it, is never refused with
    OUT_OF_ORDER_SEQUENCE_NUMBER, unless the earlier records were lost or deleted. A replica that
    begins after a deletion has the producer's markers, but no sequence number. A deposed leader
    with an old image refuses the batch if it lacks those that its successor has accepted.
    """

    name = "consecutive sequences are accepted"

    def begin(self) -> None:
        self._restored = False

    def conclude(self) -> None:
        if self._restored:
            return
        starts = {log.key: log.start_offset for log in self.judge.logs}
        for disordered in self.judge.history.disordered:
            sent = disordered.sent
            key = (sent.topic_id, sent.partition)
            if sent.voided or key in self.judge.lossy or sent.topic in self.judge.recreated:
                continue
            former = self._before(sent)
            is_deleted = former is not None and 0 <= former.base_offset < starts.get(key, 0)
            if not is_deleted and not self._may_lack(disordered, former):
                self.broken(
                    f"{sent.client} got the answer that a batch of {sent.topic}-{sent.partition}, "
                    f"sent at {sent.sent_ms - self.judge.start_ms} ms, is out of order"
                )

    def _before(self, refused: Sent) -> Sent | None:
        """The batch that the producer wrote before."""
        former: Sent | None = None
        for sent in self.judge.history.sent:
            if sent is refused:
                break
            if _place_of(sent) == _place_of(refused):
                former = sent
        return former

    def _may_lack(self, disordered: Disordered, former: Sent | None) -> bool:
        """Whether the broker was a deposed leader that may lack the batch before. Where that cannot
        be observed, a broker has the batch for sure if it has acknowledged it.
        """
        leaders = self.judge.former_leaders
        if leaders is None:
            return former is None or former.node_id != disordered.node_id
        sent, node_id, requested, answered = disordered
        key = (sent.topic_id, sent.partition)
        return any(
            each.key == key and each.node_id == node_id and each.span.meets(requested, answered)
            for each in leaders
        )

    def forget(self) -> None:
        self._restored = True  # producers are ahead of what the logs know of them


class _Aborted(NamedTuple):
    """An aborted transaction. One that is not `whole` may have begun with batches that were
    deleted: `first` is then the first that is left, and its broker may know of an earlier one.
    """

    producer_id: int
    first: int
    marker: int
    whole: bool

    def is_among(self, listed: frozenset[tuple[int, int]], log_start_offset: int) -> bool:
        """Whether a Fetch listed it."""
        return (self.producer_id, self.first) in listed or (
            not self.whole
            and any(
                producer_id == self.producer_id and first < log_start_offset
                for producer_id, first in listed
            )
        )


class AbortedTransactionsAreListed(HistoryLaw):
    """A read_committed Fetch lists exactly the aborted transactions that overlap its records."""

    name = "aborted transactions are listed"

    def begin(self) -> None:
        self._skipped = 0  # how many answers are of the time before a snapshot was restored

    def conclude(self) -> None:
        logs = {log.key: (log.start_offset, self._aborted(log)) for log in self.judge.user_logs()}
        for answer in self.judge.history.aborts[self._skipped :]:
            key = (answer.topic_id, answer.partition)
            if key not in logs or key in self.judge.lossy or answer.topic in self.judge.recreated:
                continue
            start, aborted = logs[key]
            due = [
                each for each in aborted if each.first < answer.end and each.marker >= answer.begin
            ]
            missing = [each for each in due if not each.is_among(answer.aborted, start)]
            known = {(each.producer_id, each.first) for each in aborted}
            strange = {each for each in answer.aborted - known if each[1] >= start}
            if strange or missing:
                self.broken(
                    f"{answer.client} got {answer.topic}-{answer.partition} from {answer.begin} "
                    f"to {answer.end}, with {sorted(answer.aborted)} listed as aborted, and not "
                    f"{[each[:2] for each in due]}"
                )

    @staticmethod
    def _aborted(log: LogView) -> list[_Aborted]:
        """Each transaction that was aborted here, as far as the log still has its batches."""
        begun: dict[int, int] = {}
        ended: set[int] = set()  # producers of which the log has the marker of an earlier one
        found: list[_Aborted] = []
        for batch in log.batches:
            producer_id = batch.producer_id
            if batch.marker is None:
                if batch.transactional:
                    begun.setdefault(producer_id, batch.base_offset)
                continue
            first = begun.pop(producer_id, -1)
            if first >= 0 and not batch.marker:
                whole = not log.start_offset or producer_id in ended
                found.append(_Aborted(producer_id, first, batch.base_offset, whole))
            ended.add(producer_id)
        return found

    def forget(self) -> None:
        self._skipped = len(self.judge.history.aborts)


class TransactionsWhole(HistoryLaw):
    """A transaction is committed in all of its partitions or in none, as the answer to its producer
    says. A read_committed reader gets only records of committed transactions.
    """

    name = "transactions are atomic"

    def conclude(self) -> None:
        decided = self._decided()
        by_crc: dict[tuple[Key, int], Sent] = {}
        for transaction in self.judge.history.transactions:
            fates = []
            for sent in transaction.batches:
                key = (sent.topic_id, sent.partition)
                by_crc[key, sent.crc] = sent
                fate = decided.get((key, sent.crc))
                if fate is not None and not sent.voided and not self._is_spoilt(key):
                    fates.append((sent, fate))
            self._judge(transaction, fates)
        self._judge_reads(by_crc, decided)

    def _is_spoilt(self, key: Key) -> bool:
        """Whether markers of a partition were written by an action, or lost by an unclean election:
        the next marker of the same producer then decides what the lost one had decided.
        """
        return key in self.judge.ended_by_action or key in self.judge.lossy

    def _decided(self) -> dict[tuple[Key, int], bool]:
        """Whether each transactional batch of the logs was committed; without the undecided."""
        decided: dict[tuple[Key, int], bool] = {}
        for log in self.judge.user_logs():
            open_: dict[int, list[int]] = {}
            key = log.key
            for batch in log.batches:
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
        for read in self.judge.history.reads:
            key = (read.topic_id, read.partition)
            sent = by_crc.get((key, read.crc))
            if not read.committed or sent is None or read.voided or sent.voided:
                continue
            if self._is_spoilt(key):
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
        history = self.judge.history
        for read in history.reads:
            read.voided = "restored"


class ReadsKept(HistoryLaw):
    """All readers get the same batch at an offset of a partition."""

    name = "readers see one log"

    def conclude(self) -> None:
        seen: dict[tuple[Key, int], int] = {}
        for read in self.judge.history.reads:
            key = (read.topic_id, read.partition)
            if read.voided or key in self.judge.lossy or read.topic in self.judge.recreated:
                continue
            crc = seen.setdefault((key, read.base_offset), read.crc)
            if crc != read.crc:
                self.broken(
                    f"{read.client} was given another batch at {read.base_offset} of "
                    f"{read.topic}-{read.partition} than others"
                )


class EpochsRise(HistoryLaw):
    """The leader epochs of a log only rise, and metadata names one leader of an epoch."""

    name = "leader epochs rise"

    def conclude(self) -> None:
        for log in self.judge.logs:
            latest = -1
            for batch in log.batches:
                if batch.epoch < latest:
                    self.broken(
                        f"{log.name} at {batch.base_offset}: epoch {batch.epoch} after {latest}"
                    )
                latest = batch.epoch
        for (topic_id, partition, epoch), leaders in self.judge.history.leaders.items():
            if len(leaders) > 1:
                topic = next(
                    (log.topic for log in self.judge.logs if log.topic_id == topic_id), "?"
                )
                self.broken(f"{topic}-{partition} has leaders {sorted(leaders)} in epoch {epoch}")

    def forget(self) -> None:
        self.judge.history.leaders.clear()
