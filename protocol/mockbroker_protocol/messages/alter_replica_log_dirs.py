"""AlterReplicaLogDirs (key 34), versions 1-2.

Generated from `schemas/alter_replica_log_dirs.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class AlterReplicaLogDirTopic(Struct, gc=False):
    name: str = ""
    partitions: list[int] = []
    unknown_tags: UnknownTags = None


class AlterReplicaLogDir(Struct, gc=False):
    path: str = ""
    topics: list[AlterReplicaLogDirTopic] = []
    unknown_tags: UnknownTags = None


class AlterReplicaLogDirsRequest(Struct, gc=False):
    dirs: list[AlterReplicaLogDir] = []
    unknown_tags: UnknownTags = None


class AlterReplicaLogDirPartitionResult(Struct, gc=False):
    partition_index: int = 0
    error_code: int = 0
    unknown_tags: UnknownTags = None


class AlterReplicaLogDirTopicResult(Struct, gc=False):
    topic_name: str = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = []
    unknown_tags: UnknownTags = None


class AlterReplicaLogDirsResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    results: list[AlterReplicaLogDirTopicResult] = []
    unknown_tags: UnknownTags = None
