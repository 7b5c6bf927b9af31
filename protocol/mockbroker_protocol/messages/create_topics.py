"""CreateTopics (key 19), versions 2-7.

Generated from `schemas/create_topics.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import ZERO_UUID, UnknownTags


class CreatableReplicaAssignment(Struct, gc=False):
    partition_index: int = 0
    broker_ids: list[int] = []
    unknown_tags: UnknownTags = None


class CreatableTopicConfig(Struct, gc=False):
    name: str = ""
    value: str | None = ""
    unknown_tags: UnknownTags = None


class CreatableTopic(Struct, gc=False):
    name: str = ""
    num_partitions: int = 0
    replication_factor: int = 0
    assignments: list[CreatableReplicaAssignment] = []
    configs: list[CreatableTopicConfig] = []
    unknown_tags: UnknownTags = None


class CreateTopicsRequest(Struct, gc=False):
    topics: list[CreatableTopic] = []
    timeout_ms: int = 60000
    validate_only: bool = False
    unknown_tags: UnknownTags = None


class CreatableTopicConfigs(Struct, gc=False):
    name: str = ""
    value: str | None = ""
    read_only: bool = False
    config_source: int = -1
    is_sensitive: bool = False
    unknown_tags: UnknownTags = None


class CreatableTopicResult(Struct, gc=False):
    name: str = ""
    topic_id: bytes = ZERO_UUID
    error_code: int = 0
    error_message: str | None = ""
    topic_config_error_code: int = 0
    num_partitions: int = -1
    replication_factor: int = -1
    configs: list[CreatableTopicConfigs] | None = []
    unknown_tags: UnknownTags = None


class CreateTopicsResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    topics: list[CreatableTopicResult] = []
    unknown_tags: UnknownTags = None
