"""Transactional batches of a Produce: their verification by the coordinator (KIP-890).

Before any batch is appended, the partitions are verified to be in the transaction, or added to it
(TV2). The coordinator's errors are mapped to those of Produce here. While an earlier transaction of
the producer is being completed, a request of TV2 is retried.

Source: ReplicaManager.handleProduceAppend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, cast

from mockbroker.core.errors import ApiError
from mockbroker.core.txn.verification import (
    PartitionVerification,
    TxnOperation,
    UnverifiedBatch,
    VerifiedPartitions,
)
from mockbroker.handlers.base import Outcome, Parked
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.produce import ProduceResponse

if TYPE_CHECKING:
    from mockbroker.core.replication.partition import Partition
    from mockbroker.core.timing.timers import Timer
    from mockbroker.handlers.base import RequestContext
    from mockbroker_protocol.records import BatchHeader

ABORTABLE_SINCE = 11
ADDED_BY_LEADER_SINCE = 12
NOT_ADDED = "Partition was not added to the transaction"
UNVERIFIED = (
    "Unable to verify the partition has been added to the transaction. Underlying error: {}"
)
TWO_PRODUCERS = "Transactional records contained more than one producer ID"

# Producers do not expect these; they retry after NOT_ENOUGH_REPLICAS.
_RETRIED = {
    int(error): UNVERIFIED.format(error.name)
    for error in (
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
    )
}
_CONCURRENT = int(ErrorCode.CONCURRENT_TRANSACTIONS)
_INVALID_TXN_STATE = int(ErrorCode.INVALID_TXN_STATE)

Reply = ProduceResponse | Parked[ProduceResponse | Outcome] | Outcome
Append = Callable[["VerifiedPartitions | None"], Reply]


def verify_transaction(
    ctx: RequestContext,
    transactional_id: str,
    batches: Iterable[tuple[Partition, BatchHeader]],
    append: Append,
) -> Reply:
    """Verify the batches, then call `append` with the result; with None if none is verified.

    Raises ApiError if the batches are of more than one producer.
    """
    transactional = list(batches)
    producers = {(header.producer_id, header.producer_epoch) for _, header in transactional}
    if len(producers) > 1:
        raise ApiError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, TWO_PRODUCERS)
    if not producers:
        return append(None)
    ((producer_id, epoch),) = producers
    operation = _operation(ctx.api_version)
    verification = PartitionVerification(
        ctx.cluster,
        ctx.broker.node_id,
        operation,
        transactional_id=transactional_id,
        producer_id=producer_id,
        epoch=epoch,
    )
    if verification.disabled:
        return append(None)
    wanted = [
        UnverifiedBatch(partition, header.base_sequence) for partition, header in transactional
    ]
    return _Verifying(
        ctx, verification, wanted, append, retries=operation is TxnOperation.ADD
    ).start()


def _operation(version: int) -> TxnOperation:
    if version >= ADDED_BY_LEADER_SINCE:
        return TxnOperation.ADD
    return TxnOperation.VERIFY if version >= ABORTABLE_SINCE else TxnOperation.VERIFY_OLD


def error_and_message(error: int, version: int) -> tuple[int, str | None]:
    """Error code and message of Produce for an error of the coordinator."""
    if error == _INVALID_TXN_STATE:
        return error, NOT_ADDED
    if error == _CONCURRENT and version >= ADDED_BY_LEADER_SINCE:
        return error, None
    if error in _RETRIED:
        return int(ErrorCode.NOT_ENOUGH_REPLICAS), _RETRIED[error]
    return error, None


class _Verifying:
    """A request that waits for the coordinator, and is retried after CONCURRENT_TRANSACTIONS."""

    __slots__ = (
        "_append",
        "_context",
        "_deadline_ms",
        "_reply",
        "_retries",
        "_timer",
        "_verification",
        "_wanted",
    )

    def __init__(
        self,
        context: RequestContext,
        verification: PartitionVerification,
        wanted: list[UnverifiedBatch],
        append: Append,
        *,
        retries: bool,
    ) -> None:
        self._context = context
        self._verification = verification
        self._wanted = wanted
        self._append = append
        self._retries = retries
        self._reply: Reply | None = None
        self._timer: Timer | None = None  # of the next retry
        config = context.cluster.config_int
        self._deadline_ms = context.now_ms + min(
            config("add.partitions.to.txn.retry.backoff.max.ms"), config("request.timeout.ms")
        )

    def start(self) -> Reply:
        self._verification.start(self._wanted, self._verified)
        if self._reply is None:
            self._reply = Parked()
        return self._reply

    def _not_pending(self, timer: Timer) -> None:
        """Retry at once after the earlier transaction is complete, unless the timer has run."""
        if self._timer is timer:
            timer.cancel()
            self._retry()

    def _retry(self) -> None:
        self._timer = None
        self._verification.start(self._wanted, self._verified)

    def _verified(self, result: VerifiedPartitions) -> None:
        cluster = self._context.cluster
        now_ms = cluster.runtime.now_ms()
        if self._retries and now_ms < self._deadline_ms and _CONCURRENT in result.errors.values():
            # Kafka retries after this time; here also when the transaction is complete.
            backoff_ms = cluster.config_int("add.partitions.to.txn.retry.backoff.ms")
            self._timer = cluster.runtime.timers.call_at(now_ms + backoff_ms, self._retry)
            self._verification.when_not_pending(partial(self._not_pending, self._timer))
            return
        self._context.now_ms = now_ms
        reply = self._append(result)
        parked = self._reply
        if parked is None:
            self._reply = reply
        elif isinstance(parked, Parked):
            _complete_with(reply, parked)


def _complete_with(reply: Reply, parked: Parked[ProduceResponse | Outcome]) -> None:
    """Complete a parked reply with another reply, now or when that is complete."""
    if not isinstance(reply, Parked):
        # An outcome takes the place of a response.
        parked.complete(cast("ProduceResponse", reply))
    elif reply.done:
        parked.complete(reply.response)
    else:
        reply.on_complete = lambda: parked.complete(reply.response)
