"""AddPartitionsToTxn (key 24), versions 0-5.

Generated from `schemas/add_partitions_to_txn.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class AddPartitionsToTxnTopic(Struct, gc=False):
    name: str = ""
    partitions: list[int] = []
    unknown_tags: UnknownTags = None


class AddPartitionsToTxnTransaction(Struct, gc=False):
    transactional_id: str = ""
    producer_id: int = 0
    producer_epoch: int = 0
    verify_only: bool = False
    topics: list[AddPartitionsToTxnTopic] = []
    unknown_tags: UnknownTags = None


class AddPartitionsToTxnRequest(Struct, gc=False):
    transactions: list[AddPartitionsToTxnTransaction] = []
    v3_and_below_transactional_id: str = ""
    v3_and_below_producer_id: int = 0
    v3_and_below_producer_epoch: int = 0
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = []
    unknown_tags: UnknownTags = None


class AddPartitionsToTxnPartitionResult(Struct, gc=False):
    partition_index: int = 0
    partition_error_code: int = 0
    unknown_tags: UnknownTags = None


class AddPartitionsToTxnTopicResult(Struct, gc=False):
    name: str = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = []
    unknown_tags: UnknownTags = None


class AddPartitionsToTxnResult(Struct, gc=False):
    transactional_id: str = ""
    topic_results: list[AddPartitionsToTxnTopicResult] = []
    unknown_tags: UnknownTags = None


class AddPartitionsToTxnResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    results_by_transaction: list[AddPartitionsToTxnResult] = []
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = []
    unknown_tags: UnknownTags = None
