"""Every action on the cluster, by the name that rules, timelines, HTTP and the command line use.

An action is a struct of arguments and a function of the cluster that takes them. What it cannot do
it refuses with ActionError, and then nothing has changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import msgspec

from mockbroker.core import interventions
from mockbroker.core import partition_interventions as partitions
from mockbroker.core.faults.convert import Count, Ms, convert, nearest
from mockbroker.core.faults.errors import RuleError

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster

Kind = Literal["group", "transaction"]


class Node(msgspec.Struct, frozen=True):
    """One broker."""

    SHORT: ClassVar[str] = "node"

    node: int


class StopBroker(msgspec.Struct, frozen=True, kw_only=True):
    SHORT: ClassVar[str] = "node"

    node: int
    how: Literal["controlled", "unclean"] = "controlled"
    fence_after: Ms | None = None


class PauseBroker(msgspec.Struct, frozen=True, kw_only=True):
    SHORT: ClassVar[str] = "node"

    node: int
    fence_after: Ms | None = None


class AddBroker(msgspec.Struct, frozen=True, kw_only=True):
    SHORT: ClassVar[str] = "node"

    node: int
    rack: str | None = None


class HealNetwork(msgspec.Struct, frozen=True, kw_only=True):
    """The links between some brokers and others; without `nodes` all of them."""

    nodes: int | list[int] | None = None
    to: int | list[int] | None = None


class CutNetwork(msgspec.Struct, frozen=True, kw_only=True):
    """The links between some brokers and others, or all others."""

    SHORT: ClassVar[str] = "nodes"

    nodes: int | list[int]
    to: int | list[int] | None = None
    both_ways: bool = True
    fence_after: Ms | None = None


class Partition(msgspec.Struct, frozen=True, kw_only=True):
    """One partition."""

    topic: str
    partition: Count


class Partitions(msgspec.Struct, frozen=True, kw_only=True):
    """One partition, or all of the topic."""

    SHORT: ClassVar[str] = "topic"

    topic: str
    partition: Count | None = None


class AnyPartitions(msgspec.Struct, frozen=True, kw_only=True):
    """One partition, all of a topic, or all."""

    SHORT: ClassVar[str] = "topic"

    topic: str | None = None
    partition: Count | None = None


class PartitionNode(msgspec.Struct, frozen=True, kw_only=True):
    """A partition and one of its replicas."""

    topic: str
    partition: Count
    node: int


class LagFollower(msgspec.Struct, frozen=True, kw_only=True):
    """A follower that lags by some time, or (without `by`) fetches nothing at all."""

    topic: str
    partition: Count | None = None
    node: int
    by: Ms | None = None


class ShrinkIsr(msgspec.Struct, frozen=True, kw_only=True):
    topic: str
    partition: Count | None = None
    nodes: list[int]


class PartitionOffset(msgspec.Struct, frozen=True, kw_only=True):
    topic: str
    partition: Count
    offset: int


class AnyTopic(msgspec.Struct, frozen=True, kw_only=True):
    SHORT: ClassVar[str] = "topic"

    topic: str | None = None


class FailLogDir(msgspec.Struct, frozen=True, kw_only=True):
    SHORT: ClassVar[str] = "node"

    node: int
    path: str | None = None


class MoveCoordinator(msgspec.Struct, frozen=True, kw_only=True):
    """`key` is a group, or with kind "transaction" a transactional id."""

    key: str
    node: int
    kind: Kind = "group"


class UnloadCoordinator(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    load: Ms = 0
    kind: Kind = "group"


class Action(NamedTuple):
    """An action: its arguments, and what it does."""

    arguments: type[msgspec.Struct]
    perform: Callable[[Cluster, Any], object]


ACTIONS: dict[str, Action] = {
    "stop_broker": Action(
        StopBroker, lambda c, a: interventions.stop_broker(c, a.node, a.how, a.fence_after)
    ),
    "start_broker": Action(Node, lambda c, a: interventions.start_broker(c, a.node)),
    "pause_broker": Action(
        PauseBroker, lambda c, a: interventions.pause_broker(c, a.node, a.fence_after)
    ),
    "resume_broker": Action(Node, lambda c, a: interventions.resume_broker(c, a.node)),
    "add_broker": Action(AddBroker, lambda c, a: interventions.add_broker(c, a.node, a.rack)),
    "remove_broker": Action(Node, lambda c, a: interventions.remove_broker(c, a.node)),
    "move_leader": Action(
        PartitionNode, lambda c, a: partitions.move_leader(c, a.topic, a.partition, a.node)
    ),
    "drop_leader": Action(Partition, lambda c, a: partitions.drop_leader(c, a.topic, a.partition)),
    "shuffle_leaders": Action(AnyTopic, lambda c, a: partitions.shuffle_leaders(c, a.topic)),
    "shrink_isr": Action(
        ShrinkIsr, lambda c, a: partitions.shrink_isr(c, a.topic, a.partition, a.nodes)
    ),
    "hold_high_watermark": Action(
        Partitions, lambda c, a: partitions.hold_high_watermark(c, a.topic, a.partition)
    ),
    "release_high_watermark": Action(
        Partitions, lambda c, a: partitions.release_high_watermark(c, a.topic, a.partition)
    ),
    "set_high_watermark": Action(
        PartitionOffset,
        lambda c, a: partitions.set_high_watermark(c, a.topic, a.partition, a.offset),
    ),
    "elect_unclean": Action(
        PartitionNode, lambda c, a: partitions.elect_unclean(c, a.topic, a.partition, a.node)
    ),
    "run_retention": Action(AnyPartitions, lambda c, a: c.run_retention(a.topic, a.partition)),
    "run_compaction": Action(AnyPartitions, lambda c, a: c.run_compaction(a.topic, a.partition)),
    "fail_log_dir": Action(FailLogDir, lambda c, a: interventions.fail_log_dir(c, a.node, a.path)),
    "move_coordinator": Action(
        MoveCoordinator, lambda c, a: interventions.move_coordinator(c, a.key, a.node, a.kind)
    ),
    "unload_coordinator": Action(
        UnloadCoordinator, lambda c, a: interventions.unload_coordinator(c, a.key, a.load, a.kind)
    ),
}


def perform(cluster: Cluster, name: str, arguments: msgspec.Struct) -> object:
    """Carry out an action. Raises ActionError or ApiError, and then nothing has changed."""
    return ACTIONS[name].perform(cluster, arguments)


def parse_action(name: str, data: object) -> msgspec.Struct:
    """The arguments of an action from plain data. Raises RuleError that names the field."""
    action = ACTIONS.get(name)
    if action is None:
        raise RuleError("action", f"unknown action {name!r}{nearest(name, ACTIONS)}")
    return convert(data, action.arguments, name)
