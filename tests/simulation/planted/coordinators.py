"""Bugs of what coordinators have in common: shards, loading, waiting for replication."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mockbroker.core.coordinator.runtime import CoordinatorRuntime
from mockbroker.core.coordinator.shard import CoordinatorShard
from mockbroker.core.txn.shard import TransactionShard
from tests.simulation.planted.planting import Planting, planted, replaced, rewritten


@planted("What waits for a write is answered when the high watermark is one above it.")
def waits_for_one_too_many() -> Planting:
    return rewritten(
        CoordinatorShard.partition_changed,
        "deferred[0].required_offset <= partition.high_watermark",
        "deferred[0].required_offset < partition.high_watermark",
    )


@planted("What waits for a write is answered when the high watermark is one below it.")
def waits_for_one_too_few() -> Planting:
    return rewritten(
        CoordinatorShard.partition_changed,
        "deferred[0].required_offset <= partition.high_watermark",
        "deferred[0].required_offset <= partition.high_watermark + 1",
    )


@planted("A write is answered before it is replicated.")
def answered_before_replicated() -> Planting:
    return rewritten(
        CoordinatorShard.when_replicated,
        "elif self.is_replicated:",
        "elif self.partition.log.end_offset:",
    )


@planted("What waits in a shard is forgotten when the shard is unloaded.")
def unloading_answers_nobody() -> Planting:
    return rewritten(
        CoordinatorShard.unload,
        "self._deferred.popleft().complete(ErrorCode.NOT_COORDINATOR)",
        "self._deferred.popleft()",
    )


@planted("What was given up is settled once more when the write is replicated after all.")
def given_up_is_settled_again() -> Planting:
    return rewritten(CoordinatorShard._time_out, "self._deferred.remove(deferred)", "pass")


@planted("A coordinator that reads a partition anew leaves alive what it knew of it before.")
def former_shard_lives_on() -> Planting:
    return rewritten(CoordinatorRuntime._start_load, "former.unload()", "pass")


@planted("A shard goes on when another broker leads its partition.")
def shard_outlives_leadership() -> Planting:
    return rewritten(
        CoordinatorShard.is_current_for,
        "and partition.leader_id == self.coordinator.broker_id",
        "and partition.leader_id != -2",
    )


@planted("Every replica answers as the coordinator, not only the leader.")
@contextmanager
def followers_coordinate() -> Iterator[None]:
    of_replica = "self.broker_id in partition.replicas"
    with (
        rewritten(
            CoordinatorRuntime.shard,
            "if partition.leader_id != self.broker_id:",
            "if self.broker_id not in partition.replicas:",
        ),
        rewritten(
            CoordinatorRuntime._may_load, "partition.leader_id == self.broker_id", of_replica
        ),
    ):
        yield


@planted(
    "A coordinator whose broker becomes leader of a partition reads it only when a request comes."
)
def nothing_is_loaded_ahead() -> Planting:
    return rewritten(
        CoordinatorRuntime.on_leadership_change,
        "if shard is None and not is_empty",
        "if shard is None and is_empty",
    )


@planted("A coordinator answers before its log is read.")
def answers_while_loading() -> Planting:
    return rewritten(
        CoordinatorRuntime.shard,
        "return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if shard.loading else shard",
        "return shard",
    )


@planted("A coordinator that comes back to a partition goes on with what it knew before.")
def former_shard_is_kept() -> Planting:
    return rewritten(
        CoordinatorRuntime.on_leadership_change,
        "shard.unload()\n        shard = None",
        "shard.partition = partition",
    )


@planted("A transaction coordinator does not notice that it leads under another epoch.")
def coordinator_epoch_stays() -> Planting:
    return rewritten(
        TransactionShard.is_current_for,
        "return super().is_current_for(partition) and partition.leader_epoch == self.epoch",
        "return super().is_current_for(partition)",
    )


@planted("Transaction records are written without asking for min.insync.replicas.")
def transaction_log_with_one_ack() -> Planting:
    return replaced(TransactionShard, "acks", 1)
