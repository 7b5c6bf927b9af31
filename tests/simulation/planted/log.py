"""Bugs of logs: batches, leader epochs, producers' states."""

from __future__ import annotations

from mockbroker.core.log.leader_epoch_cache import LeaderEpochCache
from mockbroker.core.log.producer_state import ProducerStateManager
from mockbroker.core.log.replica_log import ReplicaLog
from tests.simulation.planted.planting import Planting, planted, rewritten


@planted("A log that is cut at its end keeps what it knew of the producers it cut away.")
def truncation_keeps_producers() -> Planting:
    return rewritten(ReplicaLog.truncate, "self._replay_producers()", "pass")


@planted("A log that is cut at its end keeps the leader epochs it cut away.")
def truncation_keeps_epochs() -> Planting:
    return rewritten(ReplicaLog.truncate, "self.epochs.truncate_from_end(offset)", "pass")


@planted("An epoch that begins at the new log end survives the cut.")
def truncation_keeps_last_epoch() -> Planting:
    return rewritten(
        LeaderEpochCache.truncate_from_end,
        "self._starts[-1] >= log_end_offset",
        "self._starts[-1] > log_end_offset",
    )


@planted("The end of an epoch is given as the offset where it begins.")
def epoch_end_is_its_start() -> Planting:
    return rewritten(
        LeaderEpochCache.end_offset_for,
        "return floor, self._starts[following]",
        "return floor, self._starts[max(following - 1, 0)]",
    )


@planted("A follower does not take over the leader epochs of what it copies.")
def followers_copy_no_epochs() -> Planting:
    return rewritten(ReplicaLog.append_slice, "self.epochs.assign(epoch, start_offset)", "continue")


@planted("A follower does not take note of the producers of what it copies.")
def followers_forget_producers() -> Planting:
    return rewritten(ReplicaLog.append_slice, "self.producers.replay(batch, header)", "pass")


@planted("A copy of a log begins without the producers of the original.")
def forks_forget_producers() -> Planting:
    return rewritten(ReplicaLog.fork, "copy.producers = self.producers.fork()", "pass")


@planted("A read goes one batch beyond the offset where it is to stop.")
def reads_go_one_batch_too_far() -> Planting:
    return rewritten(
        ReplicaLog.batch_range,
        "return first, bisect_left(offsets, upper_offset, first)",
        "return first, bisect_right(offsets, upper_offset, first)",
    )


@planted("A producer of the epoch before is not fenced.")
def previous_epoch_is_let_in() -> Planting:
    return rewritten(
        ProducerStateManager.check,
        "entry is not None and epoch < entry.epoch:",
        "entry is not None and epoch < entry.epoch - 1:",
    )


@planted("A retried batch is not recognised, because it is looked for among the earlier ones.")
def last_batch_is_no_duplicate() -> Planting:
    return rewritten(
        ProducerStateManager.find_duplicate,
        "for batch in entry.batches:",
        "for batch in entry.batches[:-1]:",
    )


@planted("Sequence numbers may skip: only those that go back are refused.")
def sequences_may_skip() -> Planting:
    return rewritten(
        ProducerStateManager.check,
        "if first_sequence != (0 if last == SEQUENCE_MAX else last + 1):",
        "if first_sequence < (0 if last == SEQUENCE_MAX else last + 1):",
    )


@planted("A retried batch is appended again: it is compared with the wrong end of the sequence.")
def duplicates_are_appended() -> Planting:
    return rewritten(
        ProducerStateManager.append,
        "entry.last_sequence = batch.last_sequence",
        "entry.last_sequence = batch.first_sequence - 1",
    )


@planted("A transaction whose marker is not replicated yet does not hold the LSO back.")
def unreplicated_markers_count() -> Planting:
    return rewritten(
        ProducerStateManager.append_marker,
        "self._unreplicated[first] = self.last_marker = offset",
        "pass",
    )


@planted("A marker right below the high watermark still holds the LSO back.")
def marker_below_watermark_holds() -> Planting:
    return rewritten(
        ProducerStateManager.high_watermark_moved,
        "if marker >= high_watermark",
        "if marker >= high_watermark - 1",
    )


@planted("A marker is taken for replicated as soon as the high watermark reaches it.")
def marker_at_watermark_is_through() -> Planting:
    return rewritten(
        ProducerStateManager.high_watermark_moved,
        "if marker >= high_watermark",
        "if marker > high_watermark",
    )


@planted(
    "Where one transaction is open and another waits for its marker, only the open one counts."
)
def open_transaction_hides_decided_one() -> Planting:
    return rewritten(
        ProducerStateManager.first_unstable_offset,
        "return unreplicated if ongoing < 0 else min(ongoing, unreplicated)",
        "return unreplicated if ongoing < 0 else ongoing",
    )


@planted("Each batch of a transaction is taken for its first.")
def transaction_begins_again() -> Planting:
    return rewritten(
        ProducerStateManager.append, "if entry.transaction_start < 0:", "if transactional:"
    )


@planted("An aborted transaction is noted only if no other one is open.")
def aborted_index_has_gaps() -> Planting:
    return rewritten(
        ProducerStateManager.append_marker, "if aborted:", "if aborted and not self._ongoing:"
    )


@planted("An aborted transaction that began before the fetch offset is not listed.")
def aborts_before_the_fetch_are_hidden() -> Planting:
    return rewritten(
        ProducerStateManager.aborted_between,
        "if aborted[middle].last_offset < fetch_offset:",
        "if aborted[middle].first_offset < fetch_offset:",
    )


@planted("An aborted transaction counts from the marker, not from its first record.")
def aborts_begin_at_their_marker() -> Planting:
    return rewritten(
        ProducerStateManager.append_marker,
        "AbortedTransaction(producer_id, first, offset, stable)",
        "AbortedTransaction(producer_id, offset, offset, stable)",
    )


@planted("The last offset of a batch is not counted.")
def log_end_misses_last_record() -> Planting:
    return rewritten(
        ReplicaLog.append,
        "base_offset + last_offset_delta + 1",
        "base_offset + max(last_offset_delta, 1)",
    )
