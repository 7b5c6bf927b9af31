"""ListTransactions (key 66), versions 0-2.

Generated from `schemas/list_transactions.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class ListTransactionsRequest(Struct, gc=False):
    state_filters: list[str] = []
    producer_id_filters: list[int] = []
    duration_filter: int = -1
    transactional_id_pattern: str | None = None
    unknown_tags: UnknownTags = None


class TransactionState(Struct, gc=False):
    transactional_id: str = ""
    producer_id: int = 0
    transaction_state: str = ""
    unknown_tags: UnknownTags = None


class ListTransactionsResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    unknown_state_filters: list[str] = []
    transaction_states: list[TransactionState] = []
    unknown_tags: UnknownTags = None
