"""Those who take part in a transaction: producers, their requests, and the partitions."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mockbroker.core.txn.events import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, SendMarkers
from mockbroker.core.txn.machine import EPOCHS_BUMPED_SINCE
from mockbroker.simulation.exhaustive.world import must

NEVER_OPENED = 0  # the number of no transaction


class WaitingRequest(msgspec.Struct, frozen=True):
    """One request: who asked for what, and what it went by then."""

    client: int
    asked: str
    producer_id: int
    epoch: int
    lost: bool
    transaction: int
    committed: bool = False
    partition: tuple[str, int] | None = None


class Client:
    """What one producer knows. `transaction` is the last one that it has added to."""

    __slots__ = ("callback", "epoch", "producer_id", "transaction", "version")

    def __init__(self, version: int) -> None:
        self.version = version
        self.producer_id = NO_PRODUCER_ID
        self.epoch = NO_PRODUCER_EPOCH
        self.transaction = NEVER_OPENED
        self.callback: WaitingRequest | None = None


class Entry:
    """What a partition knows of one producer id: its epoch, and the transaction it has open."""

    __slots__ = ("epoch", "open")

    def __init__(self) -> None:
        self.epoch = NO_PRODUCER_EPOCH
        self.open = NEVER_OPENED

    def write(self, epoch: int, transaction: int) -> None:
        """A record of an open transaction is appended, unless a newer producer was here."""
        if epoch < self.epoch:
            return
        must(
            self.open in (NEVER_OPENED, transaction),
            "no transaction begins where another one is open",
        )
        self.epoch, self.open = epoch, transaction

    def mark(self, order: SendMarkers, decisions: Mapping[int, bool]) -> None:
        """A marker is appended (see ProducerStates.check_marker)."""
        late = order.version >= EPOCHS_BUMPED_SINCE and order.epoch == self.epoch
        must(
            order.epoch >= self.epoch and not (late and self.open),
            "the leader takes the marker of a decision",
        )
        must(
            not self.open or decisions.get(self.open) is order.committed,
            "a marker says what was decided of the transaction that it ends",
        )
        self.epoch, self.open = order.epoch, NEVER_OPENED
