"""Actions that no one part of the core owns: the network to clients, the clock, ACLs and quotas."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec

from mockbroker.core import interventions as brokers
from mockbroker.core.errors import ActionError
from mockbroker.core.faults.arguments import (
    AbortTransaction,
    CutNetwork,
    HealNetwork,
    RevokeAcl,
    SetClock,
    SetQuota,
)
from mockbroker.core.faults.convert import nearest
from mockbroker.core.faults.effects.connections import CutOff
from mockbroker.core.quotas.client_quotas import entity_of
from mockbroker.core.security.acls import (
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)
from mockbroker.core.txn import interventions as txn

if TYPE_CHECKING:
    from mockbroker.core.cluster import Cluster

CUT_CLIENTS = "cut_network"
# What is asked first: a request that does not arrive is no other rule's business.
CUT_PRIORITY = 1_000_000

E = TypeVar("E", bound=IntEnum)


class ClockControl(Protocol):
    """What steers the clock of a run. Its methods raise ActionError where it cannot be steered."""

    def set_rate(self, rate: float) -> None:
        """Run at `rate` seconds a second, 0 to stand still."""
        ...

    def advance(self, milliseconds: int) -> None:
        """Move on, from deadline to deadline, as soon as the caller is done."""
        ...


# -- the network -----------------------------------------------------------------------------------


def cut_network(cluster: Cluster, cut: CutNetwork) -> None:
    """Cut, or slow down, links between brokers, or the way from clients to brokers."""
    if cut.clients is not None:
        _cut_clients(cluster, cut)
    elif cut.delay is not None:
        brokers.delay_network(cluster, cut.nodes, cut.to, by_ms=cut.delay, both_ways=cut.both_ways)
    else:
        brokers.cut_network(
            cluster, cut.nodes, cut.to, both_ways=cut.both_ways, fence_after_ms=cut.fence_after
        )


def heal_network(cluster: Cluster, heal: HealNetwork) -> None:
    """Bring links up again; without `nodes` also the ways of clients that were cut."""
    brokers.heal_network(cluster, heal.nodes, heal.to)
    engine = cluster.fault_engine
    if engine is not None and heal.nodes is None:
        for name in [name for name in engine.plans if name.startswith(CUT_CLIENTS)]:
            engine.remove(name)


def _cut_clients(cluster: Cluster, cut: CutNetwork) -> None:
    """A rule that lets nothing through; it is healed with everything else."""
    from mockbroker.core.faults.engine import engine_of
    from mockbroker.core.faults.rules import Match, Plan, Rule, When

    engine = engine_of(cluster)
    for node_id in [cut.nodes] if isinstance(cut.nodes, int) else cut.nodes:
        if cluster.processes.get(node_id) is None:
            known = ", ".join(str(each.node_id) for each in cluster.processes.values())
            raise ActionError(f"there is no broker {node_id}; there are: {known}")
    number = 1
    while f"{CUT_CLIENTS}-{number}" in engine.plans:
        number += 1
    name = f"{CUT_CLIENTS}-{number}"
    fields = msgspec.structs.asdict(cut.clients) if cut.clients is not None else {}
    match = Match(broker=cut.nodes, **fields)
    effect = {"cut_off": CutOff(both_ways=cut.both_ways)}
    engine.add(Plan(name, 0, (Rule(name, match, When(), effect, priority=CUT_PRIORITY),)))


# -- transactions ----------------------------------------------------------------------------------


def abort_transaction(cluster: Cluster, abort: AbortTransaction) -> None:
    """Abort what an id has open, or what a producer has open in one partition."""
    if abort.transactional_id is not None:
        txn.abort_transaction(cluster, abort.transactional_id)
    else:
        assert abort.topic is not None
        assert abort.partition is not None
        assert abort.producer_id is not None
        txn.abort_hanging(cluster, abort.topic, abort.partition, abort.producer_id)


# -- the clock -------------------------------------------------------------------------------------


def set_clock(cluster: Cluster, change: SetClock) -> None:
    """Freeze the cluster's clock, let it run faster or slower, move it on."""
    control = cluster.clock_control
    if control is None:
        raise ActionError("this cluster has no clock that could be steered")
    rate = change.rate if change.freeze is None else 1.0 - change.freeze
    if rate is not None:
        control.set_rate(rate)
    if change.advance is not None:
        control.advance(change.advance)


# -- who may do what, and how much -----------------------------------------------------------------


def revoke_acl(cluster: Cluster, revoke: RevokeAcl) -> int:
    """Take back ACL bindings; how many. Raises ActionError when there is none that fits."""
    wanted = AclFilter(
        resource_type=_member(ResourceType, revoke.resource_type, "resource_type"),
        resource_name=revoke.resource_name,
        pattern_type=_member(PatternType, revoke.pattern_type, "pattern_type"),
        principal=revoke.principal,
        host=revoke.host,
        operation=_member(Operation, revoke.operation, "operation"),
        permission=_member(Permission, revoke.permission, "permission"),
    )
    removed = cluster.acls.remove(wanted)
    if not removed:
        shown = "; ".join(map(str, cluster.acls)) or "none"
        raise ActionError(f"no ACL binding fits; there are: {shown}")
    return len(removed)


def _member(kind: type[E], name: str | None, field: str) -> E:
    if name is None:
        return kind["ANY"]
    found = kind.__members__.get(name.upper())
    if found is None:
        known = [each.lower() for each in kind.__members__ if each not in ("UNKNOWN", "ANY")]
        raise ActionError(f"{field}: {name!r} is unknown{nearest(name, known)}")
    return found


_ENTITIES = (("user", "user"), ("client-id", "client_id"), ("ip", "ip"))


def set_quota(cluster: Cluster, quota: SetQuota) -> None:
    """Set or take away one quota of one entity. Raises ApiError as AlterClientQuotas would."""
    pairs = [
        (kind, getattr(quota, field) or None)  # "" is the default entity, which has no name
        for kind, field in _ENTITIES
        if getattr(quota, field) is not None
    ]
    if not pairs:
        raise ActionError("say whose quota: user, client_id or ip")
    cluster.quotas.alter(entity_of(pairs), {quota.key: quota.value}, validate_only=False)
