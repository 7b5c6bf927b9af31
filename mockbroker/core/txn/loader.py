"""The loader of a shard: it replays the records of `__transaction_state` in their order.

Records above the new leader's high watermark are replayed too: the high watermark may lag behind
records that the former leader has acknowledged. A later record of an id replaces an earlier one, a
tombstone removes it. The markers of a decided end (PrepareCommit, PrepareAbort) are sent again; a
partition may get one twice.

Source: TransactionStateManager.loadTransactionMetadata.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mockbroker.core.txn.machine import TransactionMetadata
from mockbroker.core.txn.records import parse
from mockbroker_protocol.exceptions import DecodeError, UnknownVersionError
from mockbroker_protocol.records import Record

if TYPE_CHECKING:
    from mockbroker.core.txn.shard import TransactionShard


def replay(shard: TransactionShard, record: Record) -> None:
    """Apply one record. One that cannot be decoded is skipped, and counted in `unreadable`.

    Only an administrator's client can have produced it. (Kafka fails the load.)
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
        shard.transactions[parsed.transactional_id] = TransactionMetadata(
            parsed.transactional_id, parsed.image
        )
