"""DeleteShareGroupOffsets (key 92), versions 0.

Generated from `schemas/delete_share_group_offsets.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import ZERO_UUID, UnknownTags


class DeleteShareGroupOffsetsRequestTopic(Struct, gc=False):
    topic_name: str = ""
    unknown_tags: UnknownTags = None


class DeleteShareGroupOffsetsRequest(Struct, gc=False):
    group_id: str = ""
    topics: list[DeleteShareGroupOffsetsRequestTopic] = []
    unknown_tags: UnknownTags = None


class DeleteShareGroupOffsetsResponseTopic(Struct, gc=False):
    topic_name: str = ""
    topic_id: bytes = ZERO_UUID
    error_code: int = 0
    error_message: str | None = None
    unknown_tags: UnknownTags = None


class DeleteShareGroupOffsetsResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    error_message: str | None = None
    responses: list[DeleteShareGroupOffsetsResponseTopic] = []
    unknown_tags: UnknownTags = None
