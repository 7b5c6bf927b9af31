"""ElectLeaders (key 43), versions 0-2.

Generated from `schemas/elect_leaders.py`; change that, then run the generator.
"""

from __future__ import annotations

from msgspec import Struct

from mockbroker_protocol.types import UnknownTags


class TopicPartitions(Struct, gc=False):
    topic: str = ""
    partitions: list[int] = []
    unknown_tags: UnknownTags = None


class ElectLeadersRequest(Struct, gc=False):
    election_type: int = 0
    topic_partitions: list[TopicPartitions] | None = []
    timeout_ms: int = 60000
    unknown_tags: UnknownTags = None


class PartitionResult(Struct, gc=False):
    partition_id: int = 0
    error_code: int = 0
    error_message: str | None = ""
    unknown_tags: UnknownTags = None


class ReplicaElectionResult(Struct, gc=False):
    topic: str = ""
    partition_result: list[PartitionResult] = []
    unknown_tags: UnknownTags = None


class ElectLeadersResponse(Struct, gc=False):
    throttle_time_ms: int = 0
    error_code: int = 0
    replica_election_results: list[ReplicaElectionResult] = []
    unknown_tags: UnknownTags = None
