"""Records of streams groups in `__consumer_offsets`, one for each change.

Kafka 4.3 writes all of them as value v0, with lists sorted. Source:
StreamsCoordinatorRecordHelpers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from mockbroker.core.groups.modern.records import parse_change
from mockbroker.core.groups.records import KeyValue
from mockbroker.core.groups.streams.events import (
    Change,
    CurrentAssignment,
    CurrentAssignmentChange,
    GroupChange,
    MemberChange,
    TargetAssignmentChange,
    TargetEpochChange,
    TopologyChange,
)
from mockbroker.core.groups.streams.members import Endpoint, StreamsMember
from mockbroker.core.groups.streams.states import MemberState
from mockbroker.core.groups.streams.tasks import OwnedTasks, TaskEpochs, Tasks, TaskSets
from mockbroker.core.groups.streams.topology import (
    CopartitionGroup,
    InternalTopic,
    Subtopology,
    Topology,
)
from mockbroker_protocol.internal_topics import CONSUMER_OFFSETS
from mockbroker_protocol.messages import consumer_offsets as stored
from mockbroker_protocol.messages.consumer_offsets import (
    StreamsGroupCurrentMemberAssignmentValueTaskIds as CurrentTaskIds,
)
from mockbroker_protocol.messages.consumer_offsets import (
    StreamsGroupTargetAssignmentMemberValueTaskIds as TargetTaskIds,
)
from mockbroker_protocol.messages.consumer_offsets import (
    StreamsGroupTopologyValueTopicInfo as TopicInfo,
)
from mockbroker_protocol.records import Record


class StreamsRecord(msgspec.Struct, frozen=True):
    """A decoded record."""

    group_id: str
    change: Change


# ------------------------------------------------------------------------------------------ writing


def record_of(group_id: str, change: Change) -> KeyValue:
    """The record of one change; a tombstone if the change removes something."""
    key, value = _WRITERS[type(change)](group_id, change)
    encoded = None if value is None else CONSUMER_OFFSETS.encode_value(value)
    return CONSUMER_OFFSETS.encode_key(key), encoded


def _group(group_id: str, change: GroupChange) -> tuple[object, object]:
    key = stored.StreamsGroupMetadataKey(group_id=group_id)
    if change.epoch is None:
        return key, None
    return key, stored.StreamsGroupMetadataValue(
        epoch=change.epoch,
        metadata_hash=change.metadata_hash,
        validated_topology_epoch=change.validated_epoch,
        last_assignment_configs=[
            stored.LastAssignmentConfig(key=name, value=change.configs[name])
            for name in sorted(change.configs)
        ],
    )


def _topology(group_id: str, change: TopologyChange) -> tuple[object, object]:
    key = stored.StreamsGroupTopologyKey(group_id=group_id)
    topology = change.topology
    if topology is None:
        return key, None
    return key, stored.StreamsGroupTopologyValue(
        epoch=topology.epoch,
        subtopologies=[
            stored.Subtopology(
                subtopology_id=each.subtopology_id,
                source_topics=list(each.source_topics),
                source_topic_regex=list(each.source_topic_regex),
                state_changelog_topics=_topic_lines(each.changelogs),
                repartition_sink_topics=list(each.repartition_sinks),
                repartition_source_topics=_topic_lines(each.repartition_sources),
                copartition_groups=[
                    stored.CopartitionGroup(
                        source_topics=list(group.source_topics),
                        source_topic_regex=list(group.source_topic_regex),
                        repartition_source_topics=list(group.repartition_source_topics),
                    )
                    for group in each.copartition_groups
                ],
            )
            for each in topology.by_id.values()
        ],
    )


def _topic_lines(topics: Iterable[InternalTopic]) -> list[TopicInfo]:
    return [
        TopicInfo(
            name=each.name,
            partitions=each.partitions,
            replication_factor=each.replication_factor,
            topic_configs=[
                stored.TopicConfig(key=name, value=value) for name, value in each.configs
            ],
        )
        for each in topics
    ]


def _member(group_id: str, change: MemberChange) -> tuple[object, object]:
    key = stored.StreamsGroupMemberMetadataKey(group_id=group_id, member_id=change.member_id)
    member = change.member
    if member is None:
        return key, None
    endpoint = member.endpoint
    return key, stored.StreamsGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None
        if endpoint is None
        else stored.Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[
            stored.KeyValue(key=name, value=member.client_tags[name])
            for name in sorted(member.client_tags)
        ],
    )


def _target_epoch(group_id: str, change: TargetEpochChange) -> tuple[object, object]:
    key = stored.StreamsGroupTargetAssignmentMetadataKey(group_id=group_id)
    if change.epoch is None:
        return key, None
    return key, stored.StreamsGroupTargetAssignmentMetadataValue(
        assignment_epoch=change.epoch, assignment_timestamp=change.timestamp_ms
    )


def _target(group_id: str, change: TargetAssignmentChange) -> tuple[object, object]:
    key = stored.StreamsGroupTargetAssignmentMemberKey(
        group_id=group_id, member_id=change.member_id
    )
    target = change.target
    if target is None:
        return key, None
    return key, stored.StreamsGroupTargetAssignmentMemberValue(
        active_tasks=_target_lines(target.active),
        standby_tasks=_target_lines(target.standby),
        warmup_tasks=_target_lines(target.warmup),
    )


def _target_lines(tasks: TaskSets) -> list[TargetTaskIds]:
    return [
        TargetTaskIds(subtopology_id=each, partitions=sorted(tasks[each])) for each in sorted(tasks)
    ]


def _current(group_id: str, change: CurrentAssignmentChange) -> tuple[object, object]:
    key = stored.StreamsGroupCurrentMemberAssignmentKey(
        group_id=group_id, member_id=change.member_id
    )
    current = change.current
    if current is None:
        return key, None
    return key, stored.StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=current.epoch,
        previous_member_epoch=current.previous_epoch,
        state=current.state,
        active_tasks=_epoch_lines(current.assigned.active),
        standby_tasks=_current_lines(current.assigned.standby),
        warmup_tasks=_current_lines(current.assigned.warmup),
        active_tasks_pending_revocation=_epoch_lines(current.revoking.active),
        standby_tasks_pending_revocation=_current_lines(current.revoking.standby),
        warmup_tasks_pending_revocation=_current_lines(current.revoking.warmup),
    )


def _epoch_lines(tasks: TaskEpochs) -> list[CurrentTaskIds]:
    return [
        CurrentTaskIds(
            subtopology_id=each,
            partitions=sorted(tasks[each]),
            assignment_epochs=[tasks[each][partition] for partition in sorted(tasks[each])],
        )
        for each in sorted(tasks)
    ]


def _current_lines(tasks: TaskSets) -> list[CurrentTaskIds]:
    return [
        CurrentTaskIds(subtopology_id=each, partitions=sorted(tasks[each]))
        for each in sorted(tasks)
    ]


_WRITERS: dict[type, Callable[[str, Any], tuple[object, object]]] = {
    GroupChange: _group,
    TopologyChange: _topology,
    MemberChange: _member,
    TargetEpochChange: _target_epoch,
    TargetAssignmentChange: _target,
    CurrentAssignmentChange: _current,
}


# ------------------------------------------------------------------------------------------ reading


def parse(record: Record) -> StreamsRecord | None:
    """The decoded record, or None if it is not a record of streams groups.

    Raises DecodeError if key or value do not have the format of their version.
    """
    parsed = parse_change(record, _READERS)
    return None if parsed is None else StreamsRecord(*parsed)


def _read_group(_: object, value: stored.StreamsGroupMetadataValue | None) -> GroupChange:
    if value is None:
        return GroupChange(None)
    configs = {each.key: each.value for each in value.last_assignment_configs or ()}
    return GroupChange(value.epoch, value.metadata_hash, value.validated_topology_epoch, configs)


def _read_topology(_: object, value: stored.StreamsGroupTopologyValue | None) -> TopologyChange:
    if value is None:
        return TopologyChange(None)
    by_id = {
        each.subtopology_id: Subtopology(
            each.subtopology_id,
            tuple(each.source_topics),
            tuple(each.source_topic_regex),
            _read_topics(each.state_changelog_topics),
            tuple(each.repartition_sink_topics),
            _read_topics(each.repartition_source_topics),
            tuple(
                CopartitionGroup(
                    tuple(group.source_topics),
                    tuple(group.source_topic_regex),
                    tuple(group.repartition_source_topics),
                )
                for group in each.copartition_groups
            ),
        )
        for each in value.subtopologies
    }
    return TopologyChange(Topology(value.epoch, by_id))


def _read_topics(lines: Iterable[TopicInfo]) -> tuple[InternalTopic, ...]:
    return tuple(
        InternalTopic(
            each.name,
            each.partitions,
            each.replication_factor,
            tuple((config.key, config.value) for config in each.topic_configs),
        )
        for each in lines
    )


def _read_member(
    key: stored.StreamsGroupMemberMetadataKey,
    value: stored.StreamsGroupMemberMetadataValue | None,
) -> MemberChange:
    if value is None:
        return MemberChange(key.member_id, None)
    endpoint = value.user_endpoint
    member = StreamsMember(
        member_id=key.member_id,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        client_tags={each.key: each.value for each in value.client_tags},
    )
    return MemberChange(key.member_id, member)


def _read_target_epoch(
    _: object, value: stored.StreamsGroupTargetAssignmentMetadataValue | None
) -> TargetEpochChange:
    if value is None:
        return TargetEpochChange(None)
    return TargetEpochChange(value.assignment_epoch, value.assignment_timestamp)


def _read_target(
    key: stored.StreamsGroupTargetAssignmentMemberKey,
    value: stored.StreamsGroupTargetAssignmentMemberValue | None,
) -> TargetAssignmentChange:
    if value is None:
        return TargetAssignmentChange(key.member_id, None)
    target = Tasks(
        _read_tasks(value.active_tasks),
        _read_tasks(value.standby_tasks),
        _read_tasks(value.warmup_tasks),
    )
    return TargetAssignmentChange(key.member_id, target)


def _read_current(
    key: stored.StreamsGroupCurrentMemberAssignmentKey,
    value: stored.StreamsGroupCurrentMemberAssignmentValue | None,
) -> CurrentAssignmentChange:
    if value is None:
        return CurrentAssignmentChange(key.member_id, None)
    known = value.state in MemberState._value2member_map_
    epoch = value.member_epoch
    current = CurrentAssignment(
        epoch,
        value.previous_member_epoch,
        MemberState(value.state) if known else MemberState.UNKNOWN,
        OwnedTasks(
            _read_epochs(value.active_tasks, epoch),
            _read_tasks(value.standby_tasks),
            _read_tasks(value.warmup_tasks),
        ),
        OwnedTasks(
            _read_epochs(value.active_tasks_pending_revocation, epoch),
            _read_tasks(value.standby_tasks_pending_revocation),
            _read_tasks(value.warmup_tasks_pending_revocation),
        ),
    )
    return CurrentAssignmentChange(key.member_id, current)


def _read_tasks(lines: Iterable[TargetTaskIds | CurrentTaskIds]) -> TaskSets:
    return {line.subtopology_id: frozenset(line.partitions) for line in lines}


def _read_epochs(lines: Iterable[CurrentTaskIds], member_epoch: int) -> TaskEpochs:
    """The member epoch replaces assignment epochs that are missing or do not fit."""
    found: dict[str, dict[int, int]] = {}
    for line in lines:
        epochs = line.assignment_epochs
        if epochs is None or len(epochs) != len(line.partitions):
            epochs = [member_epoch] * len(line.partitions)
        found[line.subtopology_id] = dict(zip(line.partitions, epochs, strict=True))
    return found


_READERS: dict[type, Callable[[Any, Any], Change]] = {
    stored.StreamsGroupMetadataKey: _read_group,
    stored.StreamsGroupTopologyKey: _read_topology,
    stored.StreamsGroupMemberMetadataKey: _read_member,
    stored.StreamsGroupTargetAssignmentMetadataKey: _read_target_epoch,
    stored.StreamsGroupTargetAssignmentMemberKey: _read_target,
    stored.StreamsGroupCurrentMemberAssignmentKey: _read_current,
}
