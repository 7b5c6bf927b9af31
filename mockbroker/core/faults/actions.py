"""Every action on the cluster, by the name that rules, timelines, HTTP and the command line use.

An action is a struct of arguments and a function of the cluster that takes them. What it cannot do
it refuses with ActionError or ApiError, and then nothing has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from mockbroker.core import interventions as brokers
from mockbroker.core import partition_interventions as partitions
from mockbroker.core.faults import arguments as args
from mockbroker.core.faults import cluster_actions as others
from mockbroker.core.faults.convert import convert, nearest, to_data
from mockbroker.core.faults.errors import RuleError
from mockbroker.core.groups import interventions as groups
from mockbroker.core.txn import interventions as txn

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster


class Action(NamedTuple):
    """An action: its arguments, and what it does."""

    arguments: type[msgspec.Struct]
    perform: Callable[[Cluster, Any], object]


def _watermark(cluster: Cluster, wanted: args.Watermark) -> None:
    set_it = partitions.release_high_watermark if wanted.release else partitions.hold_high_watermark
    set_it(cluster, wanted.topic, wanted.partition)


def _stable_offset(cluster: Cluster, wanted: args.Watermark) -> None:
    hold, release = partitions.hold_last_stable_offset, partitions.release_last_stable_offset
    (release if wanted.release else hold)(cluster, wanted.topic, wanted.partition)


def _lag(cluster: Cluster, lag: args.LagFollower) -> None:
    where = (lag.topic, lag.partition, lag.node)
    if lag.release:
        partitions.release_follower(cluster, *where)
    else:
        partitions.lag_follower(cluster, *where, lag.by, hold=lag.by is None)


def _compaction(cluster: Cluster, wanted: args.AnyPartitions) -> None:
    """Start it; clients are served meanwhile."""
    manager = cluster.log_manager
    manager.run_in_slices(manager.start_compaction(wanted.topic, wanted.partition, roll=True))


# Topic, partition and node of those actions that take all three.
_Place = args.PartitionNode

ACTIONS: dict[str, Action] = {
    "stop_broker": Action(
        args.StopBroker, lambda c, a: brokers.stop_broker(c, a.node, a.how, a.fence_after)
    ),
    "start_broker": Action(
        args.StartBroker, lambda c, a: brokers.start_broker(c, a.node, new_port=a.new_port)
    ),
    "pause_broker": Action(
        args.PauseBroker, lambda c, a: brokers.pause_broker(c, a.node, a.fence_after)
    ),
    "resume_broker": Action(args.Node, lambda c, a: brokers.resume_broker(c, a.node)),
    "add_broker": Action(args.AddBroker, lambda c, a: brokers.add_broker(c, a.node, a.rack)),
    "remove_broker": Action(args.Node, lambda c, a: brokers.remove_broker(c, a.node)),
    "cut_network": Action(args.CutNetwork, others.cut_network),
    "heal_network": Action(args.HealNetwork, others.heal_network),
    "move_leader": Action(
        _Place, lambda c, a: partitions.move_leader(c, a.topic, a.partition, a.node)
    ),
    "drop_leader": Action(
        args.Partition, lambda c, a: partitions.drop_leader(c, a.topic, a.partition)
    ),
    "shuffle_leaders": Action(args.AnyTopic, lambda c, a: partitions.shuffle_leaders(c, a.topic)),
    "lag_follower": Action(args.LagFollower, _lag),
    "shrink_isr": Action(
        args.ShrinkIsr, lambda c, a: partitions.shrink_isr(c, a.topic, a.partition, a.nodes)
    ),
    "hold_high_watermark": Action(args.Watermark, _watermark),
    "set_high_watermark": Action(
        args.PartitionOffset,
        lambda c, a: partitions.set_high_watermark(c, a.topic, a.partition, a.offset),
    ),
    "elect_unclean": Action(
        _Place, lambda c, a: partitions.elect_unclean(c, a.topic, a.partition, a.node)
    ),
    "delete_records": Action(
        args.DeleteRecords,
        lambda c, a: partitions.delete_records(c, a.topic, a.partition, a.before_offset),
    ),
    "run_retention": Action(args.AnyPartitions, lambda c, a: c.run_retention(a.topic, a.partition)),
    "run_compaction": Action(args.AnyPartitions, _compaction),
    "recreate_topic": Action(args.Topic, lambda c, a: partitions.recreate_topic(c, a.topic)),
    "fail_log_dir": Action(args.FailLogDir, lambda c, a: brokers.fail_log_dir(c, a.node, a.path)),
    "move_coordinator": Action(
        args.MoveCoordinator, lambda c, a: brokers.move_coordinator(c, a.key, a.node, a.kind)
    ),
    "unload_coordinator": Action(
        args.UnloadCoordinator, lambda c, a: brokers.unload_coordinator(c, a.key, a.load, a.kind)
    ),
    "rebalance_group": Action(args.Group, lambda c, a: groups.rebalance_group(c, a.group)),
    "expire_member": Action(
        args.GroupMember, lambda c, a: groups.expire_member(c, a.group, a.member)
    ),
    "kick_member": Action(args.GroupMember, lambda c, a: groups.kick_member(c, a.group, a.member)),
    "fence_instance": Action(
        args.GroupInstance, lambda c, a: groups.fence_instance(c, a.group, a.instance_id)
    ),
    "assign_group": Action(
        args.AssignGroup, lambda c, a: groups.assign_group(c, a.group, a.assignments)
    ),
    "fence_producer": Action(
        args.Transaction, lambda c, a: txn.fence_producer(c, a.transactional_id)
    ),
    "expire_transaction": Action(
        args.Transaction, lambda c, a: txn.expire_transaction(c, a.transactional_id)
    ),
    "abort_transaction": Action(args.AbortTransaction, others.abort_transaction),
    "hang_transaction": Action(
        args.HangTransaction,
        lambda c, a: txn.hang_transaction(c, a.transactional_id, hang=not a.release),
    ),
    "hold_last_stable_offset": Action(args.Watermark, _stable_offset),
    "set_clock": Action(args.SetClock, others.set_clock),
    "revoke_acl": Action(args.RevokeAcl, others.revoke_acl),
    "set_quota": Action(args.SetQuota, others.set_quota),
}


def perform(
    cluster: Cluster, name: str, arguments: msgspec.Struct, cause: str | None = None
) -> object:
    """Carry out an action, and write it into the journal with the rule or set that is its `cause`.

    Raises ActionError or ApiError, and then nothing has changed.
    """
    former, cluster.cause = cluster.cause, cause or name
    try:
        result = ACTIONS[name].perform(cluster, arguments)
    finally:
        cluster.cause = former
    if cluster.journal is not None:
        cluster.journal.fact(
            cluster.now_ms(),
            "action",
            change=name,
            rules=() if cause is None else (cause,),
            arguments=to_data(arguments),
        )
    return result


def parse_action(name: str, data: object) -> msgspec.Struct:
    """The arguments of an action from plain data. Raises RuleError that names the field."""
    action = ACTIONS.get(name)
    if action is None:
        raise RuleError("action", f"unknown action {name!r}{nearest(name, ACTIONS)}")
    return convert(data, action.arguments, name)
