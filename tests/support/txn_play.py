"""A transactional id under test: events in, effects out, and its records stored unless told."""

from __future__ import annotations

from typing import Any

from mockbroker.core.txn.events import (
    AddPartitions,
    Effect,
    EndTransaction,
    Event,
    InitProducer,
    Marked,
    Moved,
    Persist,
    Persisted,
    Reply,
    Result,
    SendMarkers,
    Tick,
    TransactionImage,
)
from mockbroker.core.txn.machine import TransactionMetadata, new_image
from mockbroker.core.txn.states import TransactionState
from mockbroker_protocol import ErrorCode

START_MS = 1_000_000
PRODUCER_ID = 7
NEW_PRODUCER_ID = 99
T0, T1 = ("t", 0), ("t", 1)


def image(state: TransactionState = TransactionState.EMPTY, **changes: Any) -> TransactionImage:
    """Producer 7 at epoch 5, which had epoch 4 before; with a partition while one is open."""
    has_partitions = state in (
        TransactionState.ONGOING,
        TransactionState.PREPARE_COMMIT,
        TransactionState.PREPARE_ABORT,
    )
    values: dict[str, Any] = {
        "producer_id": PRODUCER_ID,
        "previous_producer_id": PRODUCER_ID,
        "epoch": 5,
        "last_epoch": 4,
        "timeout_ms": 60_000,
        "partitions": (T0,) if has_partitions else (),
        "start_ms": START_MS if has_partitions else -1,
        "update_ms": START_MS,
        "version": 2,
    }
    return TransactionImage(state=state, **(values | changes))


class Play:
    """One id on a manual clock. `failing` is the error that storing meets, if any."""

    def __init__(self, start: TransactionImage | None = None) -> None:
        self.now_ms = START_MS
        self.id = TransactionMetadata("x", start or new_image(PRODUCER_ID, 60_000, START_MS))
        self.storing = True
        self.failing = ErrorCode.NONE
        self.stored: list[TransactionImage | None] = []
        self.moves: list[tuple[TransactionState, TransactionState]] = []
        self.markers: list[SendMarkers] = []
        self.replies: dict[object, Result] = {}
        self.other: list[Effect] = []
        self.waiting: list[Persist] = []

    @property
    def state(self) -> TransactionState:
        return self.id.state

    def tell(self, event: Event) -> Play:
        self._perform(self.id.handle(event, self.now_ms))
        return self

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Persist):
                if self.storing:
                    self.store(effect)
                else:
                    self.waiting.append(effect)
            elif isinstance(effect, Reply):
                assert effect.callback not in self.replies, "answered twice"
                self.replies[effect.callback] = effect.result
            elif isinstance(effect, Moved):
                self.moves.append((effect.previous, effect.state))
            elif isinstance(effect, SendMarkers):
                self.markers.append(effect)
            else:
                self.other.append(effect)

    def store(self, persist: Persist | None = None, error: ErrorCode | None = None) -> None:
        """Tell the outcome of storing, of the oldest that waits unless one is given."""
        persist = persist or self.waiting.pop(0)
        error = self.failing if error is None else error
        if error is ErrorCode.NONE:
            self.stored.append(persist.image)
        self._perform(self.id.handle(Persisted(persist, error), self.now_ms))

    # -- what producers ask, each answered at once unless storing waits ------------------------

    def _ask(self, event: Any) -> Any:
        self.tell(event)
        return self.replies.pop(event.callback, None)

    def init(
        self, producer_id: int = -1, epoch: int = -1, *, version: int = 2, callback: object = "init"
    ) -> Any:
        return self._ask(
            InitProducer(
                callback=callback,
                timeout_ms=60_000,
                producer_id=producer_id,
                epoch=epoch,
                new_producer_id=NEW_PRODUCER_ID if self.id.needs_producer_id else -1,
                server_version=version,
            )
        )

    def add(self, *partitions: tuple[str, int], callback: object = "add", **changed: Any) -> Any:
        return self._ask(
            AddPartitions(
                callback=callback,
                producer_id=changed.get("producer_id", self.id.producer_id),
                epoch=changed.get("epoch", self.id.epoch),
                partitions=partitions or (T0,),
                version=changed.get("version", 0),
            )
        )

    def end(
        self, *, committed: bool = True, version: int = 0, callback: object = "end", **changed: Any
    ) -> Any:
        return self._ask(
            EndTransaction(
                callback=callback,
                producer_id=changed.get("producer_id", self.id.producer_id),
                epoch=changed.get("epoch", self.id.epoch),
                committed=committed,
                version=version,
                new_producer_id=NEW_PRODUCER_ID if self.id.needs_producer_id else -1,
            )
        )

    def mark(self, *partitions: tuple[str, int]) -> Play:
        return self.tell(Marked(partitions or tuple(self.id.partitions)))

    def tick(self, by_ms: int = 0, version: int = 2) -> Play:
        self.now_ms += by_ms
        new_producer_id = NEW_PRODUCER_ID if self.id.needs_producer_id else -1
        return self.tell(Tick(new_producer_id=new_producer_id, server_version=version))
