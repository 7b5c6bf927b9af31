"""DescribeTransactions (key 65), versions 0.

Generated from `schemas/describe_transactions.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class DescribeTransactionsRequest(Struct, gc=False):
    transactional_ids: list[str] = []
    unknown_tags: UnknownTags = None


class TopicData(Struct, gc=False):
    topic: str = ""
    partitions: list[int] = []
    unknown_tags: UnknownTags = None


class TransactionState(Struct, gc=False):
    error_code: int = 0
    transactional_id: str = ""
    transaction_state: str = ""
    transaction_timeout_ms: int = 0
    transaction_start_time_ms: int = 0
    producer_id: int = 0
    producer_epoch: int = 0
    topics: list[TopicData] = []
    unknown_tags: UnknownTags = None


class DescribeTransactionsResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    transaction_states: list[TransactionState] = []
    unknown_tags: UnknownTags = None
