"""What a partition's leader remembers while the coordinator is asked about a transaction (KIP-890).

Before the first batch of a transaction is appended, the leader asks the coordinator whether the
partition belongs to it, or has it added. The *guard* made for that question stays until a batch or
a marker of the producer is appended. Only a batch that comes with the guard still in place may open
the transaction here: else the answer may be about a transaction that ended meanwhile, and the
records would hang.

Source: VerificationStateEntry, UnifiedLog.maybeStartTransactionVerification.
"""

from __future__ import annotations


class VerificationGuard:
    """One producer's open question; its identity is what counts.

    `lowest_sequence` is the lowest that was asked for: batches sent after one that failed may not
    overtake it. `bumps` tells that the producer raises its epoch at each end (TV2).
    """

    __slots__ = ("bumps", "epoch", "lowest_sequence")

    def __init__(self, epoch: int, sequence: int, *, bumps: bool) -> None:
        self.epoch = epoch
        self.lowest_sequence = sequence
        self.bumps = bumps

    def note(self, epoch: int, sequence: int) -> None:
        """Another batch asks the same question."""
        if epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence
        elif epoch == self.epoch and sequence < self.lowest_sequence:
            self.lowest_sequence = sequence


# Stands for "none": what a batch comes with that takes its transaction to be open already.
NO_GUARD = VerificationGuard(-1, -1, bumps=False)
