"""What coordinators have in memory, and what the records of their logs say."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mockbroker.core.groups.group import CLASSIC
from mockbroker.core.groups.records import OffsetRecord, parse
from mockbroker.core.groups.shard import GroupShard
from mockbroker.core.log.replica_log import ReplicaLog
from mockbroker.core.share.shard import ShareShard
from mockbroker.core.txn.events import TransactionImage
from mockbroker.core.txn.records import TransactionRecord
from mockbroker.core.txn.records import parse as parse_transaction
from mockbroker.core.txn.shard import TransactionShard
from mockbroker.simulation.observe import Shard
from mockbroker_protocol.records import (
    BatchHeader,
    ControlType,
    Record,
    iter_records,
    parse_control_type,
)

_NOTE_MAX = 10  # what is looked at of the metadata of an offset

_OffsetKey = tuple[str, str, int]  # group, topic and partition


class _Stored:
    """What the records of one coordinator's log say, read as far as the log went when somebody last
    asked.
    """

    def __init__(self, log: ReplicaLog) -> None:
        self._log = log
        self._cuts = log.cuts
        self._batches_read = 0

    def fits(self, log: ReplicaLog) -> bool:
        """Whether this is the log, and it has only grown since."""
        return self._log is log and self._cuts == log.cuts

    def _read_on(self) -> None:
        log = self._log
        for index in range(self._batches_read, log.batch_count):
            batch = log.batch_at(index)
            header = BatchHeader(batch)
            for record in iter_records(header, batch):
                self._take(header, record)
        self._batches_read = log.batch_count

    def _take(self, header: BatchHeader, record: Record) -> None:
        raise NotImplementedError


class StoredTransactions(_Stored):
    """The records of transactional ids."""

    def __init__(self, log: ReplicaLog) -> None:
        super().__init__(log)
        self._records: list[tuple[int, int, TransactionRecord]] = []

    def records(self) -> list[tuple[int, int, TransactionRecord]]:
        """All that are there by now, each with its offset and the time when it was written."""
        self._read_on()
        return self._records

    def _take(self, header: BatchHeader, record: Record) -> None:
        parsed = None if header.is_control else parse_transaction(record)
        if parsed is not None:
            self._records.append((record.offset, record.timestamp, parsed))


class StoredOffsets(_Stored):
    """The committed offsets of groups."""

    def __init__(self, log: ReplicaLog) -> None:
        super().__init__(log)
        # With the offset of its record in front.
        self._committed: dict[_OffsetKey, tuple[int, int, str]] = {}
        self._pending: dict[int, dict[_OffsetKey, tuple[int, int, str]]] = {}
        # Whether there are records of a kind that classic groups do not have.
        self.has_modern_groups = False

    def committed(self) -> dict[_OffsetKey, tuple[int, str]]:
        """The committed offsets by now, each with its metadata."""
        self._read_on()
        return {key: (offset, metadata) for key, (_, offset, metadata) in self._committed.items()}

    def _take(self, header: BatchHeader, record: Record) -> None:
        committed, pending = self._committed, self._pending
        if header.is_control:
            ended = pending.pop(header.producer_id, {})
            if parse_control_type(record.key) is ControlType.COMMIT:
                for key, value in ended.items():
                    if key not in committed or value[0] > committed[key][0]:
                        committed[key] = value
            return
        parsed = parse(record)
        if not isinstance(parsed, OffsetRecord):
            self.has_modern_groups |= parsed is None
            return
        key = (parsed.group_id, parsed.topic, parsed.partition)
        if parsed.value is None:
            for some in (committed, *pending.values()):
                some.pop(key, None)
            return
        value = (record.offset, parsed.value.offset, parsed.value.metadata[:_NOTE_MAX])
        if header.is_transactional:
            pending.setdefault(header.producer_id, {})[key] = value
        else:
            committed[key] = value


StoredRecords = StoredOffsets | StoredTransactions | None


def stored_by(shard: Shard) -> StoredRecords:
    """What the log of a coordinator says, of which nothing is read yet; None if its shard reads it
    anew each time.
    """
    if isinstance(shard, ShareShard):
        return None
    is_groups = isinstance(shard, GroupShard)
    return (StoredOffsets if is_groups else StoredTransactions)(shard.partition.log)


def memory_and_log(
    shard: Shard, stored: StoredRecords, is_late: Callable[[int, int], bool]
) -> Iterator[tuple[str, object, object]]:
    """What a coordinator has and what its log says, each with what it is about. `stored` is of the
    shard's log. `is_late` says whether a record, by its offset and the time when it was written,
    was not replicated before its coordinator gave up waiting.
    """
    if isinstance(shard, ShareShard):
        again = ShareShard(shard.coordinator, shard.partition)
        shard.partition.unwatch(again)
        again.read_at_once()
        yield "share partitions", _share_partitions(shard), _share_partitions(again)
        return
    if isinstance(stored, StoredTransactions):
        assert isinstance(shard, TransactionShard)
        yield from _transactions_and_log(shard, stored, is_late)
        return
    assert isinstance(shard, GroupShard)
    assert isinstance(stored, StoredOffsets)
    known = {
        (group, topic, index): (value.offset, value.metadata[:_NOTE_MAX])
        for group, topics in shard.offsets.committed.items()
        for topic, partitions in topics.items()
        for index, value in partitions.items()
    }
    yield "committed offsets", known, stored.committed()
    if not stored.has_modern_groups and all(
        group.group_type == CLASSIC for group in shard.groups.values()
    ):
        return
    fresh = GroupShard(shard.coordinator, shard.partition)
    shard.partition.unwatch(fresh)
    fresh.read_at_once()
    yield "consumer groups", _consumer_groups(shard), _consumer_groups(fresh)
    yield "share groups", _share_groups(shard), _share_groups(fresh)
    yield "streams groups", _streams_groups(shard), _streams_groups(fresh)


def _share_partitions(shard: ShareShard) -> dict[object, object]:
    """Without counts of updates, times, and the highest epochs ever seen: as in Kafka, a pruned log
    no longer has them.
    """
    return {
        key: (
            entry.state.start_offset,
            entry.state.batches,
            entry.state.leader_epoch,
            entry.state.state_epoch,
        )
        for key, entry in shard.entries.items()
    }


def _share_groups(shard: GroupShard) -> dict[str, object]:
    return {
        group_id: (
            group.epoch,
            group.assignment_epoch,
            group.noted,
            {
                member.member_id: (member.epoch, member.state, member.assigned)
                for member in group.members.values()
            },
        )
        for group_id, group in shard.shares.all().items()
    }


def _streams_groups(shard: GroupShard) -> dict[str, object]:
    return {
        group_id: (
            group.epoch,
            group.assignment_epoch,
            group.topology,
            {
                member.member_id: (member.epoch, member.state, member.assigned, member.revoking)
                for member in group.members.values()
            },
        )
        for group_id, group in shard.streams.all().items()
    }


def _consumer_groups(shard: GroupShard) -> dict[str, object]:
    return {
        group_id: (
            group.epoch,
            group.assignment_epoch,
            {
                member.member_id: (member.epoch, member.state, member.assigned, member.revoking)
                for member in group.members.values()
            },
        )
        for group_id, group in shard.consumers.all().items()
    }


def _transactions_and_log(
    shard: TransactionShard, stored: StoredTransactions, is_late: Callable[[int, int], bool]
) -> Iterator[tuple[str, object, object]]:
    # What may be in memory of each id. Of a record that was replicated too late a coordinator knows
    # only when it has read the log anew, as Kafka's.
    said: dict[str, list[TransactionImage | None]] = {}
    for offset, written_ms, parsed in stored.records():
        former = said.get(parsed.transactional_id, [None]) if is_late(offset, written_ms) else []
        said[parsed.transactional_id] = [*former, parsed.image]
    for name, transaction in shard.transactions.items():
        images = said.get(name)
        # A fence that could not be stored has raised the epoch in memory alone, as Kafka's does.
        fenced = transaction._epoch_fence_failed
        if images is None or None in images or transaction.pending is not None or fenced:
            continue
        known = (transaction.state, transaction.producer_id, transaction.epoch)
        possible = [(each.state, each.producer_id, each.epoch) for each in images if each]
        yield f"transactional id {name}", known, known if known in possible else possible[-1]
