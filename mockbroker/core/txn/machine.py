"""A transactional id: the interpreter of the tables in `states`.

`handle(event, now_ms)` returns the effects of an event; `deadline_ms()` is when the next `Tick` is
due. A transition begins with a record to be stored (`Persist`), is `pending` meanwhile, and takes
place with `Persisted`. The completion of an end is pending from the decision on, and stored when
the last partition is `Marked`.

`last_epoch` is the former epoch, which identifies a retry. No producer gets the highest epoch,
32767, so that it can always be fenced; after 32766 it gets another producer id.

Source: TransactionMetadata, TransactionCoordinator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from mockbroker.core.txn.events import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    AddPartitions,
    AddResult,
    Effect,
    EndResult,
    EndTransaction,
    Event,
    Expire,
    InitProducer,
    InitResult,
    Loaded,
    Marked,
    Moved,
    Persist,
    Persisted,
    Remove,
    Reply,
    Result,
    SendMarkers,
    Tick,
    TopicPartition,
    TransactionImage,
)
from mockbroker.core.txn.states import (
    ANSWERS,
    CONCURRENT,
    END_REQUESTS,
    FENCED,
    IMPOSSIBLE,
    TRANSITIONS,
    TransactionState,
    Trigger,
    TxnAction,
    TxnRequest,
)
from mockbroker_protocol import ErrorCode

EPOCH_MAX = 32_767
EPOCH_ASSIGNED_MAX = EPOCH_MAX - 1

NONE = ErrorCode.NONE
UNKNOWN_MAPPING = ErrorCode.INVALID_PRODUCER_ID_MAPPING
NOT_IN_TRANSACTION = ErrorCode.TRANSACTION_ABORTABLE

EPOCHS_BUMPED_SINCE = 2  # transaction.version 2: each end raises the epoch
COMPLETION_RETRY_MS = 100

_PREPARED = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)
_COMPLETE = (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


def new_image(producer_id: int, timeout_ms: int, now_ms: int) -> TransactionImage:
    """The image of a new id, which has no epoch yet."""
    return TransactionImage(
        state=TransactionState.EMPTY,
        producer_id=producer_id,
        epoch=NO_PRODUCER_EPOCH,
        timeout_ms=timeout_ms,
        update_ms=now_ms,
    )


class TransactionMetadata:
    """One transactional id. Other modules only read its attributes.

    After a load from the log the event `Loaded` follows.
    """

    __slots__ = (
        "_completion",
        "_effects",
        "_epoch_fence_failed",
        "_event",
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
        self._set_fields(image)
        self.pending: TransactionState | None = None
        self._event: Event | None = None  # of the pending transition
        self._completion: TransactionImage | None = None
        self._retry_ms: int | None = None
        # Whether the epoch was raised to fence a producer and that could not be stored.
        self._epoch_fence_failed = False
        self._effects: list[Effect] = []

    def handle(self, event: Event, now_ms: int) -> list[Effect]:
        """Handle one event; returns its effects, in order."""
        assert not self._effects
        _HANDLERS[type(event)](self, event, now_ms)
        effects, self._effects = self._effects, []
        return effects

    def deadline_ms(self) -> int | None:
        """The time of the next Tick, in ms since the epoch; the Tick may have no effect."""
        if self._retry_ms is not None:
            return self._retry_ms
        if self.state is TransactionState.ONGOING:
            return self.start_ms + self.timeout_ms + 1
        return None

    @property
    def needs_producer_id(self) -> bool:
        """Whether the next event may need a new producer id, because the epochs are exhausted."""
        return self.epoch >= EPOCH_ASSIGNED_MAX

    def image(self) -> TransactionImage:
        """The image for a record. Its previous producer id is the current one, as in Kafka."""
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

    def _set_fields(self, image: TransactionImage) -> None:
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

    def verify(
        self, producer_id: int, epoch: int, partitions: tuple[TopicPartition, ...]
    ) -> ErrorCode | list[ErrorCode]:
        """Whether partitions are in the transaction: an error for all, or one for each.

        A pending transition is ignored; the append checks the producer state again.
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
            return UNKNOWN_MAPPING
        return NONE if epoch == self.epoch else FENCED

    def _reply(self, callback: object, result: Result) -> None:
        self._effects.append(Reply(callback, result))

    # ------------------------------------------------------------------------------- initialising

    def _on_init(self, init: InitProducer, now_ms: int) -> None:
        answer: ErrorCode | TxnAction = ANSWERS[self.state][TxnRequest.INIT]
        if self.pending is not None:
            answer = CONCURRENT
        elif init.producer_id != NO_PRODUCER_ID and not self._is_known(init):
            answer = FENCED
        if answer is TxnAction.BUMP_EPOCH:
            answer = self._bump_epoch(init, now_ms)
        elif answer is TxnAction.FENCE:
            answer = self._fence(init, init.server_version, init.new_producer_id, now_ms)
        if answer is not NONE:
            assert isinstance(answer, ErrorCode)
            self._reply(init.callback, InitResult(answer))

    def _is_known(self, init: InitProducer) -> bool:
        """Whether the producer may keep its id (KIP-360); `_bump_epoch` checks the epoch."""
        if self.epoch == NO_PRODUCER_EPOCH or init.producer_id == self.producer_id:
            return True
        return init.producer_id == self.previous_producer_id and init.epoch >= EPOCH_ASSIGNED_MAX

    def _bump_epoch(self, init: InitProducer, now_ms: int) -> ErrorCode:
        """Assign the next epoch; NONE if the transition has begun."""
        producer_id, epoch, last_epoch = self.producer_id, self.epoch + 1, self.epoch
        continues = init.producer_id != NO_PRODUCER_ID
        if self.epoch >= EPOCH_ASSIGNED_MAX and (not continues or init.epoch == self.epoch):
            producer_id, epoch = init.new_producer_id, 0
            last_epoch = self.epoch if continues else NO_PRODUCER_EPOCH
        elif self.epoch >= EPOCH_ASSIGNED_MAX:
            return IMPOSSIBLE
        elif not continues:
            last_epoch = NO_PRODUCER_EPOCH  # no producer may continue from the former epoch
        elif self.epoch not in (init.epoch, NO_PRODUCER_EPOCH):
            if init.epoch != self.last_epoch:
                return FENCED
            epoch, last_epoch = self.epoch, self.last_epoch  # a retry
        self._begin_transition(
            Trigger.INITIALISED,
            TransactionImage(
                state=TransactionState.EMPTY,
                producer_id=producer_id,
                previous_producer_id=self.producer_id,
                epoch=epoch,
                last_epoch=last_epoch,
                timeout_ms=init.timeout_ms,
                update_ms=now_ms,
                version=self.version,
            ),
            init,
        )
        return NONE

    # ------------------------------------------------------------------------- adding partitions

    def _on_add(self, add: AddPartitions, now_ms: int) -> None:
        error = CONCURRENT  # before the epoch, which may be about to change
        if self.pending is None:
            error = self._check_producer(add.producer_id, add.epoch)
        answer: ErrorCode | TxnAction = error
        if error is NONE:
            answer = ANSWERS[self.state][TxnRequest.ADD]
        if answer is TxnAction.ADD:
            ongoing = self.state is TransactionState.ONGOING
            new = {p: None for p in add.partitions if p not in self.partitions}
            if not ongoing or new:
                image = replace(
                    self.image(),
                    state=TransactionState.ONGOING,
                    partitions=(*self.partitions, *new),
                    start_ms=self.start_ms if ongoing else now_ms,
                    update_ms=now_ms,
                    version=add.version,
                )
                self._begin_transition(Trigger.ADDED, image, add)
                return
            answer = NONE
        assert isinstance(answer, ErrorCode)
        self._reply(add.callback, AddResult(answer))

    # ------------------------------------------------------------------------------------- the end

    def _on_end(self, end: EndTransaction, now_ms: int) -> None:
        answer = self._answer_to_end(end)
        if answer is TxnAction.REPEAT:
            self._reply(end.callback, EndResult(NONE, self.producer_id, self.epoch))
        elif isinstance(answer, ErrorCode):
            self._reply(end.callback, EndResult(answer))
        elif answer is TxnAction.END:
            trigger = Trigger.COMMITTED if end.committed else Trigger.ABORTED
            self._prepare(trigger, end.version, end.new_producer_id, end, now_ms)
        else:
            self._prepare(Trigger.ABORTED_EMPTY, end.version, end.new_producer_id, end, now_ms)

    def _answer_to_end(self, end: EndTransaction) -> ErrorCode | TxnAction:
        bumps = end.version >= EPOCHS_BUMPED_SINCE
        if bumps and self.pending is not None:
            return CONCURRENT  # the id or the epoch may be about to change
        overflowed = (
            bumps
            and end.producer_id == self.previous_producer_id
            and end.epoch == EPOCH_ASSIGNED_MAX
            and self.epoch == 0
        )
        again = overflowed or (bumps and end.epoch == self.epoch - 1)
        if end.producer_id != self.producer_id and not overflowed:
            return UNKNOWN_MAPPING
        if end.epoch != self.epoch and not again:
            return FENCED
        if self.pending is not None:
            return CONCURRENT
        return ANSWERS[self.state][END_REQUESTS[bumps, end.committed, again]]

    def _fence(self, event: Event, version: int, new_producer_id: int, now_ms: int) -> ErrorCode:
        """Abort the open transaction with a new epoch; NONE if the transition has begun."""
        if self.epoch == EPOCH_MAX:
            return IMPOSSIBLE
        fencing = TRANSITIONS[self.state][Trigger.FENCED]
        assert TRANSITIONS[fencing][Trigger.ABORTED] is TransactionState.PREPARE_ABORT
        if version < EPOCHS_BUMPED_SINCE:
            # The epoch rises in memory first. After a failed write the next attempt uses the same.
            if not self._epoch_fence_failed:
                self.epoch += 1
            self.last_epoch = NO_PRODUCER_EPOCH
            self._epoch_fence_failed = True
        self._prepare(Trigger.ABORTED, version, new_producer_id, event, now_ms)
        return NONE

    def _prepare(
        self, trigger: Trigger, version: int, new_producer_id: int, event: Event, now_ms: int
    ) -> None:
        """Decide the end. With TV2 the epoch rises here, so that markers carry the new one."""
        image = replace(
            self.image(),
            state=TRANSITIONS[self.state][trigger],
            start_ms=now_ms if trigger is Trigger.ABORTED_EMPTY else self.start_ms,
            update_ms=now_ms,
            version=version if version >= EPOCHS_BUMPED_SINCE else 0,
        )
        if version >= EPOCHS_BUMPED_SINCE:
            image = replace(
                image,
                epoch=self.epoch + 1,
                last_epoch=self.epoch,
                next_producer_id=new_producer_id if self.needs_producer_id else NO_PRODUCER_ID,
            )
        self._begin_transition(trigger, image, event)

    def _prepared(self, now_ms: int) -> TransactionImage:
        """Set the completion of a stored decision; it is pending until the markers are written."""
        completion = replace(
            self.image(),
            state=TRANSITIONS[self.state][Trigger.MARKED],
            partitions=(),
            update_ms=now_ms,
            next_producer_id=NO_PRODUCER_ID,
        )
        if self.version >= EPOCHS_BUMPED_SINCE and self.next_producer_id != NO_PRODUCER_ID:
            completion = replace(completion, producer_id=self.next_producer_id, epoch=0)
        self._epoch_fence_failed = False
        self._completion = completion
        self.pending = completion.state
        return completion

    def _complete(self) -> None:
        """Send the missing markers, or store the completion."""
        completion = self._completion
        assert completion is not None
        if self.partitions:
            self._effects.append(
                SendMarkers(
                    producer_id=self.producer_id,
                    epoch=self.epoch,
                    committed=self.state is TransactionState.PREPARE_COMMIT,
                    partitions=tuple(self.partitions),
                    version=self.version,
                )
            )
        else:
            self._effects.append(Persist(completion))

    def _on_marked(self, marked: Marked, _: int) -> None:
        if self._completion is None or not self.partitions:
            return  # a second answer for a marker
        for partition in marked.partitions:
            self.partitions.pop(partition, None)
        if not self.partitions:
            self._complete()

    # -------------------------------------------------------------------- timeouts, loading

    def _on_tick(self, tick: Tick, now_ms: int) -> None:
        if self._retry_ms is not None:
            if self._retry_ms <= now_ms:
                self._retry_ms = None
                self._complete()
        elif (
            self.state is TransactionState.ONGOING
            and self.pending is None
            and self.start_ms + self.timeout_ms < now_ms
        ):
            self._fence(tick, tick.server_version, tick.new_producer_id, now_ms)

    def _on_expire(self, expire: Expire, now_ms: int) -> None:
        if self.pending is not None or Trigger.EXPIRED not in TRANSITIONS[self.state]:
            return
        if self.update_ms <= now_ms - expire.expiration_ms:
            self._begin_transition(Trigger.EXPIRED, None, expire)

    def _on_loaded(self, _: Loaded, now_ms: int) -> None:
        if self.state in _PREPARED:
            self._prepared(now_ms)
            self._complete()

    # ------------------------------------------------------------------------ storing a transition

    def _begin_transition(
        self, trigger: Trigger, image: TransactionImage | None, event: Event
    ) -> None:
        """Begin a transition. It takes place when its record is stored."""
        before = self.state
        if trigger is Trigger.ABORTED and not isinstance(event, EndTransaction):
            before = TRANSITIONS[before][Trigger.FENCED]
        self.pending = TRANSITIONS[before][trigger]
        assert image is None or image.state is self.pending
        self._event = event
        self._effects.append(Persist(image, getattr(event, "callback", None)))

    def _on_persisted(self, persisted: Persisted, now_ms: int) -> None:
        image, error = persisted.persist.image, persisted.error
        event, self._event = self._event, None
        if error is not NONE:
            self._on_failure(event, error, now_ms)
            return
        self.pending = None
        if image is None:
            self._effects.append(Moved(self.state, TransactionState.DEAD))
            self.state = TransactionState.DEAD
            self._effects.append(Remove())
            return
        self._effects.append(Moved(self.state, image.state))
        self._set_fields(image)
        if self.state in _PREPARED:
            completion = self._prepared(now_ms)
            self._answer(event, NONE, completion.producer_id, completion.epoch)
            self._complete()
        elif self.state in _COMPLETE:
            self._completion = None
        else:
            self._answer(event, NONE, self.producer_id, self.epoch)

    def _on_failure(self, event: Event | None, error: ErrorCode, now_ms: int) -> None:
        if self._completion is None:
            self.pending = None
            self._answer(event, error)
        elif error is ErrorCode.COORDINATOR_NOT_AVAILABLE:
            self._retry_ms = now_ms + COMPLETION_RETRY_MS

    def _answer(
        self,
        event: Event | None,
        error: ErrorCode,
        producer_id: int = NO_PRODUCER_ID,
        epoch: int = NO_PRODUCER_EPOCH,
    ) -> None:
        """Answer the request of a transition that is stored or has failed."""
        if isinstance(event, InitProducer):
            if error is NONE and self.state is not TransactionState.EMPTY:
                self._reply(event.callback, InitResult(CONCURRENT))  # fenced; the producer retries
            else:
                self._reply(event.callback, InitResult(error, producer_id, epoch))
        elif isinstance(event, AddPartitions):
            self._reply(event.callback, AddResult(error))
        elif isinstance(event, EndTransaction):
            self._reply(event.callback, EndResult(error, producer_id, epoch))


_HANDLERS: dict[type, Callable[[TransactionMetadata, Any, int], None]] = {
    InitProducer: TransactionMetadata._on_init,
    AddPartitions: TransactionMetadata._on_add,
    EndTransaction: TransactionMetadata._on_end,
    Marked: TransactionMetadata._on_marked,
    Expire: TransactionMetadata._on_expire,
    Tick: TransactionMetadata._on_tick,
    Loaded: TransactionMetadata._on_loaded,
    Persisted: TransactionMetadata._on_persisted,
}
