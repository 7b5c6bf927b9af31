"""Records of streams groups in `__consumer_offsets`, with lists sorted.

Source: StreamsCoordinatorRecordHelpers.
"""

from __future__ import annotations

from collections.abc import Iterable

from mockbroker.core.groups.modern.events import CurrentAssignment
from mockbroker.core.groups.modern.records import (
    Conversion,
    RecordType,
    modern_records,
    value_records,
)
from mockbroker.core.groups.streams.events import GroupChange, TopologyChange
from mockbroker.core.groups.streams.members import Endpoint, StreamsMember
from mockbroker.core.groups.streams.states import MemberState
from mockbroker.core.groups.streams.tasks import OwnedTasks, TaskEpochs, Tasks, TaskSets
from mockbroker.core.groups.streams.topology import (
    InternalTopic,
    Subtopology,
    Topology,
)
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


def _write_group(change: GroupChange) -> stored.StreamsGroupMetadataValue:
    assert change.epoch is not None
    return stored.StreamsGroupMetadataValue(
        epoch=change.epoch,
        metadata_hash=change.metadata_hash,
        validated_topology_epoch=change.validated_epoch,
        last_assignment_configs=[
            stored.LastAssignmentConfig(key=name, value=change.configs[name])
            for name in sorted(change.configs)
        ],
    )


def _write_topology(topology: Topology) -> stored.StreamsGroupTopologyValue:
    return stored.StreamsGroupTopologyValue(
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


def _write_member(member: StreamsMember) -> stored.StreamsGroupMemberMetadataValue:
    endpoint = member.endpoint
    return stored.StreamsGroupMemberMetadataValue(
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


def _write_target(target: Tasks) -> stored.StreamsGroupTargetAssignmentMemberValue:
    return stored.StreamsGroupTargetAssignmentMemberValue(
        active_tasks=_target_lines(target.active),
        standby_tasks=_target_lines(target.standby),
        warmup_tasks=_target_lines(target.warmup),
    )


def _target_lines(tasks: TaskSets) -> list[TargetTaskIds]:
    return [
        TargetTaskIds(subtopology_id=each, partitions=sorted(tasks[each])) for each in sorted(tasks)
    ]


def _write_current(
    current: CurrentAssignment[OwnedTasks],
) -> stored.StreamsGroupCurrentMemberAssignmentValue:
    return stored.StreamsGroupCurrentMemberAssignmentValue(
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


def _read_group(value: stored.StreamsGroupMetadataValue) -> GroupChange:
    configs = {each.key: each.value for each in value.last_assignment_configs or ()}
    return GroupChange(value.epoch, value.metadata_hash, value.validated_topology_epoch, configs)


def _read_topology(value: stored.StreamsGroupTopologyValue) -> Topology:
    by_id = {each.subtopology_id: Subtopology.of(each) for each in value.subtopologies}
    return Topology(value.epoch, by_id)


def _read_member(value: stored.StreamsGroupMemberMetadataValue, member_id: str) -> StreamsMember:
    endpoint = value.user_endpoint
    return StreamsMember(
        member_id=member_id,
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


def _read_target(value: stored.StreamsGroupTargetAssignmentMemberValue) -> Tasks:
    return Tasks(
        _read_tasks(value.active_tasks),
        _read_tasks(value.standby_tasks),
        _read_tasks(value.warmup_tasks),
    )


def _read_current(
    value: stored.StreamsGroupCurrentMemberAssignmentValue,
) -> CurrentAssignment[OwnedTasks]:
    known = value.state in MemberState._value2member_map_
    epoch = value.member_epoch
    return CurrentAssignment(
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


RECORD_TYPES = modern_records(
    "StreamsGroup",
    Conversion(_write_member, _read_member),
    Conversion(_write_target, _read_target),
    Conversion(_write_current, _read_current),
    RecordType(GroupChange, stored.StreamsGroupMetadataKey, _write_group, _read_group),
    value_records(TopologyChange, stored.StreamsGroupTopologyKey, _write_topology, _read_topology),
)
