"""The way a Produce takes whose batches are transactional: by the coordinator (KIP-890).

The transactions that the batches would open are verified, or joined, before anything of the request
is appended. What the coordinator says is put in terms of Produce here; while an earlier transaction
of the producer is still being completed, a request of TV2 waits a little rather than be refused.

Source: ReplicaManager.handleProduceAppend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, cast

from mockbroker.core.txn.gate import Batch, Gate, Operation, Verdict
from mockbroker.handlers.base import Outcome, Parked
from mockbroker.handlers.produce_records import RequestRefused
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.produce import ProduceResponse

if TYPE_CHECKING:
    from mockbroker.core.partition import Partition
    from mockbroker.core.timers import Timer
    from mockbroker.handlers.base import RequestContext
    from mockbroker_protocol.records import BatchHeader

ABORTABLE_SINCE = 11
ADDED_BY_LEADER_SINCE = 12
NOT_ADDED = "Partition was not added to the transaction"
UNVERIFIED = (
    "Unable to verify the partition has been added to the transaction. Underlying error: {}"
)
TWO_PRODUCERS = "Transactional records contained more than one producer ID"

# Producers would not expect these, but will try again after NOT_ENOUGH_REPLICAS.
_TRIED_AGAIN = {
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

Reply = ProduceResponse | Parked[ProduceResponse] | Outcome
GoOn = Callable[["Verdict | None"], Reply]


def through_gate(
    ctx: RequestContext,
    transactional_id: str,
    batches: Iterable[tuple[Partition, BatchHeader]],
    go_on: GoOn,
) -> Reply:
    """Have the coordinator asked, then go on with what it says; None where nobody had to be asked.

    Raises RequestRefused if the batches are of more than one producer.
    """
    asked = list(batches)
    producers = {(header.producer_id, header.producer_epoch) for _, header in asked}
    if len(producers) > 1:
        raise RequestRefused(int(ErrorCode.INVALID_PRODUCER_ID_MAPPING), TWO_PRODUCERS)
    if not producers:
        return go_on(None)
    ((producer_id, epoch),) = producers
    operation = _operation(ctx.api_version)
    gate = Gate(
        ctx.cluster,
        ctx.broker.node_id,
        operation,
        transactional_id=transactional_id,
        producer_id=producer_id,
        epoch=epoch,
    )
    if gate.open:
        return go_on(None)
    wanted = [Batch(partition, header.base_sequence) for partition, header in asked]
    return _Asking(ctx, gate, wanted, go_on, patient=operation is Operation.ADD).start()


def _operation(version: int) -> Operation:
    if version >= ADDED_BY_LEADER_SINCE:
        return Operation.ADD
    return Operation.VERIFY if version >= ABORTABLE_SINCE else Operation.VERIFY_OLD


def error_and_message(error: int, version: int) -> tuple[int, str | None]:
    """The coordinator's error as a producer of this Produce version is to see it."""
    if error == _INVALID_TXN_STATE:
        return error, NOT_ADDED
    if error == _CONCURRENT and version >= ADDED_BY_LEADER_SINCE:
        return error, None
    if error in _TRIED_AGAIN:
        return int(ErrorCode.NOT_ENOUGH_REPLICAS), _TRIED_AGAIN[error]
    return error, None


class _Asking:
    """A request that waits for the coordinator, who may ask it to come back later."""

    __slots__ = (
        "_context",
        "_deadline_ms",
        "_gate",
        "_go_on",
        "_patient",
        "_reply",
        "_timer",
        "_wanted",
    )

    def __init__(
        self,
        context: RequestContext,
        gate: Gate,
        wanted: list[Batch],
        go_on: GoOn,
        *,
        patient: bool,
    ) -> None:
        self._context = context
        self._gate = gate
        self._wanted = wanted
        self._go_on = go_on
        self._patient = patient
        self._reply: Reply | None = None
        self._timer: Timer | None = None  # until when to wait before asking again
        config = context.cluster.config_int
        self._deadline_ms = context.now_ms + min(
            config("add.partitions.to.txn.retry.backoff.max.ms"), config("request.timeout.ms")
        )

    def start(self) -> Reply:
        self._gate.ask(self._wanted, self._take)
        if self._reply is None:
            self._reply = Parked()
        return self._reply

    def _settled(self, timer: Timer) -> None:
        """The end that this waited for is complete, unless it has been asked again meanwhile."""
        if self._timer is timer:
            timer.cancel()
            self._ask_again()

    def _ask_again(self) -> None:
        self._timer = None
        self._gate.ask(self._wanted, self._take)

    def _take(self, verdict: Verdict) -> None:
        cluster = self._context.cluster
        now_ms = cluster.now_ms()
        if self._patient and now_ms < self._deadline_ms and _CONCURRENT in verdict.errors.values():
            # Kafka asks again after this time. Nothing is lost by asking as soon as it makes sense.
            backoff_ms = cluster.config_int("add.partitions.to.txn.retry.backoff.ms")
            self._timer = cluster.timers.call_at(now_ms + backoff_ms, self._ask_again)
            self._gate.when_settled(partial(self._settled, self._timer))
            return
        self._context.now_ms = now_ms
        reply = self._go_on(verdict)
        parked = self._reply
        if parked is None:
            self._reply = reply
        elif isinstance(parked, Parked):
            _hand_on(reply, parked)


def _hand_on(reply: Reply, parked: Parked[ProduceResponse]) -> None:
    """Complete the reply that the connection waits for, now or when the append is replicated."""
    if not isinstance(reply, Parked):
        # Where nothing is sent, or the connection closes, the outcome takes a response's place.
        parked.complete(cast("ProduceResponse", reply))
    elif reply.done:
        parked.complete(reply.response)
    else:
        reply.on_complete = lambda: parked.complete(reply.response)
