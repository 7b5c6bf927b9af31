"""StreamsGroupHeartbeat: the five steps that `states` describes.

A `MemberUpdate` collects the changes of one request. The group changes only once they are stored.

Source: GroupMetadataManager.streamsGroupHeartbeat.
"""

from __future__ import annotations

import msgspec

from mockbroker.core.errors import ApiError, LimitError
from mockbroker.core.groups.events import Reply
from mockbroker.core.groups.modern.events import (
    JOIN_EPOCH,
    MemberChange,
    StoredChange,
    current_assignment_change,
)
from mockbroker.core.groups.modern.heartbeat import (
    in_unknown_state,
    rebalance_timer,
    session_timer,
    updated_member,
)
from mockbroker.core.groups.modern.machine import submit
from mockbroker.core.groups.modern.timers import SetTimer
from mockbroker.core.groups.modern.topics import metadata_hash
from mockbroker.core.groups.streams.configured import ConfiguredTopology, configure
from mockbroker.core.groups.streams.endpoints import endpoint_partitions
from mockbroker.core.groups.streams.events import (
    GroupChange,
    SentTopology,
    StreamsHeartbeat,
    StreamsStore,
    TopologyChange,
    Unstored,
)
from mockbroker.core.groups.streams.group import StreamsGroup
from mockbroker.core.groups.streams.members import NO_TOPOLOGY, StreamsMember
from mockbroker.core.groups.streams.reconcile import ReconcileInput, reconcile
from mockbroker.core.groups.streams.results import Status, StreamsResult
from mockbroker.core.groups.streams.states import StatusCode
from mockbroker.core.groups.streams.targets import new_targets
from mockbroker.core.groups.streams.tasks import (
    NO_TASKS,
    OwnedTasks,
    TaskLines,
    Tasks,
    TaskSets,
    owns_only,
)
from mockbroker.core.groups.streams.topology import Topology, new_topology
from mockbroker.core.hashing.java_hash import string_hash
from mockbroker.core.hashing.java_hash_map import hash_order
from mockbroker_protocol import ErrorCode

NOT_VALIDATED = -1


class MemberUpdate(msgspec.Struct):
    """A member `before` and `after` the request, with the changes and statuses of the request."""

    before: StreamsMember
    after: StreamsMember
    topology: Topology
    configured: ConfiguredTopology
    metadata_hash: int
    changes: list[StoredChange]
    statuses: list[Status]
    timers: list[SetTimer]
    epoch: int
    assignment_epoch: int = 0
    target: Tasks = NO_TASKS


def on_heartbeat(group: StreamsGroup, heartbeat: StreamsHeartbeat, now_ms: int) -> None:
    try:
        update = _member_update(group, heartbeat)
        _update_group_epoch(group, heartbeat, update)
        _delay_first_assignment(group, now_ms)
        _update_target(group, update, now_ms)
        _reconcile(group, update, heartbeat, now_ms)
        result = _result(group, heartbeat, update)
    except ApiError as error:
        group.request_metadata_refresh()
        limit = error.limit if isinstance(error, LimitError) else None
        result = StreamsResult(error=error.error, message=error.message, limit=limit)
        group.effects.append(Reply(heartbeat.callback, result))
        return
    if heartbeat.shutdown and group.shutdown_by is None:
        group.shutdown_by = heartbeat.member_id
    update.timers.append(session_timer(group, heartbeat.member_id, now_ms))
    submit(
        group,
        StreamsStore(
            changes=tuple(update.changes),
            unstored=Unstored(configured=update.configured, compared_version=group.topics.version),
            answer=Reply(heartbeat.callback, result),
            timers=tuple(update.timers),
        ),
    )


# ------------------------------------------------------------------ 1. the member, 2. the topology


def _member_update(group: StreamsGroup, heartbeat: StreamsHeartbeat) -> MemberUpdate:
    joins = heartbeat.epoch == JOIN_EPOCH
    if joins:
        group.check_size(None)
    if joins and heartbeat.member_id not in group.members:
        before = group.new_member(heartbeat.member_id)
    else:
        before = group.known_member(heartbeat.member_id)
    _check_epoch(group, before, heartbeat)
    after = _updated_member(before, heartbeat)
    changes: list[StoredChange] = []
    if after != before:
        changes.append(MemberChange(after.member_id, after))
    topology = _topology(group, heartbeat.topology, changes)
    statuses: list[Status] = []
    newest_epoch = NO_TOPOLOGY if group.topology is None else group.topology.epoch
    if after.member_id in group.stale_members:  # by an action
        newest_epoch = max(newest_epoch, after.topology_epoch + 1)
    if after.topology_epoch < newest_epoch:
        detail = (
            f"The member's topology epoch {after.topology_epoch} is behind the group's topology "
            f"epoch {newest_epoch}."
        )
        statuses.append(Status(StatusCode.STALE_TOPOLOGY, detail))
    new_hash, configured = _compared(group, topology)
    return MemberUpdate(
        before, after, topology, configured, new_hash, changes, statuses, [], group.epoch
    )


def _check_epoch(group: StreamsGroup, member: StreamsMember, heartbeat: StreamsHeartbeat) -> None:
    epoch, assigned = heartbeat.epoch, member.assigned
    if epoch in (JOIN_EPOCH, member.epoch):
        return
    # The answer with the current epoch may have been lost.
    lost_answer = (
        epoch < member.epoch
        and epoch == member.previous_epoch
        and owns_only(heartbeat.active, assigned.active)
        and owns_only(heartbeat.standby, assigned.standby)
        and owns_only(heartbeat.warmup, assigned.warmup)
    )
    if not lost_answer:
        raise group.fenced(member, epoch)


def _updated_member(member: StreamsMember, heartbeat: StreamsHeartbeat) -> StreamsMember:
    tags, topology = heartbeat.client_tags, heartbeat.topology
    if tags is not None and len(dict(tags)) < len(tags):
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)  # a map of Kafka refuses equal keys
    sent = {
        "rack_id": heartbeat.rack_id,
        "rebalance_timeout_ms": heartbeat.rebalance_timeout_ms,
        "topology_epoch": None if topology is None else topology.epoch,
        "client_id": heartbeat.client_id,
        "client_host": heartbeat.client_host,
        "process_id": heartbeat.process_id,
        "endpoint": heartbeat.endpoint,
        "client_tags": None if tags is None else dict(tags),
    }
    return updated_member(member, sent)


def _topology(
    group: StreamsGroup, sent: SentTopology | None, changes: list[StoredChange]
) -> Topology:
    """The topology of the group; the first one sent becomes that."""
    known = group.topology
    if sent is None:
        if known is None:
            raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        return known
    topology = new_topology(sent.epoch, sent.subtopologies)
    if known is None:
        changes.append(TopologyChange(topology))
        return topology
    if known.epoch <= topology.epoch and known != topology:
        raise ApiError(ErrorCode.INVALID_REQUEST, "Topology updates are not supported yet.")
    return known


# ----------------------------------------------------- 3. the configured topology, the group epoch


def _compared(group: StreamsGroup, topology: Topology) -> tuple[int, ConfiguredTopology]:
    """The hash of the required topics, and the topology configured anew if one of them changed."""
    known = group.configured
    if known is not None and group.compared_metadata_version == group.topics.version:
        return group.metadata_hash, known
    new_hash = metadata_hash(group.topics, topology.required_topics())
    if known is None or new_hash != group.metadata_hash:
        known = configure(topology, group.partition_count, group.settings.tasks_max)
    return new_hash, known


def _update_group_epoch(
    group: StreamsGroup, heartbeat: StreamsHeartbeat, update: MemberUpdate
) -> None:
    """Raise the group epoch if the member, the topology, its topics or the configs changed."""
    validated = NOT_VALIDATED
    if update.configured.is_ready:
        validated = update.topology.epoch
        for lines in (heartbeat.active, heartbeat.standby, heartbeat.warmup):
            _check_tasks(update.configured, lines)
    configs = group.settings.assignment_configs
    if (
        any(isinstance(each, MemberChange) for each in update.changes)
        or update.metadata_hash != group.metadata_hash
        or validated != group.validated_epoch
        or configs != group.assignment_configs
    ):
        update.epoch += 1
        update.changes.append(GroupChange(update.epoch, update.metadata_hash, validated, configs))


def _check_tasks(configured: ConfiguredTopology, lines: TaskLines | None) -> None:
    """The owned tasks must be tasks of the topology."""
    known = configured.subtopologies or {}
    for subtopology_id, partitions in lines or ():
        subtopology = known.get(subtopology_id)
        if subtopology is None:
            raise ApiError(
                ErrorCode.INVALID_REQUEST,
                f"Subtopology {subtopology_id} does not exist in the topology.",
            )
        for partition in partitions:
            if not 0 <= partition < subtopology.tasks:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    f"Task {partition} for subtopology {subtopology_id} is invalid. Number of "
                    f"tasks for this subtopology: {subtopology.tasks}",
                )


# ------------------------------------------------------------------------ 4. the target assignment


def _delay_first_assignment(group: StreamsGroup, now_ms: int) -> None:
    """Wait for more members before the first assignment of an empty group."""
    delay_ms = group.settings.initial_rebalance_delay_ms
    if group.is_empty() and delay_ms > 0 and group.initial_delay_until_ms is None:
        group.initial_delay_until_ms = now_ms + delay_ms


def _update_target(group: StreamsGroup, update: MemberUpdate, now_ms: int) -> None:
    """Run the assignor if the group epoch is ahead and neither delay nor interval is running."""
    update.assignment_epoch = group.assignment_epoch
    if group.initial_delay_until_ms is not None:
        detail = "Assignment delayed due to the configured initial rebalance delay."
        update.statuses.append(Status(StatusCode.ASSIGNMENT_DELAYED, detail))
        return
    update.target = group.target_of(update.after.member_id)
    if group.assignment_epoch >= update.epoch:
        return
    if not group.may_assign(now_ms):
        detail = "Assignment delayed due to the configured assignment interval."
        update.statuses.append(Status(StatusCode.ASSIGNMENT_DELAYED, detail))
        return
    members = {**group.members, update.after.member_id: update.after}
    targets, changes = new_targets(group, members, update.configured, update.epoch, now_ms)
    update.changes += changes
    update.assignment_epoch = update.epoch
    update.target = targets[update.after.member_id]


# -------------------------------------------------------------------------------- 5. reconciliation


def _reconcile(
    group: StreamsGroup, update: MemberUpdate, heartbeat: StreamsHeartbeat, now_ms: int
) -> None:
    member = update.after
    if member.is_reconciled(update.assignment_epoch):
        return
    inputs = ReconcileInput(
        update.assignment_epoch, update.target, group.owners.lookups(), _reported(heartbeat)
    )
    reconciled = reconcile(member, inputs)
    if reconciled is None:
        raise in_unknown_state(group.group_type, "tasks")
    if reconciled == member:
        return
    update.after = reconciled
    update.changes.append(current_assignment_change(reconciled))
    update.timers.append(rebalance_timer(group, reconciled, now_ms))


def _reported(heartbeat: StreamsHeartbeat) -> Tasks | None:
    active, standby, warmup = heartbeat.active, heartbeat.standby, heartbeat.warmup
    if active is None or standby is None or warmup is None:
        return None
    return Tasks(_task_sets(active), _task_sets(standby), _task_sets(warmup))


def _task_sets(lines: TaskLines) -> TaskSets:
    tasks = {subtopology: frozenset(partitions) for subtopology, partitions in lines}
    if len(tasks) < len(lines):
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)  # a map of Kafka refuses equal keys
    return tasks


# --------------------------------------------------------------------------------------- the answer


def _result(
    group: StreamsGroup, heartbeat: StreamsHeartbeat, update: MemberUpdate
) -> StreamsResult:
    """The answer; it has the tasks only if they changed or the member joins.

    The endpoint epoch is not in the log: a group that this heartbeat creates begins with 0.
    """
    after = update.after
    changed = heartbeat.epoch == JOIN_EPOCH or after.assigned != update.before.assigned
    is_new = not group.members and group.topology is None
    if changed and after.endpoint is not None:
        group.endpoint_epoch += 1
    endpoints = None
    if group.endpoint_epoch != heartbeat.endpoint_epoch:
        endpoints = endpoint_partitions(group, after, update.configured)
    fault = update.configured.fault
    if fault is not None:
        update.statuses.append(Status(fault.status, fault.detail))
    shutdown_by = group.shutdown_by or (heartbeat.member_id if heartbeat.shutdown else None)
    if shutdown_by is not None:
        detail = (
            f"Streams group member {shutdown_by} encountered a fatal error and requested a "
            "shutdown for the entire application."
        )
        update.statuses.append(Status(StatusCode.SHUTDOWN_APPLICATION, detail))
    return StreamsResult(
        member_id=after.member_id,
        epoch=after.epoch,
        heartbeat_interval_ms=group.settings.heartbeat_interval_ms,
        statuses=tuple(update.statuses),
        assigned=_in_order(after.assigned) if changed else None,
        endpoint_epoch=0 if is_new else group.endpoint_epoch,
        endpoints=endpoints,
        missing=tuple(
            topic
            for name, topic in update.configured.missing.items()
            if name not in group.lost_topics
        ),
    )


def _in_order(owned: OwnedTasks) -> tuple[TaskLines, TaskLines, TaskLines]:
    """Active, standby and warm-up tasks, in the order of Kafka's maps."""
    active = {each: frozenset(epochs) for each, epochs in owned.active.items()}
    return _lines(active), _lines(owned.standby), _lines(owned.warmup)


def _lines(tasks: TaskSets) -> TaskLines:
    return tuple((each, tuple(sorted(tasks[each]))) for each in hash_order(tasks, string_hash))
