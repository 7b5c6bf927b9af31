"""Keys and values of the records in `__transaction_state`.

Generated from `schemas/transaction_state.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class TransactionLogKey(Struct, gc=False):
    transactional_id: str = ""


class PartitionsSchema(Struct, gc=False):
    topic: str = ""
    partition_ids: list[int] = []
    unknown_tags: UnknownTags = None


class TransactionLogValue(Struct, gc=False):
    producer_id: int = 0
    previous_producer_id: int = -1
    next_producer_id: int = -1
    producer_epoch: int = 0
    next_producer_epoch: int = -1
    transaction_timeout_ms: int = 0
    transaction_status: int = 0
    transaction_partitions: list[PartitionsSchema] | None = []
    transaction_last_update_timestamp_ms: int = 0
    transaction_start_timestamp_ms: int = 0
    client_transaction_version: int = 0
    unknown_tags: UnknownTags = None
