"""Metadata (key 3), versions 0-13.

Generated from `schemas/metadata.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import ZERO_UUID, UnknownTags


class MetadataRequestTopic(Struct, gc=False):
    topic_id: bytes = ZERO_UUID
    name: str | None = ""
    unknown_tags: UnknownTags = None


class MetadataRequest(Struct, gc=False):
    topics: list[MetadataRequestTopic] | None = []
    allow_auto_topic_creation: bool = True
    include_cluster_authorized_operations: bool = False
    include_topic_authorized_operations: bool = False
    unknown_tags: UnknownTags = None


class MetadataResponseBroker(Struct, gc=False):
    node_id: int = 0
    host: str = ""
    port: int = 0
    rack: str | None = None
    unknown_tags: UnknownTags = None


class MetadataResponsePartition(Struct, gc=False):
    error_code: int = 0
    partition_index: int = 0
    leader_id: int = 0
    leader_epoch: int = -1
    replica_nodes: list[int] = []
    isr_nodes: list[int] = []
    offline_replicas: list[int] = []
    unknown_tags: UnknownTags = None


class MetadataResponseTopic(Struct, gc=False):
    error_code: int = 0
    name: str | None = ""
    topic_id: bytes = ZERO_UUID
    is_internal: bool = False
    partitions: list[MetadataResponsePartition] = []
    topic_authorized_operations: int = -2147483648
    unknown_tags: UnknownTags = None


class MetadataResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    brokers: list[MetadataResponseBroker] = []
    cluster_id: str | None = None
    controller_id: int = -1
    topics: list[MetadataResponseTopic] = []
    cluster_authorized_operations: int = -2147483648
    error_code: int = 0
    unknown_tags: UnknownTags = None
