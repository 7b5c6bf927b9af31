"""Bugs of Produce, as far as it is not the log's."""

from __future__ import annotations

from mockbroker.core.purgatory.delayed_replication import DelayedReplication
from mockbroker.handlers import produce
from tests.simulation.planted.planting import Planting, planted, rewritten


@planted("A Produce with acks=all is acknowledged as soon as the leader has its batches.")
def acks_all_waits_for_nobody() -> Planting:
    return rewritten(
        produce._append,
        "if acks == ACKS_ALL and partition.high_watermark <= result.last_offset:",
        "if acks == ACKS_ALL and partition.high_watermark < 0:",
    )


@planted("An acknowledgement waits for all but the last record of a batch.")
def acks_all_misses_the_last_record() -> Planting:
    return rewritten(
        produce._append,
        "ProducePartitionStatus(partition, result.last_offset + 1, entry.response)",
        "ProducePartitionStatus(partition, result.last_offset, entry.response)",
    )


@planted("An acknowledgement waits for one record too many.")
def acks_all_waits_for_the_next() -> Planting:
    return rewritten(
        produce._append,
        "ProducePartitionStatus(partition, result.last_offset + 1, entry.response)",
        "ProducePartitionStatus(partition, result.last_offset + 2, entry.response)",
    )


@planted("A retry is acknowledged although the first attempt is not replicated yet.")
def retries_are_acknowledged_at_once() -> Planting:
    return rewritten(
        produce._append,
        "if acks == ACKS_ALL and partition.high_watermark <= result.last_offset:",
        "if not result.duplicate and acks == ACKS_ALL "
        "and partition.high_watermark <= result.last_offset:",
    )


@planted("An acknowledgement is given although another broker has come to lead meanwhile.")
def acknowledged_by_nobody() -> Planting:
    return rewritten(
        produce.DelayedProduce.error_of,
        "if partition.leader_id != self._context.broker.node_id:",
        "if partition.leader_id < 0:",
    )


@planted("A broker appends to partitions that another one leads.")
def followers_append() -> Planting:
    return rewritten(
        produce._refusal,
        "if partition.leader_id != ctx.broker.node_id:",
        "if ctx.broker.node_id not in partition.replicas:",
    )


@planted("A Produce that waits is not answered when its time is up.")
def waiting_produce_has_no_timeout() -> Planting:
    return rewritten(
        produce._answer,
        "ctx.now_ms + request.timeout_ms",
        "ctx.now_ms + request.timeout_ms + 10**9",
    )


@planted("A Produce is answered when the first of its partitions is replicated.")
def first_partition_answers() -> Planting:
    return rewritten(
        DelayedReplication.try_complete,
        "if not self._waiting:",
        "if len(self._waiting) <= 1:",
    )


@planted("An append completes no waiting request.")
def appends_complete_nothing() -> Planting:
    return rewritten(produce._append, "partition.notify()", "pass")
