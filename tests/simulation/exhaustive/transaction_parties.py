"""The producers, requests and partitions of a transaction."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from mockbroker.core.txn.events import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, SendMarkers
from mockbroker.core.txn.machine import EPOCHS_BUMPED_SINCE
from tests.simulation.exhaustive.world import must

NEVER_OPENED = 0  # the number of no transaction


class WaitingRequest(msgspec.Struct, frozen=True):
    """One request, with its client and the client's state when it was sent."""

    client: int
    kind: str
    producer_id: int
    epoch: int
    lost: bool
    transaction: int
    committed: bool = False
    partition: tuple[str, int] | None = None


class ProducerClient:
    """One producer. `transaction` is the last transaction to which it has added a partition."""

    __slots__ = ("callback", "epoch", "producer_id", "transaction", "version")

    def __init__(self, version: int) -> None:
        self.version = version
        self.producer_id = NO_PRODUCER_ID
        self.epoch = NO_PRODUCER_EPOCH
        self.transaction = NEVER_OPENED
        self.callback: WaitingRequest | None = None


class Entry:
    """A partition's state of one producer id: its epoch and its open transaction."""

    __slots__ = ("epoch", "open")

    def __init__(self) -> None:
        self.epoch = NO_PRODUCER_EPOCH
        self.open = NEVER_OPENED

    def write(self, epoch: int, transaction: int) -> None:
        """Append a record of an open transaction, unless the epoch is an old one."""
        if epoch < self.epoch:
            return
        must(
            self.open in (NEVER_OPENED, transaction),
            "no transaction begins where another one is open",
        )
        self.epoch, self.open = epoch, transaction

    def mark(self, order: SendMarkers, decisions: Mapping[int, bool]) -> None:
        """Append a marker (see ProducerStateManager.check_marker)."""
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
