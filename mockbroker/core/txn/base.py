"""The state of a transactional id, and the verification of partitions.

`TransactionalId` (in `machine`) is the subclass that handles the events.
"""

from __future__ import annotations

from typing import TypeVar

from mockbroker.core.txn.events import (
    NO_PRODUCER_EPOCH,
    Effect,
    Event,
    Reply,
    Result,
    TopicPartition,
    TransactionImage,
)
from mockbroker.core.txn.states import ANSWERS, FENCED, State, TxnRequest
from mockbroker_protocol import ErrorCode

EPOCH_MAX = 32_767
EPOCH_GIVEN_MAX = EPOCH_MAX - 1

NONE = ErrorCode.NONE
MAPPING = ErrorCode.INVALID_PRODUCER_ID_MAPPING
NOT_IN_TRANSACTION = ErrorCode.TRANSACTION_ABORTABLE
T = TypeVar("T", bound="TransactionBase")


def new_image(producer_id: int, timeout_ms: int, now_ms: int) -> TransactionImage:
    """The image of a new id, which has no epoch yet."""
    return TransactionImage(
        state=State.EMPTY,
        producer_id=producer_id,
        epoch=NO_PRODUCER_EPOCH,
        timeout_ms=timeout_ms,
        update_ms=now_ms,
    )


class TransactionBase:
    """The fields of one transactional id. After a load from the log the event `Loaded` follows."""

    __slots__ = (
        "_completion",
        "_epoch_fence_failed",
        "_event",
        "_out",
        "_retry_ms",
        "epoch",
        "last_epoch",
        "next_producer_id",
        "partitions",
        "pending",
        "previous_producer_id",
        "producer_id",
        "start_ms",
        "state",
        "timeout_ms",
        "transactional_id",
        "update_ms",
        "version",
    )

    def __init__(self, transactional_id: str, image: TransactionImage) -> None:
        self.transactional_id = transactional_id
        self._take(image)
        self.pending: State | None = None
        self._event: Event | None = None  # of the pending transition
        self._completion: TransactionImage | None = None
        self._retry_ms: int | None = None
        # Whether the epoch was raised to fence a producer and that could not be stored.
        self._epoch_fence_failed = False
        self._out: list[Effect] = []

    @property
    def needs_producer_id(self) -> bool:
        """Whether the next event may use up a producer id, because the epochs are used up."""
        return self.epoch >= EPOCH_GIVEN_MAX

    def verify(
        self, producer_id: int, epoch: int, partitions: tuple[TopicPartition, ...]
    ) -> ErrorCode | list[ErrorCode]:
        """Whether partitions are in the transaction: an error for all, or one for each.

        A pending transition does not matter: the log decides at the append.
        """
        error = self._check_producer(producer_id, epoch)
        if error is not NONE:
            return error
        answer = ANSWERS[self.state][TxnRequest.VERIFY]
        if isinstance(answer, ErrorCode):
            return answer
        return [NONE if p in self.partitions else NOT_IN_TRANSACTION for p in partitions]

    def _check_producer(self, producer_id: int, epoch: int) -> ErrorCode:
        if producer_id != self.producer_id:
            return MAPPING
        return NONE if epoch == self.epoch else FENCED

    def _reply(self, callback: object, result: Result) -> None:
        self._out.append(Reply(callback, result))

    def image(self) -> TransactionImage:
        """The id as a record. Its previous producer id is the current one, as in Kafka."""
        return TransactionImage(
            state=self.state,
            producer_id=self.producer_id,
            previous_producer_id=self.producer_id,
            next_producer_id=self.next_producer_id,
            epoch=self.epoch,
            last_epoch=self.last_epoch,
            timeout_ms=self.timeout_ms,
            partitions=tuple(self.partitions),
            start_ms=self.start_ms,
            update_ms=self.update_ms,
            version=self.version,
        )

    def _take(self, image: TransactionImage) -> None:
        """Set the fields from an image."""
        self.state = image.state
        self.producer_id = image.producer_id
        self.previous_producer_id = image.previous_producer_id
        self.next_producer_id = image.next_producer_id
        self.epoch = image.epoch
        self.last_epoch = image.last_epoch
        self.timeout_ms = image.timeout_ms
        self.partitions: dict[TopicPartition, None] = dict.fromkeys(image.partitions)
        self.start_ms = image.start_ms
        self.update_ms = image.update_ms
        self.version = image.version
