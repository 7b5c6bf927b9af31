"""WriteTxnMarkers (key 27), versions 1-2.

Generated from `schemas/write_txn_markers.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class WritableTxnMarkerTopic(Struct, gc=False):
    name: str = ""
    partition_indexes: list[int] = []
    unknown_tags: UnknownTags = None


class WritableTxnMarker(Struct, gc=False):
    producer_id: int = 0
    producer_epoch: int = 0
    transaction_result: bool = False
    topics: list[WritableTxnMarkerTopic] = []
    coordinator_epoch: int = 0
    transaction_version: int = 0
    unknown_tags: UnknownTags = None


class WriteTxnMarkersRequest(Struct, gc=False):
    markers: list[WritableTxnMarker] = []
    unknown_tags: UnknownTags = None


class WritableTxnMarkerPartitionResult(Struct, gc=False):
    partition_index: int = 0
    error_code: int = 0
    unknown_tags: UnknownTags = None


class WritableTxnMarkerTopicResult(Struct, gc=False):
    name: str = ""
    partitions: list[WritableTxnMarkerPartitionResult] = []
    unknown_tags: UnknownTags = None


class WritableTxnMarkerResult(Struct, gc=False):
    producer_id: int = 0
    topics: list[WritableTxnMarkerTopicResult] = []
    unknown_tags: UnknownTags = None


class WriteTxnMarkersResponse(Struct, gc=False):
    markers: list[WritableTxnMarkerResult] = []
    unknown_tags: UnknownTags = None
