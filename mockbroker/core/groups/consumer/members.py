"""A member of a consumer group and its partitions. Members are immutable.

An *owned* map is {topic id: {partition: assignment epoch}}, a *target* map is {topic id:
partitions}. Both are immutable.

Source: ConsumerGroupMember.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from mockbroker.core.groups.consumer.states import MemberState
from mockbroker.core.groups.events import Protocols

Owned: TypeAlias = "Mapping[bytes, Mapping[int, int]]"
Target: TypeAlias = "Mapping[bytes, frozenset[int]]"
# The owned partitions in a heartbeat; None if the heartbeat has none.
Reported: TypeAlias = "Mapping[bytes, tuple[int, ...]] | None"

NO_EPOCH = -1
NO_TARGET: Target = {}


class ClassicMember(msgspec.Struct, frozen=True):
    """The session timeout and protocols of a member that uses the classic protocol."""

    session_timeout_ms: int
    protocols: Protocols


class ConsumerMember(msgspec.Struct, frozen=True, kw_only=True):
    """One member. `assigned` are its partitions, `revoking` those pending revocation.

    `regex` is empty if the member has none. A new member has epoch 0.
    """

    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    client_id: str = ""
    client_host: str = ""
    topic_names: frozenset[str] = frozenset()
    regex: str = ""
    assignor: str | None = None
    assigned: Mapping[bytes, Mapping[int, int]] = msgspec.field(default_factory=dict)
    revoking: Mapping[bytes, Mapping[int, int]] = msgspec.field(default_factory=dict)
    classic: ClassicMember | None = None

    def is_reconciled(self, assignment_epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == assignment_epoch

    def assignment_epoch_of(self, topic_id: bytes, partition: int) -> int | None:
        """The assignment epoch of a partition; None if the member does not own it."""
        for owned in (self.assigned, self.revoking):
            epoch = owned.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None


def owns_only(reported: Reported, assigned: Owned) -> bool:
    """Whether all reported partitions are assigned to the member; False without a report."""
    if reported is None:
        return False
    for topic_id, partitions in reported.items():
        mine = assigned.get(topic_id)
        if mine is None or any(partition not in mine for partition in partitions):
            return False
    return True


def owns_any(reported: Reported, revoking: Owned) -> bool:
    """Whether the member still owns a partition of `revoking`; True without a report."""
    if reported is None:
        return True
    return any(
        partition in revoking.get(topic_id, ())
        for topic_id, partitions in reported.items()
        for partition in partitions
    )


def with_epoch(target: Target, epoch: int) -> Owned:
    """The owned map of a target whose partitions were assigned at `epoch`."""
    return {topic_id: dict.fromkeys(sorted(ps), epoch) for topic_id, ps in target.items()}
