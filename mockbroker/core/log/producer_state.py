"""The state of a log's idempotent and transactional producers.

Each producer id has an *entry*: its epoch, its last five *batches*, and the first offset of its
open transaction in this log. A retry of one of the five batches is a duplicate: it is answered with
the offsets of the first attempt and not appended. The last batch decides the next sequence.
Sequences are int32 and wrap from 2147483647 to 0.

A transaction is *ongoing* until its marker is appended, and then *unreplicated* until the high
watermark has passed the marker. The lowest first offset of both is the first unstable offset; a
read_committed consumer reads up to it. An aborted transaction has an entry in the *aborted index*.

The state is a function of the log: a replay of the batches gives the same state on each replica.

Source: ProducerStateManager.
"""

from __future__ import annotations

from typing import NamedTuple

from mockbroker.core.log.verification import VerificationGuard
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.records import BatchHeader, ControlType, parse_marker, read_control
from mockbroker_protocol.records.batch import Buffer

BATCHES_KEPT = 5  # ProducerStateEntry.NUM_BATCHES_TO_RETAIN, the limit of requests in flight
SEQUENCE_MAX = 0x7FFFFFFF
NO_SEQUENCE = -1
NO_PRODUCER_EPOCH = -1
STRICT_MARKERS_SINCE = 2  # transaction.version

_NONE = 0
_OUT_OF_ORDER = int(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
_INVALID_EPOCH = int(ErrorCode.INVALID_PRODUCER_EPOCH)
_INVALID_TXN_STATE = int(ErrorCode.INVALID_TXN_STATE)
_COORDINATOR_FENCED = int(ErrorCode.TRANSACTION_COORDINATOR_FENCED)


class BatchMetadata(NamedTuple):
    """One of the last batches of a producer. `timestamp` is the batch's max timestamp in ms."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp: int


class AbortedTransaction(NamedTuple):
    """An entry of the aborted index. `last_offset` is that of the ABORT marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class ProducerStateEntry:
    """One producer id. `last_sequence` is -1 if this epoch has only a marker."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "epoch",
        "last_sequence",
        "last_timestamp",
        "transaction_start",
    )

    def __init__(self) -> None:
        self.epoch = NO_PRODUCER_EPOCH
        self.batches: list[BatchMetadata] = []
        self.last_sequence = NO_SEQUENCE
        self.last_timestamp = -1
        self.coordinator_epoch = -1
        self.transaction_start = -1

    def fork(self) -> ProducerStateEntry:
        """An independent copy."""
        copy = ProducerStateEntry()
        copy.epoch = self.epoch
        copy.batches = list(self.batches)
        copy.last_sequence = self.last_sequence
        copy.last_timestamp = self.last_timestamp
        copy.coordinator_epoch = self.coordinator_epoch
        copy.transaction_start = self.transaction_start
        return copy

    def last_sequence_below(self, offset: int) -> int:
        """The last sequence below `offset`, as far as the kept batches show it."""
        for batch in self.batches:
            if batch.last_offset >= offset:
                return batch.first_sequence - 1
        return self.last_sequence

    def _enter_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()
            self.last_sequence = NO_SEQUENCE


class ProducerStateManager:
    """The producers of one log, its open transactions and its aborted index."""

    __slots__ = (
        "_entries",
        "_ongoing",
        "_unreplicated",
        "aborted",
        "guards",
        "last_marker",
        "next_check_ms",
    )

    def __init__(self) -> None:
        self._entries: dict[int, ProducerStateEntry] = {}
        self.next_check_ms = 0
        self._ongoing: dict[int, int] = {}  # first offset -> producer id, in order of first offset
        self._unreplicated: dict[int, int] = {}  # first offset -> offset of the marker
        self.last_marker = -1  # the offset of the last marker that ended a transaction
        self.aborted: list[AbortedTransaction] = []
        self.guards: dict[int, VerificationGuard] = {}  # by producer id

    def fork(self) -> ProducerStateManager:
        """An independent copy."""
        copy = ProducerStateManager()
        copy._entries = {key: entry.fork() for key, entry in self._entries.items()}
        copy.next_check_ms = self.next_check_ms
        copy._ongoing = dict(self._ongoing)
        copy._unreplicated = dict(self._unreplicated)
        copy.last_marker = self.last_marker
        copy.aborted = list(self.aborted)
        return copy

    @property
    def entries(self) -> dict[int, ProducerStateEntry]:
        """The entries by producer id, for DescribeProducers."""
        return self._entries

    def find_duplicate(
        self, producer_id: int, epoch: int, first_sequence: int, last_sequence: int
    ) -> BatchMetadata | None:
        """The kept batch with this epoch and these sequences, of which the batch is a retry."""
        entry = self._entries.get(producer_id)
        if entry is None or entry.epoch != epoch:
            return None
        for batch in entry.batches:
            if batch.first_sequence == first_sequence and batch.last_sequence == last_sequence:
                return batch
        return None

    def check(self, producer_id: int, epoch: int, first_sequence: int, transactional: bool) -> int:
        """The error code for a client's batch, or 0 (ProducerAppendInfo.appendDataBatch).

        A producer id without an entry may start at any sequence, because its entry may have
        expired.
        """
        entry = self._entries.get(producer_id)
        if entry is not None and epoch < entry.epoch:
            return _INVALID_EPOCH
        if self.guards and self._overtakes(producer_id, entry, first_sequence):
            return _OUT_OF_ORDER
        if entry is None:
            return _NONE
        if epoch > entry.epoch:
            if first_sequence != 0 and entry.epoch != NO_PRODUCER_EPOCH:
                return _OUT_OF_ORDER
        elif epoch != NO_PRODUCER_EPOCH:
            last = entry.last_sequence
            if first_sequence != (0 if last == SEQUENCE_MAX else last + 1):
                return _OUT_OF_ORDER
        if entry.transaction_start >= 0 and not transactional:
            return _INVALID_TXN_STATE
        return _NONE

    def _overtakes(
        self, producer_id: int, entry: ProducerStateEntry | None, first_sequence: int
    ) -> bool:
        """Whether a batch would overtake one whose verification is in progress or has failed.

        With TV2 a producer without an entry begins at 0 (KAFKA-19999).
        """
        guard = self.guards.get(producer_id)
        if guard is None:
            return False
        known = entry is not None and bool(entry.batches)
        if guard.bumps and first_sequence != 0 and not known:
            return True
        return first_sequence > guard.lowest_sequence

    def has_ongoing_transaction(self, producer_id: int, epoch: int | None = None) -> bool:
        """Whether the producer has an open transaction in this log, with this epoch if given."""
        entry = self._entries.get(producer_id)
        if entry is None or entry.transaction_start < 0:
            return False
        return epoch is None or entry.epoch == epoch

    # -- verification ------------------------------------------------------------------------------

    def start_verification(
        self, producer_id: int, epoch: int, sequence: int, now_ms: int, *, bumps: bool
    ) -> VerificationGuard | int | None:
        """The guard for the verification of a batch, None if its transaction is open, or an error
        code.
        """
        entry = self._entries.get(producer_id)
        if entry is not None and epoch < entry.epoch:
            return _INVALID_EPOCH
        if self.has_ongoing_transaction(producer_id, epoch):
            return None
        guard = self.guards.get(producer_id)
        if guard is None:
            guard = VerificationGuard(epoch, sequence, now_ms, bumps=bumps)
            self.guards[producer_id] = guard
        guard.note(epoch, sequence)
        return guard

    def check_guard(self, producer_id: int, epoch: int, guard: VerificationGuard) -> int:
        """The error code for a transactional batch with `guard`, or 0."""
        if self.has_ongoing_transaction(producer_id, epoch):
            return _NONE
        entry = self._entries.get(producer_id)
        if entry is not None and epoch < entry.epoch:
            return _INVALID_EPOCH
        return _NONE if self.guards.get(producer_id) is guard else _INVALID_TXN_STATE

    def append(
        self, producer_id: int, epoch: int, batch: BatchMetadata, transactional: bool
    ) -> None:
        """Update the state after the append of a data batch."""
        entry = self._entries.get(producer_id)
        if entry is None:
            entry = self._entries[producer_id] = ProducerStateEntry()
        if epoch != entry.epoch:
            entry._enter_epoch(epoch)
        batches = entry.batches
        if len(batches) == BATCHES_KEPT:
            del batches[0]
        batches.append(batch)
        entry.last_sequence = batch.last_sequence
        entry.last_timestamp = batch.timestamp
        if transactional:
            if self.guards:
                self.guards.pop(producer_id, None)
            if entry.transaction_start < 0:
                entry.transaction_start = batch.base_offset
                self._ongoing[batch.base_offset] = producer_id

    # -- transactions ------------------------------------------------------------------------------

    def check_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, version: int = 0
    ) -> int:
        """The error code for a transaction marker, or 0.

        `version` is the transaction's. Since version 2 the epoch of a marker is higher than that of
        the records, so that a late marker can be detected (KIP-1228). A repeated marker of a closed
        transaction has no effect.
        """
        entry = self._entries.get(producer_id)
        if entry is None:
            return _NONE
        late = epoch == entry.epoch and version >= STRICT_MARKERS_SINCE
        if epoch < entry.epoch or (late and entry.transaction_start >= 0):
            return _INVALID_EPOCH
        if coordinator_epoch < entry.coordinator_epoch:
            return _COORDINATOR_FENCED
        return _NONE

    def append_marker(
        self,
        producer_id: int,
        epoch: int,
        coordinator_epoch: int,
        offset: int,
        timestamp: int,
        *,
        aborted: bool,
    ) -> None:
        """Update the state after the append of a COMMIT or ABORT marker at `offset`.

        A marker without an open transaction adds no entry to the aborted index.
        """
        entry = self._entries.get(producer_id)
        if entry is None:
            entry = self._entries[producer_id] = ProducerStateEntry()
        first = entry.transaction_start
        self.guards.pop(producer_id, None)
        if first >= 0:
            del self._ongoing[first]
            if aborted:
                stable = next(iter(self._ongoing), offset + 1)
                self.aborted.append(AbortedTransaction(producer_id, first, offset, stable))
            self._unreplicated[first] = self.last_marker = offset
            entry.transaction_start = -1
        if epoch != entry.epoch:
            entry._enter_epoch(epoch)
        entry.coordinator_epoch = coordinator_epoch
        entry.last_timestamp = timestamp

    def high_watermark_moved(self, high_watermark: int) -> None:
        """Remove transactions whose markers are below the high watermark from the unreplicated."""
        if self._unreplicated:
            self._unreplicated = {
                first: marker
                for first, marker in self._unreplicated.items()
                if marker >= high_watermark
            }

    def first_unstable_offset(self) -> int:
        """The lowest first offset of an ongoing or unreplicated transaction, or -1."""
        ongoing = next(iter(self._ongoing), -1)
        if not self._unreplicated:
            return ongoing
        unreplicated = min(self._unreplicated)
        return unreplicated if ongoing < 0 else min(ongoing, unreplicated)

    def aborted_between(self, fetch_offset: int, upper_offset: int) -> list[AbortedTransaction]:
        """Aborted transactions that overlap [fetch_offset, upper_offset), by first offset.

        The index is in marker order, so earlier transactions are skipped by bisection.
        """
        aborted = self.aborted
        low, high = 0, len(aborted)
        while low < high:
            middle = (low + high) // 2
            if aborted[middle].last_offset < fetch_offset:
                low = middle + 1
            else:
                high = middle
        found = []
        for entry in aborted[low:]:
            if entry.first_offset < upper_offset:
                found.append(entry)
            if entry.last_stable_offset >= upper_offset:
                break  # later entries began at this offset or after it (TransactionIndex)
        found.sort(key=lambda entry: entry.first_offset)
        return found

    # -- lifetime ----------------------------------------------------------------------------------

    def expire(self, now_ms: int, expiration_ms: int, interval_ms: int) -> list[int]:
        """Remove producers without a batch for `expiration_ms`, unless a transaction is open, and
        guards of that age; returns the producers' ids.

        Kafka checks the timestamp of the last batch every producer.id.expiration.check.interval.ms.
        Here the first append or DescribeProducers from `next_check_ms` on checks it; the next check
        is `interval_ms` later. A guard is no part of its producer's entry: a batch under
        verification stays valid when the entry expires
        (ProducerStateManager.removeExpiredProducers).
        """
        expired: list[int] = []
        if self.next_check_ms:
            latest_ms = now_ms - expiration_ms
            expired = [
                producer_id
                for producer_id, entry in self._entries.items()
                if entry.transaction_start < 0 and entry.last_timestamp <= latest_ms
            ]
            for producer_id in expired:
                del self._entries[producer_id]
            for producer_id in [
                each for each, guard in self.guards.items() if guard.since_ms <= latest_ms
            ]:
                del self.guards[producer_id]
        self.next_check_ms = now_ms + interval_ms
        return expired

    def log_start_moved(self, log_start_offset: int) -> None:
        """Remove aborted transactions that ended below the log start.

        Entries stay until they expire, even without a record in the log (KAFKA-7190).
        """
        aborted = self.aborted
        if aborted and aborted[0].last_offset < log_start_offset:
            self.aborted = [entry for entry in aborted if entry.last_offset >= log_start_offset]
        self._unreplicated = {
            first: marker
            for first, marker in self._unreplicated.items()
            if marker >= log_start_offset
        }

    def replay(self, batch: Buffer, header: BatchHeader | None = None) -> None:
        """Update the state with a batch of the log, on a follower or after a truncation."""
        if header is None:
            header = BatchHeader(batch)
        if header.producer_id < 0:
            return
        if not header.is_control:
            self.append(
                header.producer_id,
                header.producer_epoch,
                BatchMetadata(
                    header.base_sequence,
                    header.last_sequence,
                    header.base_offset,
                    header.last_offset,
                    header.max_timestamp,
                ),
                header.is_transactional,
            )
        elif header.count:
            record = read_control(header, batch)
            marker = parse_marker(record)
            self.append_marker(
                header.producer_id,
                header.producer_epoch,
                marker.coordinator_epoch,
                header.base_offset,
                record.timestamp,
                aborted=marker.control_type is ControlType.ABORT,
            )

    def remove_from(self, offset: int) -> None:
        """Remove the producers with batches from `offset` on, before a replay from there.

        Producers with all batches below it stay, because retention may have deleted these batches
        (Kafka reads them from a snapshot file).
        """
        kept = {
            producer_id: entry
            for producer_id, entry in self._entries.items()
            if entry.batches
            and entry.batches[-1].last_offset < offset
            and entry.transaction_start < 0
        }
        self.clear()
        self._entries.update(kept)

    def resume_from(self, other: ProducerStateManager | None, acknowledged_offset: int) -> None:
        """Set the next sequence of each producer to that in `other`.

        The producers retry the batches that `other` has from `acknowledged_offset` on; a batch that
        is in this log too is a duplicate. A producer without an entry of the same epoch in `other`
        is removed and may continue at any sequence, unless it has an open transaction in this log.
        """
        known = {} if other is None else other._entries
        for producer_id, entry in list(self._entries.items()):
            there = known.get(producer_id)
            if there is not None and there.epoch == entry.epoch:
                last_sequence = there.last_sequence_below(acknowledged_offset)
                for batch in entry.batches:
                    if batch.first_sequence == last_sequence + 1:
                        last_sequence = batch.last_sequence
                entry.last_sequence = last_sequence
            elif entry.transaction_start < 0:
                del self._entries[producer_id]

    def clear(self) -> None:
        """Remove all entries."""
        self._entries.clear()
        self.guards.clear()
        self._ongoing.clear()
        self._unreplicated.clear()
        self.last_marker = -1
        self.aborted.clear()
