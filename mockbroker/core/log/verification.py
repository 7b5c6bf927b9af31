"""The verification guard of a transaction's first batch in a partition (KIP-890).

Before the append of that batch, the leader has the coordinator verify or add the partition. The
*guard* of this request exists until a batch or a marker of the producer is appended. A batch may
open the transaction only with its guard: without it, the coordinator's answer may be about a
transaction that has ended meanwhile, and the new one would hang.

Source: VerificationStateEntry, UnifiedLog.maybeStartTransactionVerification.
"""

from __future__ import annotations


class VerificationGuard:
    """The guard of one producer. Guards are compared by identity.

    `lowest_sequence` is the lowest sequence under verification; a later batch must not overtake a
    failed one. `since_ms` is the time of the first verification. `bumps`: the producer raises its
    epoch at each end of a transaction (TV2).
    """

    __slots__ = ("bumps", "epoch", "lowest_sequence", "since_ms")

    def __init__(self, epoch: int, sequence: int, since_ms: int, *, bumps: bool) -> None:
        self.epoch = epoch
        self.lowest_sequence = sequence
        self.since_ms = since_ms
        self.bumps = bumps

    def note(self, epoch: int, sequence: int) -> None:
        """Add another batch to the verification."""
        if epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence
        elif epoch == self.epoch and sequence < self.lowest_sequence:
            self.lowest_sequence = sequence


# The guard of a batch whose transaction is open already.
NO_GUARD = VerificationGuard(-1, -1, -1, bumps=False)
