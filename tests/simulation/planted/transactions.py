"""Bugs of transactions: their coordinator, their markers, verification, fencing."""

from __future__ import annotations

from mockbroker.core.groups.offsets import OffsetStore
from mockbroker.core.log.producer_state import ProducerStateManager
from mockbroker.core.txn import loader, marker_channel_manager, markers
from mockbroker.core.txn.machine import TransactionMetadata
from mockbroker.core.txn.marker_channel_manager import MarkerHop, TransactionMarkerChannelManager
from mockbroker.core.txn.shard import TransactionShard
from mockbroker.core.txn.verification import _CoordinatorRequest
from mockbroker_protocol import ErrorCode
from tests.simulation.planted.planting import Planting, planted, replaced, rewritten


@planted("A producer of an older epoch may end the transaction of a newer one.")
def zombies_end_transactions() -> Planting:
    return rewritten(
        TransactionMetadata._answer_to_end,
        "if end.epoch != self.epoch and not again:",
        "if end.epoch > self.epoch and not again:",
    )


@planted("A producer of an older epoch may add partitions.")
def zombies_add_partitions() -> Planting:
    return rewritten(
        TransactionMetadata._check_producer,
        "return NONE if epoch == self.epoch else FENCED",
        "return NONE if epoch <= self.epoch else FENCED",
    )


@planted("A transaction is complete when the first of its partitions has its marker.")
def one_marker_is_enough() -> Planting:
    return rewritten(
        TransactionMetadata._on_marked,
        "if not self.partitions:\n        self._complete()",
        "self.partitions.clear()\n    self._complete()",
    )


@planted("A transaction that was decided is not carried on after the coordinator has moved.")
def decided_is_not_carried_on() -> Planting:
    return rewritten(TransactionMetadata._on_loaded, "if self.state in _PREPARED:", "if False:")


@planted("Whatever was decided is aborted after the coordinator has moved.")
def loading_aborts() -> Planting:
    return rewritten(
        TransactionMetadata._complete,
        "committed=self.state is TransactionState.PREPARE_COMMIT",
        "committed=self.state is TransactionState.PREPARE_COMMIT and self._event is not None",
    )


@planted("A transaction that takes too long is never aborted.")
def no_timeout() -> Planting:
    return rewritten(
        TransactionMetadata._on_tick,
        "self._fence(tick, tick.server_version, tick.new_producer_id, now_ms)",
        "pass",
    )


@planted("A transaction that timed out is aborted under the epoch that its producer has.")
def timeout_does_not_fence() -> Planting:
    return rewritten(TransactionMetadata._fence, "self.epoch += 1", "pass")


@planted("A producer that starts anew gets the epoch of the one before it.")
def new_producer_same_epoch() -> Planting:
    return rewritten(
        TransactionMetadata._bump_epoch,
        "self.producer_id, self.epoch + 1, self.epoch",
        "self.producer_id, max(self.epoch, 0), self.epoch",
    )


@planted("With the second protocol the end of a transaction does not raise the epoch.")
def ends_do_not_raise_the_epoch() -> Planting:
    return rewritten(TransactionMetadata._prepare, "epoch=self.epoch + 1,", "epoch=self.epoch,")


@planted("A producer that starts anew does not end what is open.")
def start_ends_nothing() -> Planting:
    return rewritten(
        TransactionMetadata._on_init,
        "answer = self._fence(init, init.server_version, init.new_producer_id, now_ms)",
        "answer = self._bump_epoch(init, now_ms)",
    )


@planted("The end of a transaction is answered before it is stored.")
def decided_before_stored() -> Planting:
    return rewritten(
        TransactionShard._store,
        "self.when_replicated(\n",
        "(lambda then, error: then(error))(\n",
    )


@planted("Partitions that are added forget those that were added before.")
def added_partitions_replace() -> Planting:
    return rewritten(
        TransactionMetadata._on_add,
        "partitions=(*self.partitions, *new),",
        "partitions=tuple(new),",
    )


@planted("Of the records of a transactional id the first counts after a reload.")
def first_record_counts() -> Planting:
    return rewritten(
        loader.replay, "else:", "elif parsed.transactional_id not in shard.transactions:"
    )


@planted("A marker is not sent again to the next leader.")
def markers_do_not_follow_leaders() -> Planting:
    kept = marker_channel_manager.RETRIED - {ErrorCode.NOT_LEADER_OR_FOLLOWER}
    return replaced(marker_channel_manager, "RETRIED", kept)


@planted("A marker that a leader has refused counts as written.")
def refused_markers_count() -> Planting:
    return rewritten(
        TransactionMarkerChannelManager.answered, "self.retry(pending)", "self._done(pending)"
    )


@planted("A marker whose answer was lost is not sent again.")
def lost_markers_stay_lost() -> Planting:
    return rewritten(TransactionMarkerChannelManager._on_sweep, "self._send(pending)", "continue")


@planted("A marker that is lost on its way is forgotten.")
def unsent_markers_are_forgotten() -> Planting:
    return rewritten(
        MarkerHop.disconnected,
        "self._markers.retry(self.pending)",
        "self._markers.pending_markers.pop(self.pending, None)",
    )


@planted("Markers are always commits.")
def markers_always_commit() -> Planting:
    return rewritten(
        markers._MarkerWrite._append,
        "ControlType.COMMIT if marker.committed else ControlType.ABORT",
        "ControlType.COMMIT",
    )


@planted("A marker counts as written before it is replicated.")
def markers_count_at_once() -> Planting:
    return rewritten(
        markers._MarkerWrite.append,
        "if error == NONE and partition.high_watermark <= last_offset:",
        "if error == NONE and partition.high_watermark < 0:",
    )


@planted("A leader takes the marker of a coordinator that is none any more.")
def former_coordinators_write_markers() -> Planting:
    return rewritten(
        ProducerStateManager.check_marker,
        "if coordinator_epoch < entry.coordinator_epoch:",
        "if coordinator_epoch < 0:",
    )


@planted("A leader takes a marker of an epoch that is over.")
def late_markers_are_taken() -> Planting:
    return rewritten(
        ProducerStateManager.check_marker,
        "if epoch < entry.epoch or (late and entry.transaction_start >= 0):",
        "if late and entry.transaction_start < 0:",
    )


@planted("A batch may open a transaction although nobody has verified it.")
def unverified_batches_are_taken() -> Planting:
    return rewritten(
        ProducerStateManager.check_guard,
        "return _NONE if self.guards.get(producer_id) is guard else _INVALID_TXN_STATE",
        "return _NONE",
    )


@planted("A marker does not end the verification of what was sent before it.")
def markers_leave_guards() -> Planting:
    return rewritten(
        ProducerStateManager.append_marker, "self.guards.pop(producer_id, None)", "pass"
    )


@planted("A partition counts as verified whatever the coordinator says.")
def verification_always_succeeds() -> Planting:
    return rewritten(
        TransactionMetadata.verify,
        "[NONE if p in self.partitions else NOT_IN_TRANSACTION for p in partitions]",
        "[NONE for p in partitions]",
    )


@planted("A question to the coordinator that gets no answer is never given up.")
def gate_waits_for_ever() -> Planting:
    return rewritten(
        _CoordinatorRequest.send,
        "due_ms, lambda: self.fail(ErrorCode.NETWORK_EXCEPTION)",
        "due_ms, lambda: None",
    )


@planted("Offsets that were committed in a transaction do not come into force with its marker.")
def markers_leave_offsets() -> Planting:
    return rewritten(
        markers._MarkerWrite._append,
        "if groups is not None:\n        groups.offsets",
        "if False:\n        groups.offsets",
    )


@planted("Offsets of an aborted transaction come into force.")
def aborted_offsets_count() -> Planting:
    return rewritten(OffsetStore.end_transaction, "if not committed:", "if False:")


@planted("Offsets of a transaction override those that were committed after them.")
def pending_offsets_override() -> Planting:
    return rewritten(
        OffsetStore.end_transaction,
        "if present is None or value.record_offset > present.record_offset:",
        "if present is None or value is not present:",
    )
