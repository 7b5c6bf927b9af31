"""DescribeLogDirs (key 35), versions 1-5.

Generated from `schemas/describe_log_dirs.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class DescribableLogDirTopic(Struct, gc=False):
    topic: str = ""
    partitions: list[int] = []
    unknown_tags: UnknownTags = None


class DescribeLogDirsRequest(Struct, gc=False):
    topics: list[DescribableLogDirTopic] | None = []
    unknown_tags: UnknownTags = None


class DescribeLogDirsPartition(Struct, gc=False):
    partition_index: int = 0
    partition_size: int = 0
    offset_lag: int = 0
    is_future_key: bool = False
    unknown_tags: UnknownTags = None


class DescribeLogDirsTopic(Struct, gc=False):
    name: str = ""
    partitions: list[DescribeLogDirsPartition] = []
    unknown_tags: UnknownTags = None


class DescribeLogDirsResult(Struct, gc=False):
    error_code: int = 0
    log_dir: str = ""
    topics: list[DescribeLogDirsTopic] = []
    total_bytes: int = -1
    usable_bytes: int = -1
    is_cordoned: bool = False
    unknown_tags: UnknownTags = None


class DescribeLogDirsResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    results: list[DescribeLogDirsResult] = []
    unknown_tags: UnknownTags = None
