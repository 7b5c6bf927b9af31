"""Topics: list, describe, create, grow, delete."""

from __future__ import annotations

from collections.abc import Mapping

from mockbroker.client.errors import UnknownTopicError, check
from mockbroker.client.router import Router
from mockbroker_protocol import ErrorCode
from mockbroker_protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from mockbroker_protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from mockbroker_protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from mockbroker_protocol.messages.metadata import MetadataResponseTopic

BROKER_DEFAULT = -1


class Topics:
    """Administration of topics."""

    def __init__(self, router: Router) -> None:
        self._router = router

    def all(self, *, internal: bool = False) -> list[MetadataResponseTopic]:
        """All topics by name, without the internal ones unless asked for."""
        topics = self._router.metadata(None).topics
        return sorted(
            (topic for topic in topics if internal or not topic.is_internal),
            key=lambda topic: topic.name or "",
        )

    def describe(self, name: str) -> MetadataResponseTopic:
        """One topic, from fresh metadata. Raises `UnknownTopicError`."""
        topic = self._router.metadata([name]).topics[0]
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise UnknownTopicError(f"there is no topic {name}")
        check(topic.error_code, f"topic {name}")
        topic.partitions.sort(key=lambda partition: partition.partition_index)
        return topic

    def create(
        self,
        name: str,
        *,
        partitions: int = BROKER_DEFAULT,
        replication_factor: int = BROKER_DEFAULT,
        configs: Mapping[str, str] | None = None,
        validate_only: bool = False,
    ) -> None:
        """Create a topic; -1 takes the broker's default. Raises `BrokerError`."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replication_factor,
            configs=[
                CreatableTopicConfig(name=key, value=value)
                for key, value in (configs or {}).items()
            ],
        )
        request = CreateTopicsRequest(
            topics=[topic], timeout_ms=self._timeout_ms(), validate_only=validate_only
        )
        response: CreateTopicsResponse = self._router.send_any(request)
        result = response.topics[0]
        check(result.error_code, f"create topic {name}", result.error_message)

    def add_partitions(self, name: str, count: int) -> None:
        """Grow a topic to `count` partitions. Raises `BrokerError`."""
        request = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=name, count=count, assignments=None)],
            timeout_ms=self._timeout_ms(),
        )
        response: CreatePartitionsResponse = self._router.send_any(request)
        result = response.results[0]
        check(result.error_code, f"partitions of topic {name}", result.error_message)

    def delete(self, name: str) -> None:
        """Delete a topic and all its records. Raises `BrokerError`."""
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name)],
            topic_names=[name],
            timeout_ms=self._timeout_ms(),
        )
        response: DeleteTopicsResponse = self._router.send_any(request)
        result = response.responses[0]
        check(result.error_code, f"delete topic {name}", result.error_message)

    def _timeout_ms(self) -> int:
        return int(self._router.timeout_s * 1000)
