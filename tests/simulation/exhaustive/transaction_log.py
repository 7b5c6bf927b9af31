"""The log of one transactional id, with the number and the decision of each transaction."""

from __future__ import annotations

from mockbroker.core.txn.events import TransactionImage
from mockbroker.core.txn.states import TransactionState
from tests.simulation.exhaustive.transaction_parties import NEVER_OPENED
from tests.simulation.exhaustive.world import must

# Whether the end that a state belongs to is a commit.
PREPARED = {TransactionState.PREPARE_COMMIT: True, TransactionState.PREPARE_ABORT: False}
COMPLETE = {TransactionState.COMPLETE_COMMIT: True, TransactionState.COMPLETE_ABORT: False}


class TransactionLog:
    """The last record, the number of the last transaction, and which of them are committed."""

    __slots__ = ("decisions", "image", "transaction")

    def __init__(self) -> None:
        self.image: TransactionImage | None = None
        self.transaction = NEVER_OPENED
        self.decisions: dict[int, bool] = {}

    def append(self, image: TransactionImage | None, *, hanging: bool) -> None:
        """Append a record; `hanging`: a partition has an open transaction."""
        before = self.image
        state = None if before is None else before.state
        must(
            state not in PREPARED
            or (image is not None and COMPLETE.get(image.state) is PREPARED[state]),
            "a decision is followed by its completion and by nothing else",
        )
        if image is not None and before is not None and image.producer_id == before.producer_id:
            must(image.epoch >= before.epoch, "the epoch in the log only rises")
        if image is not None:
            if image.state is TransactionState.ONGOING and state is not TransactionState.ONGOING:
                self.transaction += 1
            elif image.state in PREPARED and state is TransactionState.ONGOING:
                must(self.transaction not in self.decisions, "a transaction is decided once")
                self.decisions[self.transaction] = PREPARED[image.state]
            elif image.state in COMPLETE:
                must(not hanging, "an end is complete when every partition has its marker")
        self.image = image
