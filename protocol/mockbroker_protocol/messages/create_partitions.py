"""CreatePartitions (key 37), versions 0-3.

Generated from `schemas/create_partitions.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class CreatePartitionsAssignment(Struct, gc=False):
    broker_ids: list[int] = []
    unknown_tags: UnknownTags = None


class CreatePartitionsTopic(Struct, gc=False):
    name: str = ""
    count: int = 0
    assignments: list[CreatePartitionsAssignment] | None = []
    unknown_tags: UnknownTags = None


class CreatePartitionsRequest(Struct, gc=False):
    topics: list[CreatePartitionsTopic] = []
    timeout_ms: int = 0
    validate_only: bool = False
    unknown_tags: UnknownTags = None


class CreatePartitionsTopicResult(Struct, gc=False):
    name: str = ""
    error_code: int = 0
    error_message: str | None = None
    unknown_tags: UnknownTags = None


class CreatePartitionsResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    results: list[CreatePartitionsTopicResult] = []
    unknown_tags: UnknownTags = None
