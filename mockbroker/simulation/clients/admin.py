"""An administrator: changes of topics, partitions, configs, records, replicas and leaders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mockbroker.simulation.clients.base import CallSequence, SimulatedClient
from mockbroker.simulation.script import Call, Disconnected, RequestTimedOut, Script
from mockbroker_protocol import ApiKey
from mockbroker_protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from mockbroker_protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from mockbroker_protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from mockbroker_protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from mockbroker_protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from mockbroker_protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from mockbroker_protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

_TOPIC = 2  # ConfigResource.Type
_SET = 0
_TIMEOUT_MS = 5_000
_PARTITIONS_MAX = 5
_NAMES_SINCE = 6  # of DeleteTopics: topics in place of topic_names

_CONFIGS = (
    ("min.insync.replicas", ("1", "2")),
    ("unclean.leader.election.enable", ("false",)),
    ("segment.bytes", ("1048576", "1073741824")),
    ("max.message.bytes", ("1048588", "100000")),
)


class Admin(SimulatedClient):
    """Requests one change after the other, without retries."""

    def live(self) -> Script:
        yield from self.refresh()
        changes: list[Callable[[], CallSequence]] = [
            self._create_partitions,
            self._alter_configs,
            self._delete_records,
            self._reassign,
            self._reassign,
            self._elect,
            self._temporary_topic,
        ]
        for _ in range(self.settings.operations):
            yield self.pause()
            yield from self.rng.choice(changes)()
            if self.rng.random() < 0.3:
                yield from self.refresh()

    def _ask(self, api: ApiKey, request: Any) -> CallSequence:
        """The answer of a random broker; None without an answer."""
        try:
            response = yield Call(
                self.any_node(), api, self.versions.of(api), request, self.patience_ms()
            )
        except (Disconnected, RequestTimedOut):
            return None
        self.history.counts["admin requests answered"] += 1
        return response

    def _some_partition(self) -> tuple[str, int] | None:
        known = list(self._leaders)
        return self.rng.choice(known) if known else None

    def _create_partitions(self) -> CallSequence:
        topic = self.rng.choice(self.settings.topics)
        count = len(self.partitions_of(topic)) + 1
        if count > _PARTITIONS_MAX or self.rng.random() < 0.5:
            return
        request = CreatePartitionsRequest([CreatePartitionsTopic(topic, count, None)], _TIMEOUT_MS)
        yield from self._ask(ApiKey.CREATE_PARTITIONS, request)

    def _alter_configs(self) -> CallSequence:
        topic = self.rng.choice(self.settings.topics)
        name, values = self.rng.choice(_CONFIGS)
        config = AlterableConfig(name, _SET, self.rng.choice(values))
        request = IncrementalAlterConfigsRequest([AlterConfigsResource(_TOPIC, topic, [config])])
        yield from self._ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request)

    def _delete_records(self) -> CallSequence:
        found = self._some_partition()
        if found is None:
            return
        topic, index = found
        leader = self.leader(topic, index)
        if leader is None:
            return
        offset = self.rng.choice((-1, self.rng.randint(0, 30)))
        request = DeleteRecordsRequest(
            [DeleteRecordsTopic(topic, [DeleteRecordsPartition(index, offset)])], _TIMEOUT_MS
        )
        version = self.versions.of(ApiKey.DELETE_RECORDS)
        try:
            yield Call(leader.node_id, ApiKey.DELETE_RECORDS, version, request, self.patience_ms())
        except (Disconnected, RequestTimedOut):
            return
        self.history.counts["admin requests answered"] += 1

    def _reassign(self) -> CallSequence:
        found = self._some_partition()
        if found is None:
            return
        topic, index = found
        nodes = self.rng.sample(self._nodes, min(len(self._nodes), self.rng.randint(1, 3)))
        replicas = None if self.rng.random() < 0.2 else nodes
        request = AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(topic, [ReassignablePartition(index, replicas)])]
        )
        yield from self._ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, request)

    def _elect(self) -> CallSequence:
        found = self._some_partition()
        chosen = None if found is None else [TopicPartitions(found[0], [found[1]])]
        yield from self._ask(ApiKey.ELECT_LEADERS, ElectLeadersRequest(0, chosen, _TIMEOUT_MS))

    def _temporary_topic(self) -> CallSequence:
        name = f"{self.name}-temporary"
        if self.rng.random() < 0.5:
            topic = CreatableTopic(name, 2, min(2, len(self._nodes)))
            yield from self._ask(ApiKey.CREATE_TOPICS, CreateTopicsRequest([topic], _TIMEOUT_MS))
            return
        named = self.versions.of(ApiKey.DELETE_TOPICS) >= _NAMES_SINCE
        request = DeleteTopicsRequest(
            [DeleteTopicState(name)] if named else [], [] if named else [name], _TIMEOUT_MS
        )
        yield from self._ask(ApiKey.DELETE_TOPICS, request)
