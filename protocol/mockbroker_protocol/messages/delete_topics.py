"""DeleteTopics (key 20), versions 1-6.

Generated from `schemas/delete_topics.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import ZERO_UUID, UnknownTags


class DeleteTopicState(Struct, gc=False):
    name: str | None = None
    topic_id: bytes = ZERO_UUID
    unknown_tags: UnknownTags = None


class DeleteTopicsRequest(Struct, gc=False):
    topics: list[DeleteTopicState] = []
    topic_names: list[str] = []
    timeout_ms: int = 0
    unknown_tags: UnknownTags = None


class DeletableTopicResult(Struct, gc=False):
    name: str | None = ""
    topic_id: bytes = ZERO_UUID
    error_code: int = 0
    error_message: str | None = None
    unknown_tags: UnknownTags = None


class DeleteTopicsResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    responses: list[DeletableTopicResult] = []
    unknown_tags: UnknownTags = None
