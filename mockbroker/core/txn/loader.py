"""Rebuilding a shard from the log: the records of `__transaction_state` in their order.

All that the new leader has counts, also above its high watermark: that may be late, and what was
acknowledged by the leader before is among it. A later record of the same id replaces an earlier
one, a tombstone removes it. What was decided (PrepareCommit, PrepareAbort) has its markers sent
again; the partitions that have theirs already take them as repeated.

Source: TransactionStateManager.loadTransactionMetadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.coordinator.shard import stored_records
from mockbroker.core.txn.machine import TransactionalId
from mockbroker.core.txn.records import parse
from mockbroker_protocol.exceptions import DecodeError, UnknownVersionError
from mockbroker_protocol.records import Record

if TYPE_CHECKING:
    from mockbroker.core.txn.shard import TransactionShard


def load(shard: TransactionShard) -> None:
    """Read the shard's partition to its end. The shard must be fresh."""
    for header, record in stored_records(shard.partition.log):
        if not header.is_control:
            replay(shard, record)


def replay(shard: TransactionShard, record: Record) -> None:
    """Take in one record. What cannot be read is passed over, and counted in `unreadable`.

    Only an administrator's client can have produced it. (Kafka gives the whole partition up.)
    """
    try:
        parsed = parse(record)
    except (DecodeError, UnknownVersionError):
        shard.unreadable += 1
        return
    if parsed is None:
        return
    if parsed.image is None:
        shard.transactions.pop(parsed.transactional_id, None)
    else:
        shard.transactions[parsed.transactional_id] = TransactionalId(
            parsed.transactional_id, parsed.image
        )
